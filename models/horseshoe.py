"""Horseshoe regression.

    r_i | θ, c, σ²     ~ N(c + x_iᵀθ, σ²/w_i)
    θ_j | λ_j², τ², σ² ~ N(0, σ²τ²λ_j²)
    λ_j, τ             ~ HalfCauchy(0, 1)
    σ²                 ~ InverseGamma(1, 1),    c ~ N(0, 100)

λ ~ HalfCauchy is written as λ² | a ~ InverseGamma(1/2, a), a ~ Gamma(1/2, 1), for both λ_j and τ.
Then every full conditional is a known distribution.

Carvalho, Polson and Scott (2010), The horseshoe estimator for sparse signals, Biometrika 97;
Makalic and Schmidt (2016), A simple sampler for the horseshoe estimator, with ν = 1/a. The inverse
gamma's `beta` is a.
"""

import pymc as pm

import bayesbandit as bb

SQUARED_HALF_CAUCHY = bb.Prior("InverseGamma", alpha=0.5, beta=bb.Prior("Gamma", alpha=0.5, beta=1))
SQUARED_HALF_CAUCHY_EACH = bb.Prior(
    "InverseGamma",
    alpha=0.5,
    beta=bb.Prior("Gamma", alpha=0.5, beta=1, dims="feature"),
    dims="feature",
)


@bb.reward_model(
    sigma2=bb.Prior("InverseGamma", alpha=1, beta=1),
    tau2=SQUARED_HALF_CAUCHY,
    lambda2=SQUARED_HALF_CAUCHY_EACH,
    intercept=bb.Prior("Normal", mu=0, sigma=10),
)
def horseshoe(x, reward, weight, sigma2, tau2, lambda2, intercept):
    theta = pm.Normal("theta", 0, pm.math.sqrt(sigma2 * tau2 * lambda2), dims="feature")
    mu = intercept + x @ theta
    pm.Normal("reward", mu, pm.math.sqrt(sigma2 / weight), observed=reward, dims="row")
    return mu
