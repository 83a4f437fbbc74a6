"""Logistic regression for rewards of 0 and 1.

    r_i | θ, c ~ Bernoulli(p_i),    log p_i/(1 − p_i) = η_i = c + x_iᵀθ
    θ_j        ~ N(0, 1),    c ~ N(0, 2.5²)

A probability has no noise variance that a weight could divide. So the weight is a power of the
likelihood, p(r_i | θ)^{w_i}: a row with weight 2 counts as two rows. A draw of a reward does not
depend on its weight.
"""

import numpy as np
import pymc as pm

import bayesbandit as bb


def log_likelihood(reward, eta, weight):
    log_p = reward * eta - pm.math.log1pexp(eta)
    return weight * pm.math.switch(pm.math.eq(reward, 0) | pm.math.eq(reward, 1), log_p, -np.inf)


def draw(eta, weight, size):
    return pm.Bernoulli.dist(logit_p=eta, size=size)


@bb.reward_model(
    theta=bb.Prior("Normal", mu=0, sigma=1, dims="feature"),
    intercept=bb.Prior("Normal", mu=0, sigma=2.5),
)
def logistic(x, reward, weight, theta, intercept):
    eta = intercept + x @ theta
    pm.CustomDist(
        "reward", eta, weight, logp=log_likelihood, dist=draw, observed=reward, dims="row"
    )
    return pm.math.sigmoid(eta)
