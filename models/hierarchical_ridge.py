"""Hierarchical ridge regression: arms with similar coefficients.

    r_i | θ, c      ~ N(c_{a_i} + x_iᵀθ_{a_i}, σ²/w_i)
    θ_k | μ₀        ~ N(μ₀, τ²I)          for each arm k
    c_k | m         ~ N(m, 1)             for each arm k
    μ₀_j            ~ N(0, 1),    m ~ N(0, 100)

One model covers all arms: rewards of one arm change m and μ₀, and through them the other arms.
τ² = 0 would be one slope for all arms; a large τ² means a separate one for each. With σ² and τ²
fixed the posterior is exactly Gaussian, with dependent arms. To learn both:

    hierarchical_ridge.with_priors(sigma2=inverse_gamma, tau2=inverse_gamma)
"""

import pymc as pm

import bayesbandit as bb


@bb.reward_model(
    mu0=bb.Prior("Normal", mu=0, sigma=1, dims="feature"),
    tau2=1.0,
    sigma2=1.0,
    intercept=bb.Prior("Normal", mu=bb.Prior("Normal", mu=0, sigma=10), sigma=1, dims="arm"),
)
def hierarchical_ridge(x, reward, weight, arm, mu0, tau2, sigma2, intercept):
    theta = pm.Normal("theta", mu0, pm.math.sqrt(tau2), dims=("arm", "feature"))
    mu = intercept[arm] + (x * theta[arm]).sum(axis=-1)
    pm.Normal("reward", mu, pm.math.sqrt(sigma2 / weight), observed=reward, dims="row")
    return mu
