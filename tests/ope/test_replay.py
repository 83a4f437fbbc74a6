"""A bandit replayed on a log plays the matched rounds as if it had met no others."""

from functools import partial

import numpy as np
import pytest

import bayesbandit as bb
from bayesbandit.ope import Log, replay
from bayesbandit_studies.evidence.designs import linear

ARMS = ["a", "b", "c"]


def uniform(n=600, seed=0, d=2):
    rng = np.random.default_rng(seed)
    x, k = rng.normal(size=(n, d)), rng.integers(3, size=n)
    reward = np.where(k == 0, x[:, 0], np.where(k == 1, -x[:, 0], 0.2)) + rng.normal(size=n)
    return Log(x, np.array(ARMS)[k], reward, np.full((n, 3), 1 / 3), arms=ARMS)


class Always:
    """A player that counts what it was asked."""

    arms, n_features = tuple(ARMS), 2

    def __init__(self, arm="b"):
        self.arm, self.asked, self.told = arm, 0, []

    def choose(self, x):
        self.asked += 1
        return bb.Choice(self.arm)

    def observe(self, choice, reward):
        self.told.append(reward)


@pytest.mark.parametrize(
    "make",
    [bb.LinTS, bb.BLTS, bb.LinUCB, partial(bb.LinUCB, alpha=lambda t: np.log(t + 1)),
     partial(bb.LinTS, min_probability=lambda t: t**-0.5 / 3),
     partial(bb.Bandit, model=bb.Ridge(), policy=bb.Boltzmann())],
)  # fmt: skip
def test_rounds_that_do_not_match_have_not_happened(make):
    """A fresh bandit that meets only the matched rounds chooses the same arms, and ends alike."""
    log = uniform()
    given = make(arms=ARMS, n_features=2, seed=3)
    found = replay(log, given)
    assert given.t == 0
    live = make(arms=ARMS, n_features=2, seed=3)
    for t in found.rounds:
        decision = live.choose(log.x[t])
        assert decision.arm == log.arm[t]
        live.observe(decision, log.reward[t])
    assert found.bandit.t == live.t == found.matched
    np.testing.assert_array_equal(found.bandit.history.propensity, live.history.propensity)
    np.testing.assert_array_equal(found.bandit.probabilities(log.x), live.probabilities(log.x))
    assert found.value == pytest.approx(live.history.reward.mean())


def test_of_a_uniform_log_every_round_is_kept():
    log = uniform()
    found = replay(log, Always("b"))
    assert found.thinned == len(log)
    np.testing.assert_array_equal(found.rounds, np.flatnonzero(log.arm == "b"))
    assert found.value == pytest.approx(log.reward[log.arm == "b"].mean())
    assert found.bandit.asked == found.matched  # as if there had been no others


@pytest.mark.slow
def test_kept_rounds_of_an_adaptive_log_are_uniform():
    """By arm, and by context: over 60 logs of Thompson sampling."""
    count, x = np.zeros(3), []
    for i, log in enumerate(linear(60, seed=5, floor=lambda t: 0.1).logs()):
        for k in range(3):
            player = Always(k)
            player.arms, player.n_features = (0, 1, 2), 1
            found = replay(log, player, min_probability=0.1, seed=i)
            assert found.expected == pytest.approx(100)
            count[k] += found.matched
            x += log.x[found.rounds, 0].tolist()
    total = count.sum()
    assert abs(count / total - 1 / 3).max() < 4 * np.sqrt(2 / 9 / total)
    assert abs(np.mean(x)) < 4 / np.sqrt(total)
    assert total == pytest.approx(60 * 3 * 100, rel=0.03)


@pytest.mark.slow
def test_kept_rounds_give_each_arm_its_value():
    """Of arms that are worth 0 in all contexts together, and chosen where they are worth more."""
    z = []
    for i, log in enumerate(linear(40, seed=6, floor=lambda t: 0.1).logs()):
        player = Always(2)
        player.arms, player.n_features = (0, 1, 2), 1
        found = replay(log, player, min_probability=0.1, seed=i)
        z.append(found.value / found.se)
    assert abs(np.mean(z)) < 4 / np.sqrt(40)


def test_arms_that_are_not_always_there():
    log = uniform()
    on = np.ones((600, 3), dtype=bool)
    on[log.arm != "c", 2] = np.arange((log.arm != "c").sum()) % 2 == 0
    e = np.where(on, 1.0, 0.0) / on.sum(axis=1, keepdims=True)
    some = Log(log.x, log.arm, log.reward, e, arms=ARMS, available=on)
    found = replay(some, bb.LinTS(ARMS, 2))
    mean = found.bandit.history.ordered()[:, 3:6]
    np.testing.assert_array_equal(mean > -np.inf, on[found.rounds])
    with pytest.raises(TypeError, match=r"must be a bb\.Bandit"):
        replay(some, Always())
    with pytest.raises(ValueError, match=r"had probability 0 in .* of 600 rounds"):
        replay(Log(log.x, log.arm, log.reward, e, arms=ARMS), bb.LinTS(ARMS, 2))


def test_declared_probabilities():
    log = uniform()
    told = Log(log.x, log.arm, log.reward, arms=ARMS, propensity=log.propensity)
    assert "stands for that of all arms" in replay(told, Always()).warnings[0]
    half = replay(log, Always(), min_probability=np.linspace(0.1, 0.3, 600))
    assert half.expected == pytest.approx(120)
    assert half.matched < 170
    for wrong in (0.0, 0.5, np.nan):
        with pytest.raises(ValueError, match="at most every logged probability; got"):
            replay(log, Always(), min_probability=wrong)


def test_refusals_are_sentences():
    log = uniform()
    with pytest.raises(ValueError, match=r"would match 40\.0 on average, fewer than 50: the least"):
        replay(log[:120], Always())
    with pytest.raises(ValueError, match=r"arms that the log has not: \['d'\]"):
        replay(log, bb.LinTS(["a", "d"], 2))
    with pytest.raises(ValueError, match="n_features = 3; the log has 2"):
        replay(log, bb.LinTS(ARMS, 3))
    nobody = type("Nobody", (), {"arms": tuple(ARMS), "n_features": 2})()
    with pytest.raises(TypeError, match=r"`choose` and `observe`; got <.*Nobody object>"):
        replay(log, nobody)
    with pytest.raises(TypeError, match=r"takes a bb\.ope\.Log"):
        replay(log.x, Always())
    open_ = Log(log.x, log.arm, np.where(np.arange(600) > 500, np.nan, 1.0), log.probabilities,
                arms=ARMS)  # fmt: skip
    with pytest.raises(ValueError, match="99 of 600 rewards are missing"):
        replay(open_, Always())
    trained = bb.LinTS(ARMS, 2)
    trained.update(log.x[:100], log.arm[:100], log.reward[:100], log.propensity[:100])
    with pytest.raises(ValueError, match="trained on 100 of these 600 rounds"):
        replay(log, trained)
    with pytest.raises(ValueError, match="features of arms"):
        replay(log, bb.Bandit(ARMS, bb.Shared(bb.Ridge()), bb.Thompson(), n_features=2))


def test_a_refuted_log_gets_no_interval():
    log = uniform()
    played = np.array(["a"] * 500 + ["b"] * 100)
    wrong = Log(log.x, played, log.reward, log.probabilities, arms=ARMS)
    found = replay(wrong, Always("a"))
    assert "refuted" in found.refused
    assert np.isnan(found.low)
    assert np.isfinite(replay(wrong, Always("a"), force=True).low)


def test_a_bandit_with_an_encoder():
    import pandas as pd

    log = uniform()
    enc = bb.Encoder.fit(pd.DataFrame(log.x, columns=["u", "v"]))
    found = replay(log, bb.LinTS(ARMS, encoder=enc))
    assert found.bandit.encoder is enc
    assert found.matched > 100
