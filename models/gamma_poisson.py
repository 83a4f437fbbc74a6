"""A rate for each arm, for rewards that are counts, without contexts.

    r_i | rate ~ Poisson(rate),    rate ~ Gamma(1, 1)

So rate | r ~ Gamma(1 + Σ w r, 1 + Σ w). The weight is a power of the likelihood,
p(r_i | rate)^{w_i}: a row with weight 2 counts as two rows. A draw of a reward does not depend on
its weight.
"""

import numpy as np
import pymc as pm

import bayesbandit as bb


def log_likelihood(reward, rate, weight):
    log_p = pm.logp(pm.Poisson.dist(rate), reward)
    return weight * pm.math.switch(pm.math.eq(reward, pm.math.floor(reward)), log_p, -np.inf)


def draw(rate, weight, size):
    return pm.Poisson.dist(rate, size=size)


@bb.reward_model(rate=bb.Prior("Gamma", alpha=1.0, beta=1.0))
def gamma_poisson(x, reward, weight, rate):
    pm.CustomDist(
        "reward", rate, weight, logp=log_likelihood, dist=draw, observed=reward, dims="row"
    )
    return rate
