"""Ridge regression with known noise.

    r_i | θ ~ N(x_iᵀθ, σ²/w_i),    θ_j ~ N(0, 1)

The posterior is exactly Gaussian: N(B⁻¹X'Wr, σ²B⁻¹) with B = X'WX + σ²I. For a penalty of λI, set
the prior's scale to σ/√λ.
"""

import pymc as pm

import bayesbandit as bb


@bb.reward_model(theta=bb.Prior("Normal", mu=0, sigma=1, dims="feature"), sigma=1.0)
def ridge_known_noise(x, reward, weight, theta, sigma):
    mu = x @ theta
    pm.Normal("reward", mu, sigma / pm.math.sqrt(weight), observed=reward, dims="row")
    return mu
