"""Robust regression with Student-t noise, written as a mixture of normals.

    r_i | θ, c, σ², q_i ~ N(c + x_iᵀθ, σ²/(q_i w_i))
    q_i                 ~ Gamma(ν/2, ν/2)
    θ_j                 ~ N(0, 1),    c ~ N(0, 100)
    σ²                  ~ InverseGamma(1, 1)

With q integrated out this is `student_t`. Given q it is a weighted ridge regression. Given θ each
q_i is Gamma: an outlying reward gets a small q_i.
"""

import pymc as pm

import bayesbandit as bb


@bb.reward_model(
    theta=bb.Prior("Normal", mu=0, sigma=1, dims="feature"),
    sigma2=bb.Prior("InverseGamma", alpha=1, beta=1),
    nu=4.0,
    intercept=bb.Prior("Normal", mu=0, sigma=10),
)
def student_t_mixture(x, reward, weight, theta, sigma2, nu, intercept):
    q = pm.Gamma("q", nu / 2, nu / 2, dims="row")
    mu = intercept + x @ theta
    pm.Normal("reward", mu, pm.math.sqrt(sigma2 / (q * weight)), observed=reward, dims="row")
    return mu
