"""Regression with noise that depends on the context.

    r_i | θ, γ ~ N(x_iᵀθ, exp(2x_iᵀγ)/w_i),    θ_j ~ N(0, 1),    γ_j ~ N(0, 1/4)

Contexts with noisy rewards tell less about θ. Add a constant column to x
to learn the general level of σ.
"""

import pymc as pm

import bayesbandit as bb


@bb.reward_model(
    theta=bb.Prior("Normal", mu=0, sigma=1, dims="feature"),
    gamma=bb.Prior("Normal", mu=0, sigma=0.5, dims="feature"),
)
def heteroscedastic(x, reward, weight, theta, gamma):
    mu = x @ theta
    sigma = pm.math.exp(x @ gamma)
    pm.Normal("reward", mu, sigma / pm.math.sqrt(weight), observed=reward, dims="row")
    return mu
