"""Ridge regression with unknown noise.

    r_i | θ, σ² ~ N(x_iᵀθ, σ²/w_i),    θ | σ² ~ N(0, σ²/λ I),    σ² ~ InverseGamma(1, 1)

The posterior is normal-inverse-gamma, and Student-t for θ alone, because θ's prior is scaled by σ.
The weights divide the noise's variance; as powers of the likelihood they would make a different
posterior of σ².
"""

import pymc as pm

import bayesbandit as bb


@bb.reward_model(sigma2=bb.Prior("InverseGamma", alpha=1, beta=1), lam=1.0)
def ridge(x, reward, weight, sigma2, lam):
    theta = pm.Normal("theta", 0, pm.math.sqrt(sigma2 / lam), dims="feature")
    mu = x @ theta
    pm.Normal("reward", mu, pm.math.sqrt(sigma2 / weight), observed=reward, dims="row")
    return mu
