"""Robust regression with Student-t noise.

    r_i | θ, c, σ² ~ StudentT(ν, c + x_iᵀθ, σ/√w_i)
    θ_j            ~ N(0, 1),    c ~ N(0, 100),    σ² ~ InverseGamma(1, 1)

An outlying reward counts little. σ is the scale of the noise; its variance is σ²ν/(ν − 2).
`student_t_mixture` is the same model, with a noise variance for each row as a variable.
"""

import pymc as pm

import bayesbandit as bb


@bb.reward_model(
    theta=bb.Prior("Normal", mu=0, sigma=1, dims="feature"),
    sigma2=bb.Prior("InverseGamma", alpha=1, beta=1),
    nu=4.0,
    intercept=bb.Prior("Normal", mu=0, sigma=10),
)
def student_t(x, reward, weight, theta, sigma2, nu, intercept):
    mu = intercept + x @ theta
    sigma = pm.math.sqrt(sigma2 / weight)
    pm.StudentT("reward", nu=nu, mu=mu, sigma=sigma, observed=reward, dims="row")
    return mu
