"""Reward models whose posterior is not Gaussian, each with words of the reason."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.transforms import ordered

from tests.inference.declared import rows
from tests.inference.linear import regression


def prior(distribution, *parameters, **settings):
    """A declaration with a prior of its own on the coefficients."""
    make = getattr(pm, distribution)
    return regression("refused", lambda: make("theta", *parameters, dims="feature", **settings))


def mean(f):
    """A declaration whose mean reward is `f(x, θ)`, with a normal prior."""
    return regression("refused", mean=f)


def likelihood(f):
    """A declaration whose rewards are distributed as `f(mean, reward)` says."""
    return regression("refused", likelihood=lambda mu, reward, weight: f(mu, reward))


def imputed(mu, reward):
    seen = rows()["reward"].copy()
    seen[[3, 7]] = np.nan
    pm.Normal("r", mu, 1.0, observed=seen)


def two_coefficients(x, theta):
    return x[:, 0] * pm.Normal("a") * pm.Normal("b")


def each_row(x, theta):
    return x @ theta + pm.Normal("u", 0, 1, dims="row")


def potential(f):
    """A declaration with a potential `f(θ)`."""

    def mean(x, theta):
        pm.Potential("penalty", f(theta))
        return x @ theta

    return regression("refused", mean=mean)


REFUSED = {
    "laplace": (
        prior("Laplace", 0, 1),
        "'theta' ~ Laplace: non-polynomial function abs of 'theta'",
    ),
    "mixture": (
        prior("NormalMixture", w=[0.5, 0.5], mu=[0, 1], sigma=[1, 1]),
        "'theta' ~ Mixture: non-polynomial reduction max of 'theta'",
    ),
    "truncated": (prior("TruncatedNormal", 0, 1, lower=0), "~ TruncatedNormal: interval transform"),
    "ordered": (
        prior("Normal", np.arange(3), 1, transform=ordered),
        "'theta' ~ Normal: ordered transform",
    ),
    "poisson prior": (prior("Poisson", 3), "'theta' ~ Poisson: discrete"),
    "censored": (
        likelihood(
            lambda mu, r: pm.Censored("r", pm.Normal.dist(mu, 1), lower=-1, upper=None, observed=r)
        ),
        "'r' ~ Censored: non-polynomial function erfc of 'theta'",
    ),
    "free noise": (
        likelihood(lambda mu, r: pm.Normal("r", mu, pm.HalfNormal("sigma", 1), observed=r)),
        "'sigma' ~ HalfNormal: log transform",
    ),
    "interaction": (mean(two_coefficients), "'reward' ~ Normal: product of 'a' and 'b' (degree 4)"),
    "sort": (mean(lambda x, t: x @ pt.sort(t)), "unrecognised operation SortOp of 'theta'"),
    "integer": (
        mean(lambda x, t: x @ t.astype("int64")),
        "'reward' ~ Normal: cast to int64 of 'theta'",
    ),
    "division": (mean(lambda x, t: x[:, 0] / t[0]), "'reward' ~ Normal: division by 'theta'"),
    "product": (
        mean(lambda x, t: x @ pt.cumprod(t)),
        "'reward' ~ Normal: cumulative product of 'theta'",
    ),
    "potential": (
        potential(lambda t: -pt.abs(t).sum()),
        "potential 'penalty': non-polynomial function abs of 'theta'",
    ),
    "a wall and more": (potential(lambda t: pt.switch(t[0] > 50, -np.inf, 0.0) + 1.0), "gt of"),
    "a shape": (potential(lambda t: -3.0 * t[t > 0].shape[0]), "of 'theta'"),
    "missing rewards": (
        likelihood(imputed),
        "'r_unobserved' ~ Normal: missing rewards are imputed",
    ),
    "one for each row": (mean(each_row), "'u' ~ Normal: one value for each row"),
    "nothing free": (
        regression("refused", lambda: 1.0, lambda x, t: x.sum(axis=1)),
        "the model has no free variable",
    ),
}
