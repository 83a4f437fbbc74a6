"""Declared models of each kind of belief, and bandits that play by them."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import bayesbandit as bb
from bayesbandit.beliefs.regressions import Regressions
from bayesbandit.beliefs.sampled.belief import SampledBelief
from bayesbandit.model import reward_model
from tests import declarations as declared
from tests.cases import moments_of
from tests.players import world

D, ARMS = 3, ("a", "b", 3)
NORMAL = bb.Prior("Normal", mu=0.5, sigma=1, dims="feature")


@reward_model(sigma2=bb.Prior("InverseGamma", alpha=2, beta=1))
def off_centre(x, reward, weight, sigma2):
    theta = pm.Normal("theta", 0.5, pm.math.sqrt(sigma2), dims="feature")
    mu = 1.0 + x @ theta
    pm.Normal("reward", mu, pm.math.sqrt(sigma2 / weight), observed=reward)
    return mu


def together(mu, sigma, reward):
    """Rewards as one observation, so that no row is told from another: exact, but no stream."""
    pm.MvNormal("reward", mu, cov=pt.diag(sigma**2), observed=reward)
    return mu


@reward_model(theta=NORMAL)
def noise_by_context(x, reward, weight, theta):
    return together(x @ theta, pt.exp(0.3 * x[:, 0]) / pt.sqrt(weight), reward)


@reward_model(centre=NORMAL)
def shared_noise_by_context(x, reward, weight, arm, centre):
    theta = pm.Normal("theta", centre, 0.7, dims=("arm", "feature"))
    mu = (x * theta[arm]).sum(axis=-1)
    return together(mu, pt.exp(0.3 * x[:, 0]) / pt.sqrt(weight), reward)


@reward_model(theta=NORMAL)
def known_noise_by_context(x, reward, weight, theta):
    mu = x @ theta
    pm.Normal("reward", mu, pt.exp(0.3 * x[:, 0]) / pt.sqrt(weight), observed=reward)
    return mu


KINDS = {
    "affine": (Regressions, declared.noncentred, {}),
    "affine, unknown noise": (Regressions, off_centre, {}),
    "affine, noise by context": (Regressions, known_noise_by_context, {}),
    "joint": (Regressions, declared.pooled, {}),
    "by draws": (SampledBelief, noise_by_context, {"draws": 60}),
    "by Gibbs": (SampledBelief, declared.lasso, {"draws": 60}),
    "joint, by draws": (SampledBelief, shared_noise_by_context, {"draws": 60}),
}
POLICIES = [bb.Thompson(0.7), bb.UCB(0.7), bb.Greedy(), bb.EpsilonGreedy(0.2)]


def kinds(*quick):
    """Every kind; those that are not named are slow."""
    marked = [pytest.param(k, marks=[pytest.mark.slow] if k not in quick else []) for k in KINDS]
    return pytest.mark.parametrize("kind", marked)


every = kinds("affine", "joint", "by Gibbs")


def bandit_of(kind, policy=POLICIES[0], balance=None, arms=ARMS, **settings):
    belief, model, own = KINDS[kind]
    settings = own | settings
    if belief is not SampledBelief:
        settings = {k: v for k, v in settings.items() if k not in declared.OF_DRAWS}
    bandit = declared.bandit(arms, model, policy, balance, n_features=D, **settings)
    assert type(bandit.belief) is belief
    return bandit


def trained(kind, *args, T=30, seed=7, **settings):
    """A bandit that has learned from rounds that were logged elsewhere. Draws that can be weighted
    are, by the last three rounds."""
    x, reward = world(np.random.default_rng(seed), T)
    bandit, k = bandit_of(kind, *args, **settings), np.arange(T) % 3
    arm, reward, p = np.array(ARMS, dtype=object)[k], reward[np.arange(T), k], np.full(T, 0.5)
    for part in (slice(T - 3), slice(T - 3, T)):
        bandit.update(x[part], arm[part], reward[part], p[part])
        if bandit.belief.predict_may_refit:
            bandit.greedy(x[:1])
    if kind == "by Gibbs" and "refit_below" not in settings:
        assert bandit.belief.weights() is not None
    return bandit


def probe(n=4, d=D):
    return np.random.default_rng(99).normal(size=(n, d))


def close(ours, theirs, tolerance=1e-9):
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def fitted(bandit, arm, weight=None):
    """`bb.fit` on the rounds that the history holds, of one arm or of all that share a model."""
    history, model = bandit.history, bandit.model
    weight = history.weight if weight is None else weight
    known = np.array([a in bandit.arms for a in history.arm])
    if model.takes_arm:
        index = np.array([bandit.arms.index(a) for a in history.arm[known]])
        return bb.fit(model, history.x[known], history.reward[known], weight[known],
                      arm=index, n_arms=len(bandit.arms))  # fmt: skip
    mine = history.arm == arm
    return bb.fit(model, history.x[mine], history.reward[mine], weight[mine])


def agree(bandit):
    """An exact belief is what `bb.fit` finds in the history."""
    x = probe(d=bandit.n_features)
    mean, sd = moments_of(bandit.belief, x)
    for k, arm in enumerate(bandit.arms):
        fit, at = fitted(bandit, arm), slice(None)
        if bandit.model.takes_arm:
            at = (slice(None), k)
        close(mean[:, k], fit.mean(x)[at])
        close(sd[:, k], fit.sd(x)[at])
