"""Times that are watched up to a limit, such as how long a customer stays.

    t_i | θ, c ~ Exponential with mean exp(c + x_iᵀθ),    r_i = min(t_i, limit)
    θ_j        ~ N(0, 1),    c ~ N(0, 2.5²)

A reward at the limit says "at least so long". To take it for the time itself, or to leave it out,
underrates the best arms most. The mean reward is that of r, limit · (1 − e^−u)/u with
u = limit · exp(−c − x'θ). It rises with c + x'θ, the log of the mean time. Give the limit in the
units of the rewards:

    censored_time.with_priors(limit=30.0)

The weight is a power of the likelihood: a row with weight 2 counts as two rows. A draw of a reward
does not depend on its weight.
"""

import numpy as np
import pymc as pm

import bayesbandit as bb


def log_likelihood(reward, eta, limit, weight):
    ended = pm.math.lt(reward, limit)
    log_p = -pm.math.switch(ended, eta, 0.0) - reward * pm.math.exp(-eta)
    possible = pm.math.ge(reward, 0) & pm.math.le(reward, limit)
    return weight * pm.math.switch(possible, log_p, -np.inf)


def draw(eta, limit, weight, size):
    return pm.math.minimum(pm.Exponential.dist(scale=pm.math.exp(eta), size=size), limit)


@bb.reward_model(
    theta=bb.Prior("Normal", mu=0, sigma=1, dims="feature"),
    limit=10.0,
    intercept=bb.Prior("Normal", mu=0, sigma=2.5),
)
def censored_time(x, reward, weight, theta, limit, intercept):
    eta = intercept + x @ theta
    pm.CustomDist(
        "reward", eta, limit, weight, logp=log_likelihood, dist=draw, observed=reward, dims="row"
    )
    u = pm.math.maximum(limit * pm.math.exp(-eta), 1e-300)  # (1 − e^−u)/u is 1 there
    return limit * -pm.math.expm1(-u) / u
