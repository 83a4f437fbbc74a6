"""Bayesian LASSO (Park and Casella's hierarchy).

    r_i | θ, σ²     ~ N(c + x_iᵀθ, σ²/w_i)
    θ_j | τ_j², σ²  ~ N(0, σ²τ_j²)
    τ_j²            ~ Exponential(λ²/2)
    σ²              ~ InverseGamma(1, 1),    c ~ N(0, 100)

With τ² integrated out, θ_j | σ² is Laplace with scale σ/λ. λ² is fixed; with a Gamma prior it is
learned. The intercept c is hardly shrunk:

    bayesian_lasso.with_priors(lambda2=bb.Prior("Gamma", alpha=1, beta=1.78))

Park and Casella (2008), The Bayesian Lasso, JASA 103.
"""

import pymc as pm

import bayesbandit as bb


@bb.reward_model(
    lambda2=1.0,
    sigma2=bb.Prior("InverseGamma", alpha=1, beta=1),
    intercept=bb.Prior("Normal", mu=0, sigma=10),
)
def bayesian_lasso(x, reward, weight, lambda2, sigma2, intercept):
    tau2 = pm.Exponential("tau2", lambda2 / 2, dims="feature")
    theta = pm.Normal("theta", 0, pm.math.sqrt(sigma2 * tau2), dims="feature")
    mu = intercept + x @ theta
    pm.Normal("reward", mu, pm.math.sqrt(sigma2 / weight), observed=reward, dims="row")
    return mu
