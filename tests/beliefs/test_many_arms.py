"""Thompson sampling of many arms that share a model: only those that may be best are compared."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bayesbandit as bb
from bayesbandit import predictions
from bayesbandit.predictions import JointRows
from tests.beliefs.test_linear import seeds

K, D = 60, 3


def world(seed, rounds, model=None, **settings):
    """A bandit of 60 arms with features after some rounds, and contexts (K, d)."""
    rng = np.random.default_rng(seed)
    shared = bb.Shared(model or bb.Ridge())
    bandit = bb.Bandit(K, shared, bb.Thompson(), n_features=D, **settings)
    x, theta = rng.normal(size=(rounds, D)), rng.normal(size=D)
    bandit.update(x, rng.integers(0, K, rounds), x @ theta + rng.normal(size=rounds))
    return bandit, rng.normal(size=(K, D))


def plain(prediction):
    """The same prediction with the roots of all arms."""
    return bb.Joint(prediction.mean, prediction.root, prediction.df)


@pytest.fixture
def few(monkeypatch):
    """Also of few arms only those that may be best are compared."""
    monkeypatch.setattr(predictions, "FEW", 1)


@given(
    seed=seeds, rounds=st.integers(5, 400),
    variance=st.sampled_from(["empirical_bayes", "nig", 0.5]),
    intercept=st.sampled_from([True, False]), alpha=st.floats(0.0, 2.0),
)  # fmt: skip
def test_arms_that_are_left_out_are_never_best(seed, rounds, variance, intercept, alpha):
    bandit, x = world(seed, rounds, bb.Ridge(1.0, variance, intercept))
    found = bandit.belief.predict(np.stack([x, -x]))
    assert isinstance(found, JointRows)
    whole, alphas = plain(found), np.array([alpha])
    np.testing.assert_allclose(whole.mean, [bandit.posterior(0).mean(z) for z in (x, -x)])
    np.testing.assert_allclose(found.sd, [bandit.posterior(0).sd(z) for z in (x, -x)], rtol=1e-6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(predictions, "FEW", 1)
        kept = found.contenders(np.arange(K), alphas)
        p = found.best(alpha)
    left = np.setdiff1d(np.arange(K), kept)
    assert not whole.best(alpha)[:, left].any()
    np.testing.assert_allclose(p, whole.best(alpha), atol=6e-3)  # other points
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-9)
    draws = found.mean + alpha * (found.draw(2000, np.random.default_rng(seed)) - found.mean)
    assert np.isin(draws.argmax(axis=2), kept).all()


def test_decisions_are_drawn_with_their_probabilities(few):
    bandit, x = world(0, 12, history=0)
    counts, total, n = np.zeros(K), np.zeros(K), 1000
    for _ in range(n):
        decision = bandit.choose(x)
        counts[decision.arm] += 1
        total += decision.probabilities
        assert decision.propensity == decision.probabilities[decision.arm] > 0
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


def test_equal_arms_share_evenly_and_a_minimum_is_kept(few):
    bandit, x = world(2, 500)
    x[7] = x[3] = x[bandit.greedy(x)[0]] * 1.5
    p = bandit.choose(x).probabilities
    assert p[7] == p[3] > 0.3
    floored = bb.Bandit(
        K, bb.Shared(bb.Ridge()), bb.Thompson(min_probability=0.01), n_features=D, history=0
    )
    floored.update(x, np.arange(K), x[:, 0])
    decision = floored.choose(x)
    assert decision.probabilities.min() >= 0.01
    np.testing.assert_allclose(decision.probabilities.sum(), 1.0)
