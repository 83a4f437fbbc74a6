"""SuperLinUCB: levels as in the listing, estimates as of ridge regression, and its regret."""

import math

import numpy as np
import pytest
from sklearn.linear_model import Ridge as RidgeRegression

import bayesbandit as bb
from bayesbandit.systems.super_ucb.belief import SuperUCB
from tests.cases import moments_of
from tests.oracle import exact_moments


def world(T, seed=0, d=2, K=3):
    """Contexts of length 1 at most, and rewards of linear means between −1 and 1."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(T, d))
    x /= np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True))
    theta = rng.normal(size=(d, K))
    mean = x @ (theta / np.linalg.norm(theta, axis=0))
    return x, mean, mean + 0.1 * rng.normal(size=mean.shape)


def by_the_listing(x, reward, T, alpha):
    """Chu et al. (2011), Algorithms 1 and 3, with an arm's own coefficients: arms and levels."""
    K, d = reward.shape[1], x.shape[1]
    S = math.ceil(math.log(T))
    psi = [[] for _ in range(S)]
    chosen, levels = [], []
    for t in range(len(x)):
        arms, s, level = list(range(K)), 0, -1
        while True:
            width, upper = {}, {}
            for a in arms:
                mine = [i for i in psi[s] if chosen[i] == a]
                B = np.eye(d) + x[mine].T @ x[mine]
                theta = np.linalg.solve(B, x[mine].T @ reward[mine, a])
                width[a] = alpha * math.sqrt(x[t] @ np.linalg.solve(B, x[t]))
                upper[a] = theta @ x[t] + width[a]
            top = max(upper.values())
            if max(width.values()) <= 1 / math.sqrt(T) or s == S - 1:
                arm = max(arms, key=upper.get)
                break
            if max(width.values()) <= 2.0 ** -(s + 1):
                arms, s = [a for a in arms if upper[a] >= top - 2.0**-s], s + 1
                continue
            arm, level = max(arms, key=width.get), s
            psi[s].append(t)
            break
        chosen.append(arm), levels.append(level)
    return chosen, levels


@pytest.mark.parametrize("alpha", [0.3, 1.0])
def test_it_is_the_listing(alpha):
    """But for arms without a reward so far, which are drawn alike: each has one before."""
    x, _, reward = world(150)
    spec = SuperUCB(horizon=200, alpha=alpha, intercept=False)
    belief = spec.belief(3, 2)
    wanted = by_the_listing(x, reward, 200, alpha)
    for t in range(150):
        [p] = belief.predict(x[t : t + 1]).best()
        arm = wanted[0][t]
        assert p[arm] > 0
        belief.update(x[t : t + 1], np.array([arm]), reward[t, [arm]])
    assert belief.level.tolist() == wanted[1]
    assert len(set(wanted[1])) > 2


def test_all_levels_together_are_ridge_regression(rng):
    x, _, reward = world(80)
    belief, arm, w = (
        SuperUCB(horizon=100).belief(3, 2),
        rng.integers(3, size=80),
        rng.random(80) + 0.5,
    )
    belief.update(x, arm, reward[np.arange(80), arm], w)
    learned = belief.level >= 0
    for k in range(3):
        mine = learned & (arm == k)
        z = np.column_stack([x, np.ones(80)])[mine]
        fit = RidgeRegression(alpha=1.0, fit_intercept=False)
        fit.fit(z, reward[mine, k], sample_weight=w[mine])
        new = np.column_stack([x[:5], np.ones(5)])
        np.testing.assert_allclose(moments_of(belief, x[:5])[0][:, k], fit.predict(new), atol=1e-8)


def test_weights_of_the_past_are_those_of_the_balance():
    x, _, reward = world(120)
    bandit = bb.SuperBLUCB(3, 2, horizon=120, alpha=0.2)
    bandit.play(x, reward)
    history, belief = bandit.history, bandit.belief
    fresh = belief.fork()
    fresh.reweigh(range(3), history.x, history.played(), history.reward, history.weight)
    for mine, other in zip(fresh.levels, belief.levels, strict=True):
        np.testing.assert_allclose(moments_of(mine, x), moments_of(other, x), rtol=1e-8, atol=1e-10)
    assert (history.weight > 1).any()


def test_the_alpha_of_theorem_1():
    alpha = SuperUCB(horizon=1000).belief(5, 2).alpha
    assert alpha == pytest.approx(math.sqrt(math.log(100_000)))


@pytest.mark.parametrize("size", [1.0, 1e7, 1.7e9])
def test_contexts_of_any_size_keep_their_digits(size):
    """A time in seconds beside features: estimates and widths are those of exact fractions."""
    rng = np.random.default_rng(3)
    x = np.column_stack([size + 3600.0 * np.arange(60), rng.normal(size=60)])
    reward, belief = rng.uniform(size=60), SuperUCB(horizon=100).belief(1, 2)
    belief.update(x, np.zeros(60, dtype=int), reward)
    z = np.column_stack([x, np.ones(60)])
    for s in range(belief.S):
        mine = belief.level == s
        if not mine.any():
            continue
        mean, sd = exact_moments(z[mine], reward[mine], np.ones(mine.sum()), 1.0, z[-1:])
        found = belief.levels[s].predict(x[-1:])
        np.testing.assert_allclose(found.mean[0], mean, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(found.sd[0], sd, rtol=1e-5)
    assert np.isfinite(moments_of(belief, x)).all()
