"""Hierarchical ridge regression: arms that share strength.

    r_i | θ         ~ N(x_iᵀθ_{a_i}, σ²/w_i)
    θ_k | μ₀        ~ N(μ₀, τ²I)          for each arm k
    μ₀_j            ~ N(0, 1)

One model of all arms: what one arm teaches moves μ₀, and so the others. τ² = 0 would be one
regression for all, a large τ² one for each. With σ² and τ² fixed the posterior is exactly Gaussian,
with dependent arms; both are learned by

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
