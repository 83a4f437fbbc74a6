"""Bayesian LASSO as a Laplace prior.

    r_i | θ, c, σ² ~ N(c + x_iᵀθ, σ²/w_i)
    θ_j            ~ Laplace(0, b),    c ~ N(0, 100),    σ² ~ InverseGamma(1, 1)

The prior's scale b = 1/λ does not depend on σ, so that λ shrinks θ itself. `bayesian_lasso` scales
the prior by σ, so that λ shrinks θ/σ. The posterior's mode is the LASSO with penalty 2σ²/b, which
hardly shrinks the intercept c.
"""

import pymc as pm

import bayesbandit as bb


@bb.reward_model(
    theta=bb.Prior("Laplace", mu=0, b=1, dims="feature"),
    sigma2=bb.Prior("InverseGamma", alpha=1, beta=1),
    intercept=bb.Prior("Normal", mu=0, sigma=10),
)
def laplace(x, reward, weight, theta, sigma2, intercept):
    mu = intercept + x @ theta
    pm.Normal("reward", mu, pm.math.sqrt(sigma2 / weight), observed=reward, dims="row")
    return mu
