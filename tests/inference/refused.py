"""Reward models whose posterior is not Gaussian, each with words of the reason."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from tests.inference.declared import rows


def observed(mu, reward, weight):
    pm.Normal("r", mu, 1 / pm.math.sqrt(weight), observed=reward)
    return mu


def prior(distribution, *parameters, **settings):
    """A declaration with a prior of its own on the coefficients."""

    def declare(x, reward, weight):
        theta = getattr(pm, distribution)("theta", *parameters, dims="feature", **settings)
        return observed(x @ theta, reward, weight)

    return declare


def mean(f):
    """A declaration whose mean reward is `f(x, θ)`, with a normal prior."""

    def declare(x, reward, weight):
        return observed(f(x, pm.Normal("theta", 0, 1, dims="feature")), reward, weight)

    return declare


def likelihood(f):
    """A declaration whose rewards are distributed as `f(mean, reward)` says."""

    def declare(x, reward, weight):
        mu = x @ pm.Normal("theta", 0, 1, dims="feature")
        f(mu, reward)
        return mu

    return declare


def free_noise(x, reward, weight):
    mu, sigma = x @ pm.Normal("theta", 0, 1, dims="feature"), pm.HalfNormal("sigma", 1)
    pm.Normal("r", mu, sigma, observed=reward)
    return mu


def shrinkage(x, reward, weight):
    tau = pm.HalfCauchy("tau", 1)
    return observed(x @ pm.Normal("theta", 0, tau, dims="feature"), reward, weight)


def two_coefficients(x, reward, weight):
    return observed(x[:, 0] * pm.Normal("a") * pm.Normal("b"), reward, weight)


def missing(x, reward, weight):
    seen = rows()["reward"].copy()
    seen[[3, 7]] = np.nan
    mu = x @ pm.Normal("theta", 0, 1, dims="feature")
    pm.Normal("r", mu, 1.0, observed=seen)
    return mu


def each_row(x, reward, weight):
    mu = x @ pm.Normal("theta", 0, 1, dims="feature") + pm.Normal("u", 0, 1, dims="row")
    return observed(mu, reward, weight)


def ordered(x, reward, weight):
    order = pm.distributions.transforms.ordered
    theta = pm.Normal("theta", np.arange(3), 1, dims="feature", transform=order)
    return observed(x @ theta, reward, weight)


def potential(f):
    """A declaration with a potential `f(θ)`."""

    def declare(x, reward, weight):
        theta = pm.Normal("theta", 0, 1, dims="feature")
        pm.Potential("penalty", f(theta))
        return observed(x @ theta, reward, weight)

    return declare


def no_variable(x, reward, weight):
    return observed(x.sum(axis=1), reward, weight)


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
    "ordered": (ordered, "'theta' ~ Normal: ordered transform"),
    "poisson prior": (prior("Poisson", 3), "'theta' ~ Poisson: discrete"),
    "laplace likelihood": (
        likelihood(lambda mu, r: pm.Laplace("r", mu, 1, observed=r)),
        "'r' ~ Laplace: non-polynomial function abs of 'theta'",
    ),
    "logistic": (
        likelihood(lambda mu, r: pm.Bernoulli("r", logit_p=mu, observed=r > 0)),
        "'r' ~ Bernoulli: non-polynomial function sigmoid of 'theta'",
    ),
    "poisson": (
        likelihood(lambda mu, r: pm.Poisson("r", pt.exp(mu), observed=pt.sqr(r).astype("int64"))),
        "'r' ~ Poisson: non-polynomial function exp of 'theta'",
    ),
    "censored": (
        likelihood(
            lambda mu, r: pm.Censored("r", pm.Normal.dist(mu, 1), lower=-1, upper=None, observed=r)
        ),
        "'r' ~ Censored: non-polynomial function erfc of 'theta'",
    ),
    "free noise": (free_noise, "'sigma' ~ HalfNormal: log transform"),
    "shrinkage": (shrinkage, "'tau' ~ HalfCauchy: log transform"),
    "interaction": (two_coefficients, "'r' ~ Normal: product of 'a' and 'b' (degree 4)"),
    "square": (mean(lambda x, t: (x @ t) ** 2), "'r' ~ Normal: power 2 of 'theta' (degree 4)"),
    "clip": (mean(lambda x, t: pt.clip(x @ t, 0, 1)), "non-polynomial function clip of 'theta'"),
    "sort": (mean(lambda x, t: x @ pt.sort(t)), "unrecognised operation SortOp of 'theta'"),
    "integer": (mean(lambda x, t: x @ t.astype("int64")), "'r' ~ Normal: cast to int64 of 'theta'"),
    "division": (mean(lambda x, t: x[:, 0] / t[0]), "'r' ~ Normal: division by 'theta'"),
    "index": (mean(lambda x, t: x[:, pt.argmax(t)]), "unrecognised operation Argmax of 'theta'"),
    "branch": (mean(lambda x, t: pt.switch(t[0] > 0, x @ t, 0.0)), "function gt of 'theta'"),
    "product": (
        mean(lambda x, t: x @ pt.cumprod(t)),
        "'r' ~ Normal: cumulative product of 'theta'",
    ),
    "potential": (
        potential(lambda t: -pt.abs(t).sum()),
        "potential 'penalty': non-polynomial function abs of 'theta'",
    ),
    "a fault less 1": (potential(lambda t: pt.abs(t - 1).sum() + 1.0), "function abs of 'theta'"),
    "a wall and more": (potential(lambda t: pt.switch(t[0] > 50, -np.inf, 0.0) + 1.0), "gt of"),
    "a shape": (potential(lambda t: -3.0 * t[t > 0].shape[0]), "of 'theta'"),
    "missing rewards": (missing, "'r_unobserved' ~ Normal: missing rewards are imputed"),
    "one for each row": (each_row, "'u' ~ Normal: one value for each row"),
    "nothing free": (no_variable, "the model has no free variable"),
}
