"""Ratings, such as stars, by an ordered logit.

    P(r_i > k | θ, s) = σ(x_iᵀθ − c_k),    k = 0 … 3,    r_i one of 0, 1, 2, 3, 4
    c_k = logit(s_0 + … + s_k),    θ_j ~ N(0, 1),    s ~ Dirichlet(1, 1, 1, 1, 1)

From 4 to 5 stars need not be as far as from 1 to 2: the model learns where the ratings lie. A
normal likelihood would take these distances for equal, and expect ratings beyond both ends. s are
the shares of the ratings in the context 0. `levels` is the number of ratings:

    ordinal.with_priors(levels=11)

The weight is a power of the likelihood, p(r_i | θ, s)^{w_i}: a row with weight 2 counts as two
rows. A draw of a reward does not depend on its weight.

McCullagh (1980), Regression models for ordinal data, JRSS B 42.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

import bayesbandit as bb


def log_likelihood(reward, eta, cuts, weight):
    ends = pm.math.concatenate([[-np.inf], cuts, [np.inf]])
    low, high, eta = ends[:-1], ends[1:], eta[:, None]  # (levels,), (levels,), (n, 1)
    log_p = -pm.math.log1pexp(low - eta) - pm.math.log1pexp(eta - high)  # σ(b) − σ(a) is
    log_p += pm.math.log1mexp(low - high)  # σ(b) σ(−a) (1 − e^(a − b)), without cancellation
    at = pm.math.eq(reward[:, None], pt.arange(cuts.shape[0] + 1))
    log_p = pm.math.switch(at, log_p, 0.0).sum(axis=-1)
    return weight * pm.math.switch(at.any(axis=-1), log_p, -np.inf)


def draw(eta, cuts, weight, size):
    return pm.OrderedLogistic.dist(eta=eta, cutpoints=cuts, size=size)


@bb.reward_model(theta=bb.Prior("Normal", mu=0, sigma=1, dims="feature"), levels=5)
def ordinal(x, reward, weight, theta, levels):
    share = pm.Dirichlet("share", np.ones(int(levels.data)))
    cuts = pm.math.logit(pm.math.cumsum(share)[:-1])
    eta = x @ theta
    pm.CustomDist(
        "reward", eta, cuts, weight, logp=log_likelihood, dist=draw, observed=reward, dims="row"
    )
    return pm.math.sigmoid(eta[:, None] - cuts).sum(axis=-1)
