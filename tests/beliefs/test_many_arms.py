"""Thompson sampling of many arms that share a model: all are scored, and few are compared."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bayesbandit as bb
from bayesbandit import many_arms, predictions
from bayesbandit.kernels.prob_best import joint, points
from bayesbandit.predictions import JointRows
from tests.beliefs.test_linear import seeds

K, D, S = 60, 3, points.JOINT_DRAWS


def world(seed, rounds, model=None, policy=None, arms=K, d=D, **settings):
    """A bandit of many arms with features after some rounds, and contexts (K, d)."""
    rng = np.random.default_rng(seed)
    shared = bb.Shared(model or bb.Ridge())
    bandit = bb.Bandit(arms, shared, policy or bb.Thompson(), n_features=d, **settings)
    x, theta = rng.normal(size=(rounds, d)), rng.normal(size=d) / np.sqrt(d)
    bandit.update(x, rng.integers(0, arms, rounds), x @ theta + rng.normal(size=rounds), 0.5)
    return bandit, rng.normal(size=(arms, d))


def shares(found, i, arms, alpha, seed):
    """The shares of the draws under which each of these arms is best, by all scores; ties split."""
    P, log_width = len(found.axes), points.log_width(found.df)
    noise, width = np.empty((P + 1, S)), np.empty(S)
    joint.put_noise(seed, points.cells(P + 1), 0, points.normals(), log_width, alpha, width, noise)
    theta = found.slopes[:, None] + width * (found.axes.T @ noise[:P])
    score = found.x[i, arms] @ theta
    best = score >= score.max(axis=0) - 1e-9
    return (best / best.sum(axis=0)).mean(axis=1)


@pytest.fixture
def few(monkeypatch):
    """Few arms are compared as many are."""
    monkeypatch.setattr(predictions, "MIN_ARMS_TO_BOUND", 1)
    monkeypatch.setattr(many_arms, "FIRST_BLOCK", 3)


@pytest.mark.slow
@given(
    seed=seeds, rounds=st.integers(1, 400),
    variance=st.sampled_from(["empirical_bayes", "nig", 0.5]),
    intercept=st.booleans(), alpha=st.floats(0.0, 2.0), floor=st.sampled_from([0.0, 0.004]),
)  # fmt: skip
def test_shares_are_those_of_all_scores(seed, rounds, variance, intercept, alpha, floor):
    bandit, x = world(seed, rounds, bb.Ridge(1.0, variance, intercept))
    x[7] = x[3]
    found, known = bandit.belief.predict(np.stack([x, -x])), bandit.posterior(0)
    assert isinstance(found, JointRows)
    for i, z in enumerate((x, -x)):
        np.testing.assert_allclose(found.mean[i], known.mean(z), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.sd[i], known.sd(z), rtol=1e-6)
    spread = known.spread[:D, :D]
    np.testing.assert_allclose(found.axes.T @ found.axes, spread, atol=1e-9 * spread.max())
    arms = np.arange(1, K) if seed % 2 else np.arange(K)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(many_arms, "FIRST_BLOCK", 3)
        patch.setattr(predictions, "MIN_ARMS_TO_BOUND", 1)
        compared = found.compared(arms, np.array([alpha]), np.array([floor]))
        compared.seeds[:] = np.random.default_rng(seed).normal(size=2)
        p = compared.probabilities()
        for i in range(2):
            expected = shares(found, i, arms, alpha, compared.seeds[i])
            expected = floor + (1.0 - len(arms) * floor) * expected
            np.testing.assert_allclose(p[i], expected, atol=1e-12)
        for places in (p.argmax(axis=1), p.argmin(axis=1), np.searchsorted(arms, [7, 7])):
            own = compared.propensities(places)
            np.testing.assert_array_equal(own, p[np.arange(2), places])
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-9)


@pytest.mark.parametrize("rounds", [2, 40, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_decision_among_many_arms(rounds):
    """Also where the posterior is wide, and nearly all arms may be best."""
    bandit, x = world(rounds, rounds, arms=many_arms.MIN_ARMS_TO_BOUND, d=12, history=0)
    found = bandit.belief.predict(x[None])
    every = np.arange(many_arms.MIN_ARMS_TO_BOUND)
    for _ in range(3):
        decision = bandit.choose(x)
        expected = shares(found, 0, every, 1.0, decision.lazy[0].seeds[0])
        own = expected[decision.arm]
        assert decision.propensity == pytest.approx(own, abs=1e-12)
        assert own > 0
    np.testing.assert_allclose(decision.probabilities, expected, atol=1e-12)


@pytest.mark.slow
def test_decisions_are_drawn_with_their_probabilities(few):
    bandit, x = world(0, 12, history=0)
    counts, total, n = np.zeros(K), np.zeros(K), 1000
    for _ in range(n):
        decision = bandit.choose(x)
        counts[decision.arm] += 1
        propensity = decision.propensity
        total += decision.probabilities
        assert decision.propensity == propensity == decision.probabilities[decision.arm] > 0
    p = total / n
    np.testing.assert_allclose(counts / n, p, atol=4 * np.sqrt(0.25 / n))
    assert (p > 0).sum() > 2


def test_what_is_computed_late_is_of_the_moment_of_decision(few):
    bandit, x = world(1, 50, history=5)
    given = x.copy()
    decision, twin = bandit.choose(x[:40], arms=range(40)), bandit.copy()
    mean, sd = bandit.posterior(0).mean(given), bandit.posterior(0).sd(given)
    x[:] = 0.0
    bandit.update(given, np.arange(K), np.ones(K))
    np.testing.assert_allclose(decision.sd[:40], sd[:40], rtol=1e-9)
    np.testing.assert_array_equal(decision.sd[40:], 0.0)
    np.testing.assert_allclose(decision.mean[:40], mean[:40], rtol=1e-9)
    assert not decision.probabilities[40:].any()
    np.testing.assert_allclose(decision.probabilities.sum(), 1.0)
    again = bb.Decision.from_dict(decision.to_dict())
    np.testing.assert_array_equal(again.sd, decision.sd)
    twin.observe(decision, 1.0)
    np.testing.assert_array_equal(twin.history.propensity[-1], decision.propensity)


def test_a_reward_is_weighted_by_the_propensity_alone(few):
    bandit, x = world(4, 30, balance=bb.InversePropensity(), history=0)
    told, decision = bandit.copy(), bandit.choose(np.stack([x, x]))
    bandit.observe(decision, np.array([1.0, -1.0]))
    assert np.isnan(decision.records["last"]).all()
    told.update(decision.x, decision.arm, [1.0, -1.0], decision.propensity)
    np.testing.assert_array_equal(bandit.posterior(0).location, told.posterior(0).location)


def test_equal_arms_share_evenly_and_a_minimum_is_kept(few):
    bandit, x = world(2, 500)
    x[7] = x[3] = x[bandit.greedy(x)[0]] * 1.5
    p = bandit.choose(x).probabilities
    assert p[7] == p[3] > 0.3
    floored, _ = world(2, 60, policy=bb.Thompson(min_probability=0.01), history=0)
    for _ in range(20):
        decision = floored.choose(x)
        assert decision.propensity >= 0.01
    assert decision.propensity == decision.probabilities[decision.arm]
    assert decision.probabilities.min() >= 0.01
    np.testing.assert_allclose(decision.probabilities.sum(), 1.0)


@pytest.mark.parametrize("unit", [1e-200, 1e-60, 1e-18, 1e18, 1e60, 1e200])
def test_units_of_features_change_no_share(few, unit):
    """Also where squares are in the range of float64 alone, or of nothing."""
    bandit, x = world(5, 30)
    found = bandit.belief.predict(x[None])
    scaled = JointRows(unit * x[None], found.location, found.of_theta, found.df)
    np.testing.assert_allclose(scaled.best(), found.best(), atol=1e-12)
