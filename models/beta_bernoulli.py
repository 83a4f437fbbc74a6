"""A probability for each arm, for rewards of 0 and 1, without contexts.

    r_i | p ~ Bernoulli(p),    p ~ Beta(1, 1)

So p | r ~ Beta(1 + Σ w r, 1 + Σ w (1 − r)). The weight is a power of the likelihood,
p(r_i | p)^{w_i}: a row with weight 2 counts as two rows. A draw of a reward does not depend on its
weight.
"""

import numpy as np
import pymc as pm

import bayesbandit as bb


def log_likelihood(reward, p, weight):
    log_p = reward * pm.math.log(p) + (1 - reward) * pm.math.log1p(-p)
    return weight * pm.math.switch(pm.math.eq(reward, 0) | pm.math.eq(reward, 1), log_p, -np.inf)


def draw(p, weight, size):
    return pm.Bernoulli.dist(p, size=size)


@bb.reward_model(p=bb.Prior("Beta", alpha=1.0, beta=1.0))
def beta_bernoulli(x, reward, weight, p):
    pm.CustomDist("reward", p, weight, logp=log_likelihood, dist=draw, observed=reward, dims="row")
    return p
