"""Hierarchical logistic regression: arms with similar log odds.

    r_i | θ, c   ~ Bernoulli(p_i),    log p_i/(1 − p_i) = c_{a_i} + x_iᵀθ_{a_i}
    θ_k | μ₀, τ  ~ N(μ₀, τ²I)         for each arm k
    c_k | m, s   ~ N(m, s²)           for each arm k
    μ₀_j         ~ N(0, 1),    τ ~ HalfNormal(1),    m ~ N(0, 2.5²),    s ~ HalfNormal(1)

One model covers all arms. A new arm begins at what the others have in common, m and μ₀, and the
rewards say how far arms differ, s and τ: with ten offers that convert alike, the eleventh needs few
trials.

The weight is a power of the likelihood, p(r_i | θ)^{w_i}: a row with weight 2 counts as two rows. A
draw of a reward does not depend on its weight.
"""

import numpy as np
import pymc as pm

import bayesbandit as bb


def log_likelihood(reward, eta, weight):
    log_p = reward * eta - pm.math.log1pexp(eta)
    return weight * pm.math.switch(pm.math.eq(reward, 0) | pm.math.eq(reward, 1), log_p, -np.inf)


def draw(eta, weight, size):
    return pm.Bernoulli.dist(logit_p=eta, size=size)


INTERCEPTS = bb.Prior(
    "Normal",
    mu=bb.Prior("Normal", mu=0, sigma=2.5),
    sigma=bb.Prior("HalfNormal", sigma=1),
    dims="arm",
)


@bb.reward_model(
    mu0=bb.Prior("Normal", mu=0, sigma=1, dims="feature"),
    tau=bb.Prior("HalfNormal", sigma=1),
    intercept=INTERCEPTS,
)
def hierarchical_logistic(x, reward, weight, arm, mu0, tau, intercept):
    theta = pm.Normal("theta", mu0, tau, dims=("arm", "feature"))
    eta = intercept[arm] + (x * theta[arm]).sum(axis=-1)
    pm.CustomDist(
        "reward", eta, weight, logp=log_likelihood, dist=draw, observed=reward, dims="row"
    )
    return pm.math.sigmoid(eta)
