"""Declared reward models for the tests of engines, plans and posteriors, one of each kind."""

import numpy as np
import pymc as pm

import bayesbandit as bb
from bayesbandit.declaring.priors import Prior
from bayesbandit.model import RewardModel, reward_model

SIGMA = 0.7
NORMAL = Prior("Normal", mu=0, sigma=2, dims="feature")
EACH = Prior("Normal", mu=0, sigma=1, dims="feature")
HALF = Prior("HalfNormal", sigma=1)

OF_DRAWS = "draws", "refit_every", "refit_below", "background", "frozen"
OF_MODELS = "engine", "half_life", "clock", "drift", *OF_DRAWS


def bandit(arms, model, *args, **settings):
    """A bandit of a declared model, which takes those of the settings that are its own."""
    own = {name: settings.pop(name) for name in OF_MODELS if name in settings}
    of_draws = own.keys() & {*OF_DRAWS}
    kind = bb.Sampled if of_draws else bb.Declared
    if own.get("engine") == "laplace" and of_draws <= {"refit_every"}:
        kind = bb.Laplace
        del own["engine"]
    if isinstance(model, bb.Shared) and isinstance(model.model, RewardModel):
        model = bb.Shared(kind(model.model, **own))
    elif isinstance(model, RewardModel):
        model = kind(model, **own)
    else:
        assert not own
    return bb.Bandit(arms, model, *args, **settings)


def normal_rewards(mean, sd, reward, name="reward"):
    """Rewards N(mean, sd²): what a declaration observes of them, and its mean reward."""
    pm.Normal(name, mean, sd, observed=reward)
    return mean


@reward_model(theta=NORMAL)
def known(x, reward, weight, theta):
    return normal_rewards(x @ theta, SIGMA / pm.math.sqrt(weight), reward)


@reward_model(variance=Prior("InverseGamma", alpha=3, beta=2))
def conjugate(x, reward, weight, variance):
    theta = pm.Normal("theta", 0, pm.math.sqrt(variance), dims="feature")
    return normal_rewards(x @ theta, pm.math.sqrt(variance / weight), reward)


@reward_model(theta=Prior("Laplace", mu=0, b=1, dims="feature"))
def lasso(x, reward, weight, theta):
    return normal_rewards(x @ theta, SIGMA / pm.math.sqrt(weight), reward)


@reward_model(theta=NORMAL)
def binary(x, reward, theta):
    p = pm.math.sigmoid(x @ theta)
    pm.Bernoulli("reward", p, observed=reward)
    return p


@reward_model(centre=NORMAL)
def pooled(x, reward, weight, arm, centre):
    theta = pm.Normal("theta", centre, 0.5, dims=("arm", "feature"))
    return normal_rewards((x * theta[arm]).sum(axis=-1), SIGMA / pm.math.sqrt(weight), reward)


@reward_model(scale=Prior("HalfNormal", sigma=1), theta=NORMAL)
def heavy(x, reward, weight, scale, theta):
    mu = x @ theta
    pm.Logistic("reward", mu, scale / pm.math.sqrt(weight), observed=reward)
    return mu


@reward_model(theta=Prior("Normal", mu=1, sigma=Prior("HalfNormal"), dims="feature"))
def counted(x, reward, theta):
    k = pm.Poisson("k", 3)
    return normal_rewards(x @ theta, 1.0 + k, reward)


@reward_model(theta=Prior("Normal", mu=1, sigma=3, dims="feature", centered=False))
def noncentred(x, reward, weight, theta):
    return normal_rewards(x @ theta, SIGMA / pm.math.sqrt(weight), reward)


@reward_model(theta=NORMAL)
def potential(x, reward, weight, theta):
    mu = x @ theta
    pm.Potential("fit", -0.5 * weight * (reward - mu) ** 2 / SIGMA**2)
    return mu


@reward_model(theta=NORMAL)
def squared(x, reward, weight, theta):
    mu = x @ theta
    pm.Normal("reward", mu, SIGMA / pm.math.sqrt(weight), observed=reward)
    return mu**2


def rows(n=40, d=3, seed=0):
    """x (n, d), reward (n,), weight (n,)."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    return x, x @ np.arange(1.0, d + 1) + SIGMA * rng.normal(size=n), rng.uniform(0.5, 2.0, n)


def data(n=40, seed=0):
    """The same, by their names."""
    return dict(zip(("x", "reward", "weight"), rows(n, seed=seed), strict=True))


def ridge(x, reward, weight, sigma=2.0):
    """Posterior mean and covariance of `known`."""
    precision = (x.T * weight) @ x / SIGMA**2 + np.eye(x.shape[1]) / sigma**2
    covariance = np.linalg.inv(precision)
    return covariance @ (x.T @ (weight * reward)) / SIGMA**2, covariance
