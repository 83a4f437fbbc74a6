"""Logs are learned as their rounds, one by one, in one call or in many; of rounds without
propensities none is invented."""

import warnings

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb
from bayesbandit.ope import Log, read_log
from tests.bandit.kinds import KINDS
from tests.cases import few, moments_of
from tests.players import anatomy, world

ARMS = ["mail", "call"]
USED = ["age", "plan"]


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.2, 0.8, size=n)
    mail = rng.random(n) < p
    return pd.DataFrame({
        "age": rng.normal(40, 9, size=n), "plan": np.where(rng.random(n) < 0.5, "free", "paid"),
        "arm": np.where(mail, *ARMS), "reward": rng.normal(size=n),
        "propensity": np.where(mail, p, 1 - p), "time": pd.date_range("2026-01-01", periods=n),
    })  # fmt: skip


@pytest.fixture
def path(tmp_path):
    table().to_parquet(tmp_path / "log.parquet")
    return tmp_path / "log.parquet"


def same(one, other):
    np.testing.assert_allclose(one.belief.arms, other.belief.arms, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(one.history.propensity, other.history.propensity)
    np.testing.assert_array_equal(one.history.weight, other.history.weight)


@pytest.mark.parametrize("make", [bb.LinTS, bb.BLTS])
def test_a_log_is_learned_as_its_table(make, path):
    encoder = bb.Encoder.fit(table(seed=1)[USED])
    first, later = read_log(path, encoder=encoder).split(0.5)
    assert first.encoder is later.encoder is encoder
    bandit, told = make(ARMS, encoder=encoder), make(ARMS, encoder=encoder)
    bandit.update(first)
    half = table()[:150]
    told.update(half[USED], half["arm"], half["reward"], half["propensity"])
    same(bandit, told)
    assert bb.ope.estimate(later, bandit).n == 150
    assert "trained on 150" in bb.ope.estimate(first, bandit).refused


def test_a_log_without_an_encoder_of_yours_has_its_own(path):
    log = read_log(path)
    bandit = bb.LinTS(log.arms, encoder=log.encoder)
    bandit.update(log)
    assert log.encoder.columns == ("age", "plan")
    assert bandit.choose({"age": 30.0, "plan": "free"}).arm in ARMS
    with pytest.warns(UserWarning, match="make it with encoder=log.encoder"):
        bb.LinTS(log.arms, log.x.shape[1]).update(log)


@pytest.mark.parametrize("clock", ["rounds", "time"])
def test_times_of_a_log_are_those_of_a_bandit_that_forgets(clock):
    frame = table().drop(columns="plan")
    made = [bb.LinTS(ARMS, 1, half_life=90.0 * 86_400, clock=clock) for _ in range(2)]
    made[0].update(Log.of(frame))
    at = frame["time"] if clock == "time" else None
    made[1].update(frame[["age"]].to_numpy(), frame["arm"], frame["reward"], frame["propensity"],
                   time=at)  # fmt: skip
    for bandit in made:
        bandit.now = 1.8e9
    x = frame[["age"]].to_numpy()[:9]
    np.testing.assert_allclose(*(b.belief.predict(x).mean for b in made), rtol=1e-6)
    if clock == "time":
        with pytest.raises(ValueError, match="the log has no times"):
            made[0].update(Log.of(frame, drop=["time"]))


def refused(bandit, said, *arguments, kind=ValueError, **named):
    before = anatomy(bandit)
    with pytest.raises(kind, match=said):
        bandit.update(*arguments, **named)
    assert anatomy(bandit) == before


def test_contexts_of_another_encoder_are_refused(path):
    """Both have as many features: the numbers would be learned as others."""
    ours, other = (bb.Encoder.fit(table(seed=seed)[USED]) for seed in (1, 2))
    log = read_log(path, encoder=other)
    bandit = bb.LinTS(ARMS, encoder=ours)
    refused(bandit, "not made by the bandit's encoder", log)
    plain = Log(log.x, log.arm, log.reward, propensity=log.propensity)
    refused(bandit, "not made by the bandit's encoder", plain)
    for target in (bandit, bandit.greedy):
        with pytest.raises(ValueError, match="not made by the bandit's encoder"):
            bb.ope.estimate(log, target)
    past = bb.LinTS(ARMS, encoder=ours)
    past.update(read_log(path, encoder=ours))
    bandit.update(Log.of(past.history))  # its features have the encoder's names
    same(bandit, past)


def test_what_is_no_log_is_a_sentence():
    frame = table().drop(columns="plan")
    log, bandit = Log.of(frame), bb.LinTS(ARMS, 1)
    refused(bandit, "or a log alone", frame, kind=TypeError)
    refused(bandit, "unknown arm None|or a log alone", frame[["age"]], frame["arm"])
    refused(bandit, "the log's own propensities", log, propensity=0.5, kind=TypeError)
    refused(bandit, r"the bandit takes 1 features; the log has \[\]", Log.of(frame, x=[]))
    refused(bandit, "unknown arm", Log.of(frame.assign(arm=frame["arm"].replace("call", "fax"))))
    with warnings.catch_warnings(action="error"):
        bandit.update(log)


T, THREE = 3300, ("a", "b", 7)


def long_log(seed=0):
    """Contexts, arms, rewards and propensities of rounds in which the last arm is rare."""
    rng = np.random.default_rng(seed)
    x, reward = world(rng, T, d=2)
    k = rng.choice(3, T, p=[0.55, 0.43, 0.02])
    return x, [THREE[i] for i in k], reward[np.arange(T), k], rng.uniform(0.05, 1.0, T)


def close(one, other):
    probabilities = (bandit.probabilities(np.eye(2)) for bandit in (one, other))
    np.testing.assert_allclose(*probabilities, rtol=1e-9, atol=1e-12)
    assert (one.t, one.history.total) == (other.t, other.history.total)
    pd.testing.assert_frame_equal(one.history.to_frame(), other.history.to_frame())


@pytest.mark.parametrize("history", [10_000, 700, 0, None])
@pytest.mark.parametrize("given", [True, False])
def test_one_call_or_many(history, given):
    preset = bb.BLTS if given else bb.LinTS
    x, arm, reward, p = long_log()
    whole, parts = (preset(THREE, 2, history=history) for _ in range(2))
    whole.update(x, arm, reward, p if given else None)
    for part in np.array_split(np.arange(T), 40):
        some = [arm[i] for i in part]
        parts.update(x[part], some, reward[part], p[part] if given else None)
    close(whole, parts)


NAMES = {
    "texts": lambda arm: np.array(arm), "objects": lambda arm: np.array(arm, dtype=object),
    "a column": pd.Series, "categories": lambda arm: pd.Series(arm, dtype="category"),
}  # fmt: skip


@pytest.mark.parametrize("form", NAMES)
def test_arms_are_named_in_any_form(form):
    x, arm, reward, p = long_log()
    arm = [str(a) for a in arm]
    one, other = (bb.BLTS(("a", "b", "7"), 2) for _ in range(2))
    for part in np.array_split(np.arange(T), 40):  # too few to be named together
        one.update(x[part], [arm[i] for i in part], reward[part], p[part])
    other.update(x, NAMES[form](arm), reward, p)
    close(one, other)


@pytest.mark.parametrize("bad", ["c", True, 7.0, None, np.nan, 3, -1])
def test_an_unknown_arm_among_many_changes_nothing(bad):
    x, arm, reward, p = long_log()
    bandit = bb.BLTS(THREE, 2)
    before = anatomy(bandit)
    with pytest.raises(ValueError, match="unknown arm"):
        bandit.update(x, [*arm[:-1], bad], reward, p)
    assert anatomy(bandit) == before
    if type(bad) is int:
        with pytest.raises(ValueError, match=f"unknown arm np.int64.{bad}"):
            bb.LinTS(3, 2).update(x, np.array([0, 1, 2] * 1099 + [0, 1, bad]), reward)


KINDS_OF_LOGS = "LinTS", "BLTS", "BLTS pooled", "BLUCB", "residual", "forest", "conjugate", "tree"


def make(name):
    return KINDS[name].make(["a", "b", "c"], 2)


def short_log(n=60, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    return x, np.array(["a", "b", "c"])[rng.integers(3, size=n)], 1.0 * (x[:, 0] > 0)


@few("LinTS", "BLTS", "BLUCB", "residual", "forest", "tree")
@pytest.mark.parametrize("name", KINDS_OF_LOGS)
def test_the_history_has_no_propensity(name, tmp_path):
    bandit, (x, arm, reward) = make(name), short_log()
    bandit.update(x[:20], arm[:20], reward[:20])
    bandit.update(x[20:40], arm[20:40], reward[20:40], propensity=0.25)
    bandit.observe(bandit.choose(x[40]), reward[40])

    def check(bandit):
        p = bandit.history.to_frame()["propensity"]
        assert p[:20].isna().all()
        assert (p[20:40] == 0.25).all()
        assert 0 < p[40] <= 1
        assert (bandit.history.weight > 0).all()

    check(bandit)
    bandit.save(tmp_path / "b.npz")
    again = bb.Bandit.load(tmp_path / "b.npz")
    check(again)
    for one in (bandit, again):
        one.add_arm("d")
        one.remove_arm("a")
        check(one)
        one.update(x[41:], ["b"] * 19, reward[41:])
        assert np.isnan(one.history.propensity[41:]).all()
    a, b = bandit.choose(x[0]), again.choose(x[0])
    assert (a.arm, a.propensity) == (b.arm, b.propensity)


def test_features_of_the_chosen_arms_are_enough_where_nothing_is_weighted():
    x, _, reward = short_log()
    arm, all_arms = np.arange(60) % 3, np.stack([x, x, x], axis=1)
    one, other = (bb.Bandit(3, bb.Shared(bb.Ridge()), bb.Thompson(), n_features=2) for _ in "ab")
    one.update(x, arm, reward)
    other.update(all_arms, arm, reward)
    np.testing.assert_array_equal(one.history.x, other.history.x)
    for own, theirs in zip(
        moments_of(one.belief, all_arms), moments_of(other.belief, all_arms), strict=True
    ):
        np.testing.assert_array_equal(own, theirs)
    balance = bb.InversePropensity()
    weighted = bb.Bandit(3, bb.Shared(bb.Ridge()), bb.Thompson(), balance, n_features=2)
    with pytest.raises(ValueError, match="give the propensities, or the features of all arms"):
        weighted.update(x, arm, reward)
    weighted.update(all_arms, arm, reward)
    np.testing.assert_array_equal(weighted.history.weight, np.full(60, 3.0))


def test_columns_of_a_table_as_they_are_are_not_what_an_encoder_made():
    """They have the same names, and years were learned and judged as standardised ages."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(40, 9, 60), "income": rng.normal(size=60)})
    bandit = bb.LinTS(["a", "b"], encoder=bb.Encoder.fit(frame), seed=0)
    rounds = frame.assign(arm=["a", "b"] * 30, reward=rng.normal(size=60), propensity=0.5)
    by_hand = Log(frame, rounds["arm"], rounds["reward"], propensity=rounds["propensity"])
    for log in (Log.of(rounds), Log.of(rounds[rounds.columns[::-1]]), by_hand[:30]):
        for judge in (bandit.update, lambda log: bb.ope.estimate(log, bandit)):
            with pytest.raises(ValueError, match="were not made by the bandit's encoder"):
                judge(log)
