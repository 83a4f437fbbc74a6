"""Poisson regression for rewards that are counts.

    r_i | θ, c ~ Poisson(μ_i),    log μ_i = c + x_iᵀθ,    θ_j ~ N(0, 1/4),    c ~ N(0, 2.5²)

The weight is a power of the likelihood, p(r_i | θ)^{w_i}: a row with weight 2 counts as two rows.
A draw of a reward does not depend on its weight.
"""

import pymc as pm

import bayesbandit as bb


def log_likelihood(reward, mu, weight):
    return weight * pm.logp(pm.Poisson.dist(mu), reward)


def draw(mu, weight, size):
    return pm.Poisson.dist(mu, size=size)


@bb.reward_model(
    theta=bb.Prior("Normal", mu=0, sigma=0.5, dims="feature"),
    intercept=bb.Prior("Normal", mu=0, sigma=2.5),
)
def poisson(x, reward, weight, theta, intercept):
    mu = pm.math.exp(intercept + x @ theta)
    pm.CustomDist("reward", mu, weight, logp=log_likelihood, dist=draw, observed=reward, dims="row")
    return mu
