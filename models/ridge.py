"""Ridge regression with unknown noise.

    r_i | θ, σ² ~ N(x_iᵀθ, σ²/w_i),    θ | σ² ~ N(0, σ²/λ I),    σ² ~ InverseGamma(1, 1)

The prior of θ is scaled by σ. So the posterior is normal-inverse-gamma, and Student-t for θ alone.
The weights divide the noise variance. As powers of the likelihood they would give another posterior
of σ².
"""

import pymc as pm

import bayesbandit as bb


@bb.reward_model(sigma2=bb.Prior("InverseGamma", alpha=1, beta=1), lam=1.0)
def ridge(x, reward, weight, sigma2, lam):
    theta = pm.Normal("theta", 0, pm.math.sqrt(sigma2 / lam), dims="feature")
    mu = x @ theta
    pm.Normal("reward", mu, pm.math.sqrt(sigma2 / weight), observed=reward, dims="row")
    return mu
