"""Nine declared models, most of them without a closed form, and worlds whose rewards they fit."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm

import bayesbandit as bb

D = 3
TRUTH = np.array([[1.0, 0.0, -1.0], [0.0, 1.0, 0.5]])
THETA = bb.Prior("Normal", mu=0, sigma=1, dims="feature")
SCALE = bb.Prior("HalfNormal", sigma=1)


@bb.reward_model(theta=THETA)
def ordinal(x, reward, theta):
    """Ratings of 0, 1 or 2, by an ordered logistic regression."""
    ordered = pm.distributions.transforms.ordered
    cut = pm.Normal("cut", [-1.0, 1.0], 1, transform=ordered, shape=2)
    eta = x @ theta
    pm.OrderedLogistic("reward", eta=eta, cutpoints=cut, observed=reward)
    return 2 - pm.math.sigmoid(cut[0] - eta) - pm.math.sigmoid(cut[1] - eta)


@bb.reward_model(tau=SCALE)
def hierarchical_logistic(x, reward, arm, tau):
    """Conversions, by coefficients of the arms that have a common scale."""
    z = pm.Normal("z", 0, 1, dims=("arm", "feature"))
    p = pm.math.sigmoid((x * (tau * z)[arm]).sum(axis=-1))
    pm.Bernoulli("reward", p, observed=reward)
    return p


@bb.reward_model(theta=THETA, beta=THETA, sigma=SCALE)
def revenue(x, reward, theta, beta, sigma):
    """Nothing, or an amount: a logistic and a log-normal regression."""
    psi, mu = pm.math.sigmoid(x @ theta), x @ beta
    pm.HurdleLogNormal("reward", psi=psi, mu=mu, sigma=sigma, observed=reward)
    return psi * pm.math.exp(mu + sigma**2 / 2)


@bb.reward_model(theta=THETA, sigma=SCALE)
def censored_time(x, reward, theta, sigma):
    """Log minutes on a page, of which no more than 1 is seen."""
    normal = pm.Normal.dist(x @ theta, sigma)
    pm.Censored("reward", normal, lower=None, upper=1.0, observed=reward)
    return x @ theta


@bb.reward_model(theta=THETA, psi=bb.Prior("Beta", alpha=2, beta=2))
def zero_inflated(x, reward, theta, psi):
    """Orders of those who buy at all."""
    mu = pm.math.exp(0.5 * (x @ theta))
    pm.ZeroInflatedPoisson("reward", psi=psi, mu=mu, observed=reward)
    return psi * mu


@bb.reward_model(theta=bb.Prior("Laplace", mu=0, b=1, dims="feature"))
def sparse_logistic(x, reward, theta):
    """Conversions, with a Laplace prior."""
    p = pm.math.sigmoid(x @ theta - 1.0)
    pm.Bernoulli("reward", p, observed=reward)
    return p


@bb.reward_model(theta=THETA, dispersion=SCALE)
def counts(x, reward, theta, dispersion):
    """Counts whose dispersion is learned."""
    mu = pm.math.exp(0.5 * (x @ theta))
    pm.NegativeBinomial("reward", mu=mu, alpha=1.0 / dispersion, observed=reward)
    return mu


@bb.reward_model(length=bb.Prior("InverseGamma", alpha=3, beta=3), sigma=SCALE)
def smooth(x, reward, length, sigma):
    """A curve of the first feature: a Gaussian process whose length scale is learned."""
    gp = pm.gp.HSGP(m=[12], c=1.5, cov_func=pm.gp.cov.Matern52(1, ls=length))
    gp.prior_linearized(np.array([[-3.0], [3.0]]))
    f = gp.prior("f", X=x[:, :1])
    pm.Normal("reward", f, sigma, observed=reward)
    return f


robust = bb.load_model("student_t").with_priors(intercept=0)

Rewards = Callable[[float, np.random.Generator], float]  # of x @ theta


@dataclass(frozen=True)
class Nine:
    """A declared model, and a reward of the number x @ theta of the world."""

    model: Any
    reward: Rewards


def _hurdle(eta: float, rng: np.random.Generator) -> float:
    return float(rng.random() < _chance(eta)) * float(np.exp(0.5 * eta + 0.5 * rng.normal()))


def _chance(eta: float) -> float:
    return float(1.0 / (1.0 + np.exp(-eta)))


NINE = {
    nine.model.name: nine
    for nine in (
        Nine(ordinal, lambda eta, rng: float(np.searchsorted([-1.0, 1.0], eta + rng.logistic()))),
        Nine(hierarchical_logistic, lambda eta, rng: float(rng.random() < _chance(eta))),
        Nine(revenue, _hurdle),
        Nine(censored_time, lambda eta, rng: min(1.0, eta + 0.5 * rng.normal())),
        Nine(zero_inflated, lambda eta, rng: float(rng.poisson(np.exp(eta / 2)) * rng.integers(2))),
        Nine(sparse_logistic, lambda eta, rng: float(rng.random() < _chance(eta - 1.0))),
        Nine(counts, lambda eta, rng: float(rng.poisson(np.exp(eta / 2) * rng.gamma(2.0) / 2))),
        Nine(smooth, lambda eta, rng: float(np.sin(eta) + 0.3 * rng.normal())),
        Nine(robust, lambda eta, rng: eta + float(rng.standard_t(4))),
    )
}
