"""A log is checked at the door; each bad input is a sentence."""

import warnings
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import bayesbandit as bb
from bayesbandit.ope import Log
from bayesbandit.ope.targets import target_of
from tests.cases import all_quick

X = np.arange(8.0).reshape(4, 2)
E = np.array([[0.5, 0.5], [0.25, 0.75], [0.9, 0.1], [0.5, 0.5]])
ARM, REWARD = ["a", "b", "a", "b"], [1.0, 0.0, 1.0, 2.0]


def log(**changes):
    given = {"x": X, "arm": ARM, "reward": REWARD, "probabilities": E, "arms": ["a", "b"]}
    return Log(**{**given, **changes})


def with_(t, row):
    e = E.copy()
    e[t] = row
    return e


BAD = {
    "propensities must be in \\(0, 1\\]; got 0.0 in round 1": {
        "probabilities": None, "propensity": [0.5, 0.0, 1, 1]},
    "propensities must be in \\(0, 1\\]; got 1.5": {
        "probabilities": None, "propensity": [0.5, 1.5, 1, 1]},
    "propensities are missing in 1 of 4 rounds, first in round 1: fill": {
        "probabilities": None, "propensity": [0.5, np.nan, 1, 1]},
    "probabilities are missing in 1 of 4 rounds, first in round 2": {
        "probabilities": with_(2, [np.nan, 1])},
    "probabilities must be in \\[0, 1\\]; got 1.2": {"probabilities": with_(2, [1.2, -0.2])},
    "must sum to 1 in every round; they sum to 0.9 in round 3, and not to 1 in 1 of 4": {
        "probabilities": with_(3, [0.4, 0.5])},
    "the arm of round 1, 'b', was chosen with probability 0; so were 1 of 4": {
        "probabilities": with_(1, [1.0, 0.0])},
    "is not the probability of its arm, 0.75": {"propensity": [0.5, 0.7, 0.9, 0.5]},
    "needs probabilities .* got neither": {"probabilities": None},
    "time must not run back.* got 1 after 2 in round 2": {"time": [1, 2, 1, 3]},
    "batch must not run back": {"batch": [0, 1, 0, 1]},
    "3 came before its decision: reward_time 2.5, ti": {
        "time": [0, 1, 2, 3], "reward_time": [1, 2, np.nan, 2.5]},
    "arms must be among \\['a', 'b'\\]; got 'c'": {"arm": ["a", "c", "a", "b"]},
    "rewards must have one value for each of 4 rows": {"reward": [1.0]},
    "rewards must be finite": {"reward": [1.0, np.inf, 0, 0]},
    "rewards must not all be missing": {"reward": [np.nan] * 4},
    "contexts must have shape \\(4, d\\)": {"x": X[:3]},
    "arms= must name the 2 columns": {"arms": None},
    "was not available": {"available": [[1, 1], [1, 0], [1, 1], [1, 1]]},
    "or had a probability > 0": {"available": [[1, 1], [0, 1], [1, 1], [1, 1]]},
    "differs from the logged probabilities by 0.25": {
        "batch": [0, 0, 0, 0], "snapshots": np.full((1, 4, 2), 0.5),
        "probabilities": with_(2, [0.5, 0.5])},
}  # fmt: skip


@all_quick()
@pytest.mark.parametrize("said", BAD)
def test_bad_input_is_a_sentence(said):
    with pytest.raises(ValueError, match=said):
        log(**BAD[said])


def test_of_two_arms_one_propensity_says_both():
    one = log(probabilities=None, propensity=E[np.arange(4), [0, 1, 0, 1]])
    np.testing.assert_allclose(one.probabilities, E)
    assert Log(None, [0, 2, 1], REWARD[:3], propensity=[0.3] * 3).probabilities is None


def test_batches_double_and_cover():
    n = 3_000
    many = Log(None, np.zeros(n, int), np.ones(n), np.full((n, 2), 0.5))
    sizes = [rows.stop - rows.start for rows in many.batches]
    assert sum(sizes) == n
    assert sizes[:4] == [1, 2, 4, 8]
    assert all(b.stop - b.start <= max(20, b.start // 50) for b in many.batches)
    assert max(sizes) == 58
    earlier = [b for b in many.batches if b.stop < 1000]  # they depend on earlier rounds only
    assert many[:1000].batches[:-1] == earlier
    assert [(b.start, b.stop) for b in log(batch=[3, 3, 5, 9]).batches] == [(0, 2), (2, 3), (3, 4)]


def test_an_error_names_the_arm_that_is_unknown():
    """An integer column with a gap, as pandas reads it, has floats that equal the arms."""
    e = np.full((3, 2), 0.5)
    with pytest.raises(ValueError, match=r"among \[0, 1\]; got nan"):
        Log(None, [0.0, 1.0, np.nan], [1.0, 2.0, 3.0], e, arms=[0, 1])
    with pytest.raises(ValueError, match=r"among \[0, 1\]; got \[1\]"):
        Log(None, np.array([0, [1], 1], dtype=object), [1.0, 2.0, 3.0], e, arms=[0, 1])


def test_of_a_table():
    frame = pd.DataFrame(X, columns=["u", "v"]).assign(
        action=ARM, reward=REWARD, p=E[np.arange(4), [0, 1, 0, 1]], pa=E[:, 0], pb=E[:, 1]
    )
    one = Log.of(frame, arm="action", propensity="p", x=["u", "v"])
    assert one.features == ("u", "v")
    other = Log.of(pl.from_pandas(frame), arm="action", propensity="p", x=["u", "v"])
    np.testing.assert_array_equal(other.x, one.x)
    assert (other.arm.tolist(), other.features) == (one.arm.tolist(), one.features)
    vectors = {"b": "pb", "a": "pa"}
    two = Log.of(frame, arm="action", probabilities=vectors, propensity="p", arms=["a", "b"])
    assert two.features == ("u", "v")
    np.testing.assert_allclose(two.probabilities, E)
    with pytest.raises(ValueError, match="propensity= must name"):
        Log.of(frame, arm="action")
    with pytest.raises(ValueError, match="'word' is not"):
        Log.of(frame.assign(word=ARM), propensity="p")


def test_of_a_history():
    rng = np.random.default_rng(0)
    bandit = bb.LinTS(["a", "b", "c"], 2, seed=0, min_probability=0.1)
    decisions = []
    for x in rng.normal(size=(30, 2)):
        decisions.append(bandit.choose(x))
        bandit.observe(decisions[-1], rng.normal())
    own = Log.of(bandit.history)
    expected = np.array([d.probabilities for d in decisions])
    np.testing.assert_allclose(own.probabilities, expected, atol=1e-9)
    np.testing.assert_allclose(own.mean, [d.mean for d in decisions])
    bandit.update(rng.normal(size=(2, 2)), ["a", "b"], [0.0, 1.0], propensity=[0.123, 0.2])
    assert Log.of(bandit.history).probabilities is None
    bandit.remove_arm("b")
    gone = Log.of(bandit.history)
    assert gone.arms == ("a", "c", "b")
    assert gone.arm.tolist() == bandit.history.arm.tolist()
    with pytest.raises(TypeError, match="takes a bandit's history or a table"):
        Log.of(3)


def test_what_a_history_has_not_kept_is_said():
    bandit = bb.LinTS(["a", "b"], 1, min_probability=0.2, history=100, seed=0)
    rng = np.random.default_rng(0)
    x, reward = rng.normal(size=(200, 1)), rng.normal(size=200)
    decision = bandit.choose(x)
    whole = bb.ope.Log(x, decision.arm, reward, decision.probabilities, arms=bandit.arms)
    bandit.observe(decision, reward)
    with pytest.warns(UserWarning, match="the log has the latest 100 of 200 rounds"):
        assert len(bb.ope.Log.of(bandit.history)) == 100
    assert "trained on 100 of these 200" in bb.ope.estimate(whole, bandit.greedy).refused
    first = bb.ope.estimate(whole[:100], bandit.greedy)
    assert not first.refused
    assert "the bandit has kept 100 of its 200 rounds" in " ".join(first.warnings)


def test_rounds_before_a_change_of_arms_say_nothing_of_what_else_was_available():
    """An arm that was not there yet earned next to nothing, by a narrow interval."""
    rng = np.random.default_rng(0)
    means = {"a": 0.0, "b": 0.2, "c": 0.4, "d": 1.0}
    bandit = bb.LinTS(["a", "b", "c"], 0, min_probability=0.1, seed=0)
    for t in range(300):
        if t == 100:
            bandit.remove_arm("c")
        if t == 200:
            bandit.add_arm("d")
        decision = bandit.choose(np.zeros(0))
        bandit.observe(decision, means[decision.arm] + 0.1 * rng.normal())
    found = Log.of(bandit.history)
    for arm in found.arms:
        with pytest.raises(ValueError, match="not known to have been available in "):
            bb.ope.estimate(found, arm)
    with pytest.raises(ValueError, match="in every round"):
        bb.ope.estimate(found, "c", while_available=True)
    for arm in ("a", "b", "d"):
        result = bb.ope.estimate(found, arm, while_available=True)
        assert abs(result.value - means[arm]) < 4 * result.se
        assert result.n == 100


def test_arms_that_were_not_available_are_left_out_of_a_log_of_propensities():
    available = np.array([[1, 1], [1, 1], [1, 0], [1, 1]])
    found = log(probabilities=None, propensity=[0.5, 0.75, 1.0, 0.5], available=available)
    with pytest.raises(ValueError, match="not known to have been available in 1 of 4"):
        bb.ope.estimate(found, "b")
    assert bb.ope.estimate(found, "b", while_available=True).n == 3
    assert bb.ope.estimate(found, "a").n == 4


def test_rewards_within_a_delay():
    """Later ones are missing, or the default; the last rounds, which lack the time, are left out.

    Also where nobody clicked within the delay, and the only click came in the last rounds.
    """
    reward = [1.0, 0.0, np.nan, 2.0]
    timed = log(reward=reward, time=[0, 1, 2, 9], reward_time=[0.5, 6, np.nan, 10])
    np.testing.assert_array_equal(timed.within(2, default=-1.0).reward, [1.0, -1.0, -1.0])
    for default in ("none", None, np.inf, True):
        with pytest.raises(ValueError, match="default must be a finite number"):
            timed.within(2, default=default)
    late = log(reward=[np.nan] * 3 + [1.0], time=[0, 1, 2, 9], reward_time=[np.nan] * 3 + [10])
    np.testing.assert_array_equal(late.within(2, default=0).reward, [0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="must not all be missing"):
        late.within(2)
    assert np.isnan(late[:3].reward).all()


def test_slices_keep_every_part():
    """Of all attributes that a log has, those of rounds are cut and no other changes."""
    whole = log(time=[1, 2, 3, 4], reward_time=[2, 3, 4, 5], batch=[0, 0, 1, 1], mean=E,
                available=np.ones((4, 2)))  # fmt: skip
    bb.ope.check(whole)
    assert len(whole.batches) == 2
    part = whole[np.array([True, False, True, True])]
    assert len(part.batches) == 2
    assert bb.ope.check(part).log is part
    for name, value in vars(whole).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(part, name), value[[0, 2, 3]])
    assert (part.arms, part.features, part.encoder) == (whole.arms, whole.features, None)
    assert [half.arm.tolist() for half in whole.split(0.5)] == [["a", "b"], ["a", "b"]]
    with pytest.raises(IndexError):
        whole[::-1]


def test_what_is_not_tested_is_not_said_to_have_passed():
    rng = np.random.default_rng(0)
    arm = rng.integers(3, size=90)
    only = bb.ope.check(Log(None, arm, rng.normal(size=90), propensity=np.full(90, 1 / 3)))
    assert np.isnan(only.log_e)
    assert "not tested: only the chosen arms' probabilities" in repr(only)
    certain = bb.ope.check(Log(None, arm, rng.normal(size=90), np.eye(3)[arm]))
    assert "not tested: every choice had probability 1" in repr(certain)
    for doubt in (only, certain):
        assert not doubt.refuted
        assert "refuted" not in repr(doubt)
    tested = bb.ope.check(Log(None, arm, rng.normal(size=90), np.full((90, 3), 1 / 3)))
    assert tested.untested == ""
    assert "not refuted" in repr(tested)


def test_open_rewards_end_every_kind_of_target():
    """Also one that was computed for the whole log, as that of a saved bandit with an encoder."""
    rng, n = np.random.default_rng(0), 200
    p = np.full((n, 2), 0.5)
    reward = np.where(np.arange(n) < 150, rng.normal(size=n), np.nan)
    data = Log(rng.normal(size=(n, 1)), rng.integers(2, size=n), reward, p)
    bandit = bb.LinTS(2, 1, min_probability=0.1)
    pi = bandit.probabilities(data.x)
    targets = {"one": bandit, "two": pi, "three": target_of(data, bandit)}
    found = bb.ope.evaluate(data, targets, missing="open").table
    assert (found["n"] == 150).all()
    assert found["estimate"].nunique() == 1
    pair = bb.ope.estimate(data, (target_of(data, bandit), 0), missing="open")
    assert pair.n == 150


THIRDS = np.full((6, 3), 0.333333)
CHOSEN = ["a", "b", "c"] * 2


def frame_of(p):
    columns = {f"p_{arm}": p[:, k] for k, arm in enumerate("abc")}
    return pd.DataFrame({"arm": CHOSEN, "reward": np.arange(6.0), "propensity": p[:, 0], **columns})


def by_arrays(p, folder):
    return Log(None, CHOSEN, np.arange(6.0), p, arms=["a", "b", "c"], propensity=p[:, 0])


def by_frame(p, folder):
    return Log.of(frame_of(p), x=[], probabilities={arm: f"p_{arm}" for arm in "abc"})


def by_file(p, folder):
    frame_of(p).to_csv(folder / "log.csv", index=False)
    probabilities = {arm: f"p_{arm}" for arm in "abc"}
    return bb.ope.read_log(folder / "log.csv", x=[], probabilities=probabilities)


OF_ROUNDS = {
    "x": X, "reward": np.array(REWARD), "probabilities": E, "propensity": E[range(4), [0, 1, 0, 1]],
    "batch": np.arange(4.0), "mean": 1.0 + E, "available": np.ones((4, 2)), "time": np.arange(4.0),
    "reward_time": np.arange(4.0) + 0.5,
}  # fmt: skip


@pytest.mark.parametrize("name", OF_ROUNDS)
def test_a_log_keeps_what_was_checked(name):
    given = {k: v.copy() for k, v in OF_ROUNDS.items()}
    found = log(**given)
    given[name][:] = -7.0
    np.testing.assert_array_equal(getattr(found, name), OF_ROUNDS[name])


def test_a_policy_cannot_change_the_log():
    def first(x):
        x[:] = 0.0
        return E

    found = log()
    bb.ope.estimate(found, first, force=True)
    np.testing.assert_array_equal(found.x, X)


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame, pa.table])
def test_columns_of_any_table_are_found_by_name(table):
    found = log(
        x=table({"u": X[:, 0], "v": X[:, 1]}),
        probabilities=table({"b": E[:, 1], "a": E[:, 0]}),
        arms=["a", "b"],
    )
    assert found.features == ("u", "v")
    np.testing.assert_array_equal(found.probabilities, E)


@pytest.mark.parametrize("read", [by_arrays, by_frame, by_file])
def test_rounded_probabilities_are_rescaled_and_said(read, tmp_path):
    """One tolerance for every way in: three times .333333, and as much as 1e-4."""
    for off in (1e-6, 5e-5, 9e-5):
        p = THIRDS + (1 - off - 0.999999) / 3
        with pytest.warns(UserWarning, match="probabilities of 6 of 6 rounds sum to 1 only up to"):
            found = read(p, tmp_path)
        np.testing.assert_allclose(found.probabilities, 1 / 3, rtol=1e-12)
        np.testing.assert_allclose(found.propensity, 1 / 3, rtol=1e-12)
    with warnings.catch_warnings(action="error"):
        read(np.float32([[1 / 3] * 3] * 6).astype(float), tmp_path)
    with pytest.raises(ValueError, match="sum to 1"):
        read(THIRDS - 2e-4 / 3, tmp_path)


def test_other_ways_in_have_the_same_tolerance():
    log = Log(None, CHOSEN * 20, np.arange(120.0) % 7, np.full((120, 3), 1 / 3), arms=list("abc"))
    with pytest.warns(UserWarning, match="a target's probabilities of 120 of 120 rounds"):
        found = bb.ope.estimate(log, np.tile(THIRDS, (20, 1)))
    assert found.value == pytest.approx(bb.ope.estimate(log, np.full((120, 3), 1 / 3)).value)
    bandit = bb.BLTS(["a", "b"], 1)
    with pytest.warns(UserWarning, match=r"propensities up to 1\.00005 are 1"):
        bandit.update([[1.0], [2.0]], ["a", "b"], [1.0, 0.0], propensity=[1.00005, 0.5])
    np.testing.assert_array_equal(bandit.history.propensity, [1.0, 0.5])
    with pytest.raises(ValueError, match=r"propensities must be in \(0, 1\]; got 1\.0002 in round"):
        bandit.update([[1.0]], ["a"], [1.0], propensity=[1.0002])
    with pytest.raises(ValueError, match="propensities are missing in 1 of 2 rounds, first in"):
        bandit.update([[1.0], [2.0]], ["a", "b"], [1.0, 0.0], propensity=[0.5, np.nan])
    assert bandit.history.total == 2


@pytest.mark.parametrize(
    "times",
    [
        ["2026-01-02T10:00:00Z", "2026-01-02 11:00:00.5+01:00", "2026-01-02 10:00:01"],
        ["2026-01-02 10:00:00", "2026-01-02T10:00:00.500+0000", "2026-01-02T10:00:01Z"],
        pd.date_range("2026-01-02 10:00", periods=3, freq="500ms"),
        [1767348000.0, 1767348000.5, 1767348001],
        list(pd.date_range("2026-01-02 10:00", periods=3, freq="500ms", tz="UTC")),
    ],
    ids=["text", "more text", "dates", "seconds", "objects"],
)
def test_times_of_a_table_are_read_as_those_of_a_file(times, tmp_path):
    frame = pd.DataFrame({"arm": [0, 1, 0], "reward": 1.0, "propensity": 0.5, "at": times})
    frame["late"] = frame["at"]
    frame.to_csv(tmp_path / "log.csv", index=False)
    columns = {"time": "at", "reward_time": "late", "x": []}
    for found in (Log.of(frame, **columns), bb.ope.read_log(tmp_path / "log.csv", **columns)):
        assert found.time.tolist() == [1767348000.0, 1767348000.5, 1767348001.0]
        assert found.reward_time.tolist() == found.time.tolist()
    with pytest.raises(ValueError, match=r"'at' \(time\) must be times.*; got '1/2/2026'"):
        Log.of(frame.assign(at="1/2/2026"), time="at", x=[])


@pytest.mark.parametrize("dtype", ["float64", "object"])
def test_arms_that_are_whole_floats_find_their_columns_of_probabilities(dtype):
    arm = pd.Series([1.0, 2.0, 1.0], dtype=dtype)
    frame = pd.DataFrame({"arm": arm, "reward": [1.0, 0.0, 1.0], "p_1": 0.25, "p_2": 0.75})
    found = Log.of(frame)
    assert found.arms == (1, 2)
    np.testing.assert_allclose(found.propensity, [0.25, 0.75, 0.25])


def test_a_name_that_came_back_is_one_arm():
    bandit = bb.LinTS(["a", "b"], 1, seed=0)
    bandit.update(np.ones((4, 1)), ["a", "b", "a", "b"], REWARD, propensity=np.full(4, 0.5))
    bandit.remove_arm("b")
    bandit.add_arm("b")
    bandit.update(np.ones((2, 1)), ["b", "a"], [1.0, 0.0], propensity=[0.25, 0.75])
    found = Log.of(bandit.history)
    assert found.arms == ("a", "b")
    assert found.arm.tolist() == ["a", "b", "a", "b", "b", "a"]
    np.testing.assert_allclose(found.propensity, [0.5, 0.5, 0.5, 0.5, 0.25, 0.75])


def test_a_reward_without_a_time_may_be_none_among_dates():
    days = [datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 2, tzinfo=UTC)]
    log = Log(None, [0, 1], [np.nan, 1.0], propensity=[0.5, 0.5], time=days,
              reward_time=[None, days[1]])  # fmt: skip
    np.testing.assert_array_equal(log.reward_time, [np.nan, days[1].timestamp()])
