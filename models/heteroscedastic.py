"""Regression with noise that depends on the context.

    r_i | θ, γ ~ N(c + x_iᵀθ, σ_i²/w_i),    log σ_i = s + x_iᵀγ
    θ_j        ~ N(0, 1),     γ_j ~ N(0, 1/4),    c ~ N(0, 100),    s ~ N(0, 4)

Contexts with noisy rewards tell less about θ. exp(s), the general level of the noise, is learned.
"""

import pymc as pm

import bayesbandit as bb


@bb.reward_model(
    theta=bb.Prior("Normal", mu=0, sigma=1, dims="feature"),
    gamma=bb.Prior("Normal", mu=0, sigma=0.5, dims="feature"),
    intercept=bb.Prior("Normal", mu=0, sigma=10),
    log_sigma=bb.Prior("Normal", mu=0, sigma=2),
)
def heteroscedastic(x, reward, weight, theta, gamma, intercept, log_sigma):
    mu = intercept + x @ theta
    sigma = pm.math.exp(log_sigma + x @ gamma)
    pm.Normal("reward", mu, sigma / pm.math.sqrt(weight), observed=reward, dims="row")
    return mu
