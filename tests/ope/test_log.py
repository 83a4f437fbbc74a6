"""A log is checked at the door; each bad input is a sentence."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import bayesbandit as bb
from bayesbandit.ope import Log

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
    "propensities must be in \\(0, 1\\]; got nan": {
        "probabilities": None, "propensity": [0.5, np.nan, 1, 1]},
    "probabilities must be in \\[0, 1\\]; got nan for 'a' in round 2": {
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
    "arms must be among \\['a', 'b'\\]; got 'c'": {"arm": ["a", "c", "a", "b"]},
    "rewards must have one value for each of 4 rounds": {"reward": [1.0]},
    "rewards must be finite": {"reward": [1.0, np.inf, 0, 0]},
    "rewards must not all be missing": {"reward": [np.nan] * 4},
    "contexts must have shape \\(4, d\\)": {"x": X[:3]},
    "arms= must name the 2 columns": {"arms": None},
    "was not available": {"available": [[1, 1], [1, 0], [1, 1], [1, 1]]},
    "must have probability 0": {"available": [[1, 1], [0, 1], [1, 1], [1, 1]]},
    "differs from the logged probabilities by 0.25": {
        "batch": [0, 0, 0, 0], "snapshots": lambda b, x: np.abs(E - 0.0) * 0 + [0.5, 0.5]
        if len(x) == 4 else None, "probabilities": with_(2, [0.5, 0.5])},
}  # fmt: skip


@pytest.mark.parametrize("said", BAD)
def test_bad_input_is_a_sentence(said):
    with pytest.raises(ValueError, match=said):
        log(**BAD[said])


def test_a_log_of_one_round():
    with pytest.raises(ValueError, match="at least two rounds; got 1"):
        Log(X[:1], ["a"], [1.0], [[1.0, 0.0]], arms=["a", "b"])


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
    assert max(sizes) == 60
    assert [(b.start, b.stop) for b in log(batch=[3, 3, 5, 9]).batches] == [(0, 2), (2, 3), (3, 4)]


def test_slices_are_logs():
    whole = log(time=[1, 2, 3, 4], batch=[0, 0, 1, 1], snapshots=None)
    first, later = whole.split(0.5)
    assert (len(first), len(later)) == (2, 2)
    assert later.arm.tolist() == ["a", "b"]
    np.testing.assert_array_equal(later.time, [3, 4])
    with pytest.raises(IndexError):
        whole[::-1]


def test_within_a_delay():
    timed = log(time=[0, 1, 2, 9], reward_time=[0.5, 6, np.nan, 10])
    some = timed.within(2, default=-1.0)
    np.testing.assert_array_equal(some.reward, [1.0, -1.0, -1.0])
    dated = log(time=pd.date_range("2026-01-01", periods=4), reward_time=[np.nan] * 4)
    assert dated.time[1] - dated.time[0] == 86_400


@pytest.mark.parametrize("default", ["none", None, np.inf, True])
def test_within_takes_a_number_or_nan(default):
    timed = log(time=[0, 1, 2, 9], reward_time=[0.5, 6, np.nan, 10])
    with pytest.raises(ValueError, match="default must be a finite number"):
        timed.within(2, default=default)


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
    with pytest.raises(ValueError, match="no column 'arm'"):
        Log.of(frame)
    with pytest.raises(ValueError, match="propensity= must name"):
        Log.of(frame, arm="action")
    with pytest.raises(ValueError, match="'action' is not"):
        Log.of(frame.assign(arm=ARM), propensity="p")


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
