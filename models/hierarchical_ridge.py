"""Hierarchical ridge regression: arms with similar coefficients.

    r_i | θ         ~ N(x_iᵀθ_{a_i}, σ²/w_i)
    θ_k | μ₀        ~ N(μ₀, τ²I)          for each arm k
    μ₀_j            ~ N(0, 1)

One model covers all arms: rewards of one arm change μ₀, and through it the other arms. τ² = 0 would
be one regression for all arms; a large τ² means a separate one for each. With σ² and τ² fixed the
posterior is exactly Gaussian, with dependent arms. To learn both:

    hierarchical_ridge.with_priors(sigma2=inverse_gamma, tau2=inverse_gamma)
"""

import pymc as pm

import bayesbandit as bb


@bb.reward_model(mu0=bb.Prior("Normal", mu=0, sigma=1, dims="feature"), tau2=1.0, sigma2=1.0)
def hierarchical_ridge(x, reward, weight, arm, mu0, tau2, sigma2):
    theta = pm.Normal("theta", mu0, pm.math.sqrt(tau2), dims=("arm", "feature"))
    mu = (x * theta[arm]).sum(axis=-1)
    pm.Normal("reward", mu, pm.math.sqrt(sigma2 / weight), observed=reward, dims="row")
    return mu
