"""Ways of declaring a linear model with unknown noise, normal-inverse-gamma and not."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from tests.declarations import normal_rewards
from tests.inference import linear

D, K, N = 3, 4, 30
PRIOR = 2.0, 1.5  # shape and scale of σ²
RHO = 0.5 ** np.abs(np.subtract.outer(range(D), range(D)))


def observe(mu, variance, reward, weight):
    return normal_rewards(mu, pt.sqrt(variance / weight), reward)


def scaled(name, theta, mean=lambda x, t: x @ t, prior=None, noise=lambda s2: s2, likelihood=None):
    """Rewards about `mean(x, θ)`, where `theta(σ²)` makes θ and `prior("sigma2")` σ², or by
    `likelihood(mean, reward, σ²/weight)`."""

    def declare(x, reward, weight):
        sigma2 = pm.InverseGamma("sigma2", *PRIOR) if prior is None else prior("sigma2")
        mu = mean(x, theta(sigma2))
        if likelihood is None:
            return observe(mu, noise(sigma2), reward, weight)
        likelihood(mu, reward, noise(sigma2) / weight)
        return mu

    declare.__name__ = name
    return declare


def normal(mu=0.0, times=1.0, **shape):
    """Coefficients whose scale is that of the noise."""
    shape = shape or {"dims": "feature"}
    return lambda s2: pm.Normal("theta", mu, times * pt.sqrt(s2), **shape)


def about_a_centre(s2):
    centre = pm.Normal("centre", 0, pt.sqrt(s2))
    return pm.Normal("theta", centre, 0.5 * pt.sqrt(s2), dims="feature")


variance = scaled("variance", normal(times=2))
off_centre = scaled("off_centre", normal(np.arange(D)), lambda x, t: 1.0 + x @ t)
non_centred = scaled("non_centred", about_a_centre)
double_noise = scaled("double_noise", normal(), noise=lambda s2: 4 * s2)
flat = scaled("flat", lambda s2: pm.Flat("theta", dims="feature"))
correlated = scaled(
    "correlated", lambda s2: pm.MvNormal("theta", np.zeros(D), cov=s2 * RHO, dims="feature")
)


def noise_after_coefficients(x, reward, weight):
    z = pm.Normal("z", 0, 1)
    sigma2 = pm.InverseGamma("sigma2", *PRIOR)
    theta = pm.Normal("theta", 0, 2 * pt.sqrt(sigma2), dims="feature")
    pm.Potential("of_z", -0.5 * z**2 / sigma2 + 0.5 * z**2 - 0.5 * pt.log(sigma2))
    return observe(x @ theta + z, sigma2, reward, weight)


def precision(x, reward, weight):
    q = pm.Gamma("q", alpha=PRIOR[0], beta=np.float64(PRIOR[1]))
    theta = pm.Normal("theta", 0, tau=q / 4, dims="feature")
    mu = x @ theta
    pm.Normal("reward", mu, tau=q * weight, observed=reward)
    return mu


def standard_deviation(x, reward, weight):
    def logp(value, shape, scale):
        return pt.log(2 * value) + pm.logp(pm.InverseGamma.dist(shape, scale), value**2)

    positive = pm.distributions.transforms.log
    sigma = pm.CustomDist("sigma", *PRIOR, logp=logp, transform=positive)
    theta = pm.Normal("theta", 0, 2 * sigma, dims="feature")
    return observe(x @ theta, sigma**2, reward, weight)


def jeffreys(x, reward, weight):
    sigma = pm.HalfFlat("sigma")
    pm.Potential("jeffreys", -pt.log(sigma))
    theta = pm.Normal("theta", 0, 2 * sigma, dims="feature")
    return observe(x @ theta, sigma**2, reward, weight)


def powers(x, reward, weight):
    sigma2 = pm.InverseGamma("sigma2", *PRIOR)
    mu = x @ pm.Normal("theta", 0, 2 * pt.sqrt(sigma2), dims="feature")
    pm.Potential("likelihood", weight * pm.logp(pm.Normal.dist(mu, pt.sqrt(sigma2)), reward))
    return mu


def arms(x, reward, weight, arm):
    sigma2 = pm.InverseGamma("sigma2", *PRIOR)
    centre = pm.Normal("centre", 0, pt.sqrt(sigma2), dims="feature")
    theta = pm.Normal("theta", centre, 0.5 * pt.sqrt(sigma2), dims=("arm", "feature"))
    return observe((x * theta[arm]).sum(axis=1), sigma2, reward, weight)


def by_context(x, reward, weight):
    sigma2 = pm.InverseGamma("sigma2", *PRIOR)
    mu = x @ pm.Normal("theta", 0.2, pt.sqrt(sigma2), dims="feature")
    return observe(mu, sigma2 * pt.exp(x[:, 0]), reward, weight)


def joint(x, reward, weight):
    sigma2 = pm.InverseGamma("sigma2", *PRIOR)
    mu = x @ pm.Normal("theta", 0, pt.sqrt(sigma2), dims="feature")
    pm.MvNormal("reward", mu, cov=sigma2 * (0.3 + pt.diag(1 / weight)), observed=reward)
    return mu


def beside(name, more):
    """Rows that add `more`(r, m) to the squared residual, of the same precision."""

    def logp(r, m, v):
        return -0.5 * ((r - m) ** 2 + more(r, m)) / v - 0.5 * pt.log(v)

    def custom(mu, reward, v):
        pm.CustomDist("reward", mu, v, logp=logp, observed=reward)

    return scaled(name, normal(), likelihood=custom)


IN_BATCH = [
    joint,
    beside("a_constant_beside", lambda r, m: 4.0),
    beside("a_square_beside", lambda r, m: (r - 1 - m) ** 2),
]
STREAMED = [
    *(variance, precision, standard_deviation),  # one model, three declarations
    *(noise_after_coefficients, jeffreys, off_centre, correlated, non_centred),
    *(double_noise, flat, powers, arms),
]


def known_noise(x, reward, weight):
    tau2 = pm.InverseGamma("tau2", *PRIOR)
    return observe(x @ pm.Normal("theta", 0, pt.sqrt(tau2), dims="feature"), 1.0, reward, weight)


def two_scales(x, reward, weight):
    sigma2, tau2 = pm.InverseGamma("sigma2", *PRIOR), pm.InverseGamma("tau2", *PRIOR)
    theta = pm.Normal("theta", 0, pt.sqrt(sigma2 * tau2), dims="feature")
    return observe(x @ theta, sigma2, reward, weight)


def bounded(name):
    sigma2 = pm.InverseGamma(name, *PRIOR)
    pm.Potential("bound", pt.switch(sigma2 > 1e6, -np.inf, 0.0))
    return sigma2


def of_each_feature(x, reward, weight):
    sigma2 = pm.InverseGamma("sigma2", *PRIOR, dims="feature")
    theta = pm.Normal("theta", 0, pt.sqrt(sigma2), dims="feature")
    return observe(x @ theta, sigma2[0], reward, weight)


def mean_and_noise(x, reward, weight):
    sigma2 = pm.InverseGamma("sigma2", *PRIOR)
    theta = pm.Normal("theta", 0, pt.sqrt(sigma2), dims="feature")
    return observe(x @ theta, sigma2, reward, weight) + sigma2


def coefficients(make):
    """A declaration with these coefficients."""
    return scaled("refused", make)


def noise(family, *parameters):
    """A declaration with another prior of the noise variance."""
    return scaled("refused", normal(), prior=lambda name: family(name, *parameters))


EACH = {"dims": "feature"}
REFUSED = {
    "unscaled prior": (
        coefficients(lambda s2: pm.Normal("theta", 0, 2, **EACH)),
        "'theta' ~ Normal: its precision is not scaled by the noise 'sigma2', so the posterior is "
        "only conditionally Gaussian",
    ),
    "scaled by the variance": (
        coefficients(lambda s2: pm.Normal("theta", 0, s2, **EACH)),
        "'theta' ~ Normal: its precision is not scaled",
    ),
    "half-normal": (noise(pm.HalfNormal, 1), "'sigma2' ~ HalfNormal: not inverse gamma"),
    "log-normal": (noise(pm.LogNormal, 0, 1), "only conditionally Gaussian"),
    "known noise": (known_noise, "'reward' ~ Normal: its precision does not depend on 'tau2'"),
    "noise plus one": (
        scaled("refused", normal(), noise=lambda s2: s2 + 1),
        "'reward' ~ Normal: its precision is not scaled by",
    ),
    "two scales": (two_scales, "'sigma2' ~ InverseGamma and 'tau2' ~ InverseGamma are both"),
    "piecewise": (
        scaled("refused", normal(), prior=bounded),
        "function gt of 'sigma2'",
    ),
    "of each feature": (of_each_feature, "'sigma2' ~ InverseGamma: not a scalar"),
    "mean and noise": (mean_and_noise, "'mean_reward': depends on 'sigma2'"),
    "no scale": (linear.ridge, "no positive variable that could be the noise scale"),
}
