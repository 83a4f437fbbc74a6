"""Ridge regression with unknown noise.

    r_i | θ, c, σ² ~ N(c + x_iᵀθ, σ²/w_i),    σ² ~ InverseGamma(1, 1)
    θ | σ²         ~ N(0, σ²/λ I),    c | σ² ~ N(0, σ²/λ₀)

The priors of θ and of the intercept c are scaled by σ, and λ₀ = .01 hardly shrinks c. So the
posterior is normal-inverse-gamma, and Student-t for θ and c alone. A prior of c that does not
depend on σ takes another engine, and a number fixes c:

    ridge.with_priors(intercept=bb.Prior("Normal", mu=0, sigma=10))

The weights divide the noise variance. As powers of the likelihood they would give another posterior
of σ².
"""

import pymc as pm

import bayesbandit as bb


@bb.reward_model(sigma2=bb.Prior("InverseGamma", alpha=1, beta=1), lam=1.0, lam0=0.01)
def ridge(x, reward, weight, sigma2, lam, lam0, intercept=None):
    if intercept is None:
        intercept = pm.Normal("intercept", 0, pm.math.sqrt(sigma2 / lam0))
    theta = pm.Normal("theta", 0, pm.math.sqrt(sigma2 / lam), dims="feature")
    mu = intercept + x @ theta
    pm.Normal("reward", mu, pm.math.sqrt(sigma2 / weight), observed=reward, dims="row")
    return mu
