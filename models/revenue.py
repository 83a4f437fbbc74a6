"""Revenue: most visitors buy nothing, and what others spend is log-normal.

    P(r_i > 0 | β)        = logit⁻¹(b + x_iᵀβ)
    log r_i | r_i > 0, θ  ~ N(c + x_iᵀθ, σ²)
    β_j, θ_j              ~ N(0, 1),    b, c ~ N(0, 2.5²),    log σ ~ N(−1/2, 1/4)

One arm may sell more often, another at higher prices: the mean reward,
logit⁻¹(b + x'β) exp(c + x'θ + σ²/2), counts both. A normal likelihood would let one large order
outweigh a hundred visits.

The weight is a power of the likelihood: a row with weight 2 counts as two rows. A draw of a reward
does not depend on its weight.
"""

import numpy as np
import pymc as pm

import bayesbandit as bb


def log_likelihood(reward, eta, mu, sigma, weight):
    sold = pm.math.gt(reward, 0)
    amount = pm.math.switch(sold, reward, 1.0)
    log_p = eta + pm.logp(pm.LogNormal.dist(mu, sigma), amount)
    log_p = pm.math.switch(sold, log_p, 0.0) - pm.math.log1pexp(eta)
    return weight * pm.math.switch(pm.math.ge(reward, 0), log_p, -np.inf)


def draw(eta, mu, sigma, weight, size):
    sold = pm.Bernoulli.dist(logit_p=eta, size=size)
    return sold * pm.LogNormal.dist(mu, sigma, size=size)


@bb.reward_model(
    beta=bb.Prior("Normal", mu=0, sigma=1, dims="feature"),
    theta=bb.Prior("Normal", mu=0, sigma=1, dims="feature"),
    sigma=bb.Prior("LogNormal", mu=-0.5, sigma=0.5),
    intercept_sold=bb.Prior("Normal", mu=0, sigma=2.5),
    intercept_amount=bb.Prior("Normal", mu=0, sigma=2.5),
)
def revenue(x, reward, weight, beta, theta, sigma, intercept_sold, intercept_amount):
    eta = intercept_sold + x @ beta
    mu = intercept_amount + x @ theta
    pm.CustomDist(
        "reward", eta, mu, sigma, weight, logp=log_likelihood, dist=draw, observed=reward,
        dims="row",
    )  # fmt: skip
    return pm.math.sigmoid(eta) * pm.math.exp(mu + 0.5 * sigma**2)
