"""`bandit.update(log)`: the rounds of a `bb.ope.Log`, as they would be learned one by one."""

import warnings

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb
from bayesbandit.ope import Log, read_log
from tests.players import anatomy

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
