"""Ridge regression with known noise.

    r_i | θ, c ~ N(c + x_iᵀθ, σ²/w_i),    θ_j ~ N(0, 1),    c ~ N(0, 100)

The posterior is exactly Gaussian. With z = (x, 1), for the coefficients (θ, c), it is
N(B⁻¹Z'Wr, σ²B⁻¹) with B = Z'WZ + σ² diag(1, …, 1, 1/100). For a penalty of λ, set a prior's scale
to σ/√λ.
"""

import pymc as pm

import bayesbandit as bb


@bb.reward_model(
    theta=bb.Prior("Normal", mu=0, sigma=1, dims="feature"),
    sigma=1.0,
    intercept=bb.Prior("Normal", mu=0, sigma=10),
)
def ridge_known_noise(x, reward, weight, theta, sigma, intercept):
    mu = intercept + x @ theta
    pm.Normal("reward", mu, sigma / pm.math.sqrt(weight), observed=reward, dims="row")
    return mu
