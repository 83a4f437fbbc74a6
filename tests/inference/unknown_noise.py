"""Ways of declaring a linear model with unknown noise, normal-inverse-gamma and not."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

D, K, N = 3, 4, 30
PRIOR = 2.0, 1.5  # shape and scale of σ²
RHO = 0.5 ** np.abs(np.subtract.outer(range(D), range(D)))


def observe(mu, variance, reward, weight):
    pm.Normal("reward", mu, pt.sqrt(variance / weight), observed=reward)
    return mu


def variance(x, reward, weight):
    sigma2 = pm.InverseGamma("sigma2", *PRIOR)
    theta = pm.Normal("theta", 0, 2 * pt.sqrt(sigma2), dims="feature")
    return observe(x @ theta, sigma2, reward, weight)


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


def off_centre(x, reward, weight):
    sigma2 = pm.InverseGamma("sigma2", *PRIOR)
    theta = pm.Normal("theta", np.arange(D), pt.sqrt(sigma2), dims="feature")
    return observe(1.0 + x @ theta, sigma2, reward, weight)


def correlated(x, reward, weight):
    sigma2 = pm.InverseGamma("sigma2", *PRIOR)
    theta = pm.MvNormal("theta", np.zeros(D), cov=sigma2 * RHO, dims="feature")
    return observe(x @ theta, sigma2, reward, weight)


def non_centred(x, reward, weight):
    sigma2 = pm.InverseGamma("sigma2", *PRIOR)
    centre = pm.Normal("centre", 0, pt.sqrt(sigma2))
    theta = pm.Normal("theta", centre, 0.5 * pt.sqrt(sigma2), dims="feature")
    return observe(x @ theta, sigma2, reward, weight)


def double_noise(x, reward, weight):
    sigma2 = pm.InverseGamma("sigma2", *PRIOR)
    theta = pm.Normal("theta", 0, pt.sqrt(sigma2), dims="feature")
    return observe(x @ theta, 4 * sigma2, reward, weight)


def flat(x, reward, weight):
    return observe(
        x @ pm.Flat("theta", dims="feature"), pm.InverseGamma("sigma2", *PRIOR), reward, weight
    )


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
    sigma = pt.sqrt(sigma2 / weight) * pt.exp(0.5 * x[:, 0])
    pm.Normal("reward", mu, sigma, observed=reward)
    return mu


def joint(x, reward, weight):
    sigma2 = pm.InverseGamma("sigma2", *PRIOR)
    mu = x @ pm.Normal("theta", 0, pt.sqrt(sigma2), dims="feature")
    pm.MvNormal("reward", mu, cov=sigma2 * (0.3 + pt.diag(1 / weight)), observed=reward)
    return mu


TEXTBOOK = [variance, precision, standard_deviation]  # one model, three declarations
STREAMED = [
    *(*TEXTBOOK, noise_after_coefficients, jeffreys, off_centre, correlated, non_centred),
    *(double_noise, flat, powers, arms),
]


def noise(distribution, *parameters, **settings):
    """A declaration with another prior of the noise variance."""

    def declare(x, reward, weight):
        sigma2 = getattr(pm, distribution)("sigma2", *parameters, **settings)
        theta = pm.Normal("theta", 0, pt.sqrt(sigma2), dims="feature")
        return observe(x @ theta, sigma2, reward, weight)

    return declare


def coefficients(distribution, *parameters, **settings):
    """A declaration with a prior of the coefficients that is not scaled by the noise."""

    def declare(x, reward, weight):
        sigma2 = pm.InverseGamma("sigma2", *PRIOR)
        theta = getattr(pm, distribution)("theta", *parameters, dims="feature", **settings)
        return observe(x @ theta, sigma2, reward, weight)

    return declare


def intercept_unscaled(x, reward, weight):
    sigma2 = pm.InverseGamma("sigma2", *PRIOR)
    theta = pm.Normal("theta", 0, pt.sqrt(sigma2), dims="feature")
    return observe(pm.Normal("alpha", 0, 10) + x @ theta, sigma2, reward, weight)


def scaled_wrongly(x, reward, weight):
    sigma2 = pm.InverseGamma("sigma2", *PRIOR)
    return observe(x @ pm.Normal("theta", 0, sigma2, dims="feature"), sigma2, reward, weight)


def centre_unscaled(x, reward, weight):
    sigma2 = pm.InverseGamma("sigma2", *PRIOR)
    theta = pm.Normal("theta", sigma2, pt.sqrt(sigma2), dims="feature")
    return observe(x @ theta, sigma2, reward, weight)


def known_noise(x, reward, weight):
    tau2 = pm.InverseGamma("tau2", *PRIOR)
    return observe(x @ pm.Normal("theta", 0, pt.sqrt(tau2), dims="feature"), 1.0, reward, weight)


def noise_plus_one(x, reward, weight):
    sigma2 = pm.InverseGamma("sigma2", *PRIOR)
    theta = pm.Normal("theta", 0, pt.sqrt(sigma2), dims="feature")
    return observe(x @ theta, sigma2 + 1, reward, weight)


def two_scales(x, reward, weight):
    sigma2, tau2 = pm.InverseGamma("sigma2", *PRIOR), pm.InverseGamma("tau2", *PRIOR)
    theta = pm.Normal("theta", 0, pt.sqrt(sigma2 * tau2), dims="feature")
    return observe(x @ theta, sigma2, reward, weight)


def piecewise(x, reward, weight):
    sigma2 = pm.InverseGamma("sigma2", *PRIOR)
    pm.Potential("bound", pt.switch(sigma2 > 1e6, -np.inf, 0.0))
    theta = pm.Normal("theta", 0, pt.sqrt(sigma2), dims="feature")
    return observe(x @ theta, sigma2, reward, weight)


def of_each_feature(x, reward, weight):
    sigma2 = pm.InverseGamma("sigma2", *PRIOR, dims="feature")
    theta = pm.Normal("theta", 0, pt.sqrt(sigma2), dims="feature")
    return observe(x @ theta, sigma2[0], reward, weight)


def mean_and_noise(x, reward, weight):
    sigma2 = pm.InverseGamma("sigma2", *PRIOR)
    theta = pm.Normal("theta", 0, pt.sqrt(sigma2), dims="feature")
    return observe(x @ theta, sigma2, reward, weight) + sigma2


def fixed(x, reward, weight):
    return observe(x @ pm.Normal("theta", 0, 1, dims="feature"), 1.0, reward, weight)


REFUSED = {
    "unscaled prior": (
        coefficients("Normal", 0, 2),
        "'theta' ~ Normal: its precision is not scaled by the noise 'sigma2', so the posterior is "
        "only conditionally Gaussian",
    ),
    "unscaled intercept": (intercept_unscaled, "'alpha' ~ Normal: its precision is not scaled"),
    "scaled by the variance": (scaled_wrongly, "'theta' ~ Normal: its precision is not scaled"),
    "unscaled centre": (centre_unscaled, "'theta' ~ Normal: its precision is not scaled"),
    "laplace": (coefficients("Laplace", 0, 1), "non-polynomial function abs of 'theta'"),
    "half-normal": (noise("HalfNormal", 1), "'sigma2' ~ HalfNormal: not inverse gamma"),
    "half-cauchy": (noise("HalfCauchy", 1), "'sigma2' ~ HalfCauchy: not inverse gamma"),
    "exponential": (noise("Exponential", 1), "'sigma2' ~ Exponential: not inverse gamma"),
    "log-normal": (noise("LogNormal", 0, 1), "only conditionally Gaussian"),
    "uniform": (noise("Uniform", 0, 10), "'sigma2' ~ Uniform: interval transform"),
    "known noise": (known_noise, "'reward' ~ Normal: its precision does not depend on 'tau2'"),
    "noise plus one": (noise_plus_one, "'reward' ~ Normal: its precision is not scaled by"),
    "two scales": (two_scales, "'sigma2' ~ InverseGamma and 'tau2' ~ InverseGamma are both"),
    "piecewise": (piecewise, "potential 'bound': non-polynomial function gt of 'sigma2'"),
    "of each feature": (of_each_feature, "'sigma2' ~ InverseGamma: not a scalar"),
    "mean and noise": (mean_and_noise, "'mean_reward': depends on 'sigma2'"),
    "no scale": (fixed, "no positive variable that could be the noise scale"),
}
