"""An alarm when rewards change, which is rare when they do not."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_ndtr, logsumexp

import bayesbandit as bb
from bayesbandit.beliefs.drift_test import (
    CHANGE_SDS,
    LEVEL_QUANTILES,
    PRIOR_OF_CHANGE,
    ROUNDS_OF_SCALES,
    e_process,
    mixed,
    scores,
)
from bayesbandit.beliefs.half_lives import prior
from bayesbandit.beliefs.memory import HALF_LIVES
from bayesbandit.kernels.scoring import P_SWITCH

D = 3


def played(seed, T=300, flip=None, **settings):
    """A bandit after T rounds; at `flip` the best arm changes."""
    rng = np.random.default_rng(seed)
    x, theta = rng.normal(size=(T, D)), 0.3 * rng.normal(size=(3, D))
    mean = 0.5 + 0.3 * (np.arange(3) == 0) + x @ theta.T
    if flip is not None:
        mean[flip:] = mean[flip:, [1, 0, 2]]
    noise = mean + 0.5 * rng.normal(size=(T, 3))
    bandit = bb.LinTS(3, D, seed=seed, min_probability=0.05, history=None, **settings)
    bandit.play(x, noise, every=T)
    return bandit


def test_it_is_the_wealth_of_a_mixture_of_half_lives():
    """Which bet on whether rewards are 0, and on whether the others are above a level: a mean over
    levels. The first rounds tell units alone."""
    history = played(1, 120).history
    reward = history.reward * (np.arange(120) % 3 > 0)
    found = e_process(history.x, history.arm, reward, 0.01)
    first = history.x[:ROUNDS_OF_SCALES]
    z = (history.x - first.mean(axis=0)) / first.std(axis=0)
    there = reward != 0.0
    levels = np.quantile(reward[:ROUNDS_OF_SCALES][there[:ROUNDS_OF_SCALES]], LEVEL_QUANTILES)
    above = [
        np.where(there & (reward != level), 1.0 * (reward > level), np.nan) for level in levels
    ]
    logs = np.zeros((4, 120))
    for total, happened in zip(logs, (1.0 * there, *above), strict=True):
        weight, log = np.array([1 - PRIOR_OF_CHANGE, *[PRIOR_OF_CHANGE / 3] * 3]), 0.0
        for t, p in enumerate(np.exp(scores(z, history.arm, happened, HALF_LIVES))):
            seen = happened[:t][~np.isnan(happened[:t])]
            if t >= ROUNDS_OF_SCALES and np.ptp(seen) == 1.0 and not np.isnan(p).any():
                log += np.log(weight @ p / p[0])
                weight = (1 - P_SWITCH) * weight * p / (weight @ p) + P_SWITCH * prior(len(p))
            total[t] = log
    log_e = logs[0] + np.log(np.exp(logs[1:]).mean(axis=0))
    np.testing.assert_allclose(found.log_e, log_e, atol=1e-9)
    bandit = bb.LinTS(3, D, history=None)
    bandit.update(history.x, history.arm, reward)
    np.testing.assert_allclose(bandit.drift_test().log_e, log_e, atol=1e-9)


def test_chances_are_those_of_a_probit_regression():
    """Of which an arm without contexts has an integral over its constant alone."""
    rng, theta = np.random.default_rng(7), np.linspace(-15.0, 15.0, 20_001)
    prior = stats.norm.logpdf(theta) + np.log(theta[1] - theta[0])
    n = 300
    for share in (0.03, 0.4):
        happened = rng.random(n) < share
        k = happened.sum()
        exact = logsumexp(prior + k * log_ndtr(theta) + (n - k) * log_ndtr(-theta))
        rows = np.ones((n, 1)), 1.0 + np.arange(n), np.zeros(n, int), 1.0 * happened
        found = mixed(*rows, np.zeros(n), None, (1.0,))
        assert found.sum() == pytest.approx(exact, abs=0.5)


def test_what_forgets_returns_to_what_does_not():
    """A round whose feature is 0 in all rounds before it is foretold as if nothing had changed."""
    rng = np.random.default_rng(5)
    x = np.zeros((80, 1))
    happened = 1.0 * (rng.random(80) < 0.3)
    late = np.r_[np.arange(79), 1e9]  # a tick when all is forgotten
    rows = np.column_stack([x, np.ones(80)]), late, np.zeros(80, int), happened
    offset = rng.normal(size=80)
    found = mixed(*rows, offset, 125.0, CHANGE_SDS)
    assert found[-1] == pytest.approx(log_ndtr((2.0 * happened[-1] - 1.0) * offset[-1]))
    assert abs(found[-2] - log_ndtr((2.0 * happened[-2] - 1.0) * offset[-2])) > 1e-3


@pytest.mark.parametrize("binary", [False, True])
def test_it_has_no_units_and_no_zero(binary):
    rng = np.random.default_rng(8)
    x, arm, reward = unchanging(rng, 300, "normal")
    if binary:
        reward = 1.0 * (reward > 0.5)
    one = e_process(x, arm, reward, 0.01)
    other = e_process([1e6, 1e-3, 1.0] * x + [1e5, 0.0, 7.0], arm, 5000.0 - 30.0 * reward, 0.01)
    np.testing.assert_allclose(one.log_e, other.log_e, atol=1e-6)
    unasked = scores(x, arm, np.full(300, np.nan), HALF_LIVES)
    assert np.isnan(unasked).all()


def test_rewards_that_become_0_are_a_change():
    x, arm, reward = unchanging(np.random.default_rng(9), 800, "normal")
    reward[600:] *= np.random.default_rng(9).random(200) < 0.7
    assert 600 < e_process(x, arm, reward, 0.01).at < 700


def test_a_change_is_noticed_and_a_bandit_that_forgets_notices_it_too():
    for memory in ({}, {"half_life": 200}, {"half_life": "auto"}):
        still, changes = played(2, 1200, **memory), played(2, 1200, flip=800, **memory)
        assert not still.drift_test().alarm
        found = changes.drift_test()
        assert 800 < found.at < 1200
        assert found.largest > 2
        assert "alarm at round" in repr(found)


def unchanging(rng, T, kind):
    """Rounds of arms whose rewards are normal, or rarely 1 or an amount and else 0. Contexts are 0,
    or have a trend in units of their own; or arms are many."""
    K = 30 if kind == "many" else 3
    x, arm = rng.normal(size=(T, D)) * (kind != "constant"), rng.integers(0, K, T)
    if kind in ("rare", "revenue"):
        happened = rng.random(T) < np.array([0.05, 0.03, 0.03])[arm]
        return x, arm, happened * (np.exp(rng.normal(size=T)) if kind == "revenue" else 1.0)
    if kind == "trend":
        x = 0.3 * x + np.linspace(-1.0, 1.0, T)[:, None] * np.arange(1, D + 1)
    theta, level = rng.normal(size=(K, D)), rng.normal(size=K)
    reward = level[arm] + (x * theta[arm]).sum(axis=1) + rng.normal(size=T)
    return 30.0 + x * (0.01 if kind == "trend" else 1.0), arm, reward


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["normal", "rare", "revenue", "constant", "trend", "many"])
def test_what_stands_still_does_not_alarm(kind):
    rng, alarms = np.random.default_rng(0), 0
    for _ in range(100):
        alarms += e_process(*unchanging(rng, 400, kind), 0.05).alarm
    assert alarms <= 0.02 * 100


@pytest.mark.slow
@pytest.mark.parametrize(("d", "share"), [(0, 0.5), (0, 0.01), (0, None), (20, None)])
def test_many_arms_that_stand_still_do_not_alarm(d, share):
    """Which are alike, so that a prior knows them better than their first rounds do."""
    rng, alarms = np.random.default_rng(1), 0
    for _ in range(6):
        x, arm = rng.normal(size=(10_000, d)), rng.integers(0, 100, 10_000)
        noise = rng.normal(size=10_000)
        reward = (
            x[:, :1].sum(axis=1) + noise if share is None else 1.0 * (noise < stats.norm.ppf(share))
        )
        alarms += e_process(x, arm, reward, 0.05).alarm
    assert alarms == 0
    # the last test of its kind must be able to find a change
    later = np.arange(10_000) > 5000
    moved = reward + 2.0 * later * (arm % 2)
    assert share is not None or e_process(x, arm, moved, 0.05).at > 5000


def test_bad_levels_and_bandits_without_rounds():
    bandit = bb.LinTS(2, 1)
    assert not bandit.drift_test().alarm
    for level in (0, 1, -0.1, np.nan):
        with pytest.raises(ValueError, match="level must"):
            bandit.drift_test(level)


def test_arms_that_share_a_model_are_foretold_together():
    rng = np.random.default_rng(4)
    shared = bb.Bandit(5, bb.Shared(bb.Ridge(ridge=2.0)), bb.Thompson(), n_features=2)
    x, arm, r = rng.normal(size=(50, 2)), rng.integers(0, 5, 50), rng.normal(size=50)
    shared.update(x, arm, r)
    alone = bb.LinTS(1, 2, ridge=2.0)
    alone.update(x, np.zeros(50, int), r)
    np.testing.assert_array_equal(shared.drift_test().log_e, alone.drift_test().log_e)
