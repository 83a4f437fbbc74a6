"""Many ways of declaring a linear-Gaussian reward model."""

import numpy as np
import pymc as pm
import pymc.dims as pmd
import pytensor.tensor as pt
from pytensor.xtensor import as_xtensor

from tests.declarations import normal_rewards
from tests.inference.declared import rows

D, K, N, SIGMA = 3, 4, 30, 0.7
RHO = 0.5 ** np.abs(np.subtract.outer(range(D), range(D)))  # a covariance that is not diagonal
BASIS = np.random.default_rng(7).normal(size=(D, 5))


def observe(mu, reward, weight):
    return normal_rewards(mu, SIGMA / pm.math.sqrt(weight), reward)


def by_weight(x, weight):
    return SIGMA / pt.sqrt(weight)


def normal(mu=0.0, sigma=1.0, **shape):
    return lambda: pm.Normal("theta", mu, sigma, **(shape or {"dims": "feature"}))


standard = normal()


def regression(
    name,
    theta=standard,
    mean=lambda x, t: x @ t,
    seen=lambda r: r,
    sd=by_weight,
    likelihood=None,
):
    """Return a declaration: `theta()` makes θ, the mean reward is `mean(x, θ)`, and `seen(reward)`
    is observed, or what `likelihood(mean, reward, weight)` says."""

    def declare(x, reward, weight):
        mu = mean(x, theta())
        if likelihood is None:
            pm.Normal("reward", mu, sd(x, weight), observed=seen(reward))
        else:
            likelihood(mu, reward, weight)
        return mu

    declare.__name__ = name
    return declare


def squares(x, t):
    return pt.concatenate([x, x**2, pt.abs(x[:, :1])], axis=1) @ t


ridge = regression("ridge", normal(0, 2))
intercept = regression("intercept", normal(), lambda x, t: pm.Normal("alpha", 1, 3) + x @ t)
centred_elsewhere = regression("centred_elsewhere", normal(np.arange(D)))
squares_of_features = regression("squares_of_features", normal(shape=2 * D + 1), squares)
offset = regression("offset", normal(), lambda x, t: 5.0 + x @ t)
centred_contexts = regression("centred_contexts", normal(), lambda x, t: (x - x.mean(axis=0)) @ t)
mv_cov = regression("mv_cov", lambda: pm.MvNormal("theta", np.ones(D), cov=RHO, dims="feature"))
mv_tau = regression(
    "mv_tau", lambda: pm.MvNormal("theta", np.zeros(D), tau=np.linalg.inv(RHO), dims="feature")
)
hierarchical_mean = regression(
    "hierarchical_mean",
    lambda: pm.Normal("theta", pm.Normal("centre", 0, 1), 0.5, dims="feature"),
)
random_walk = regression(
    "random_walk",
    lambda: pm.GaussianRandomWalk(
        "theta", mu=0.1, sigma=0.3, init_dist=pm.Normal.dist(0, 1), shape=D
    ),
)
improper = regression(
    "improper", lambda: pm.Flat("theta", dims="feature"), lambda x, t: pm.Flat("alpha") + x @ t
)
noise_by_context = regression(
    "noise_by_context", normal(), sd=lambda x, weight: pt.exp(0.5 * x[:, 0]) / pt.sqrt(weight)
)
log_rewards = regression("log_rewards", normal(), seen=lambda r: pt.log(1 + pt.abs(r)))
clipped = regression("clipped", normal(), seen=lambda r: pt.clip(r, -1, 1))


precision_form = regression(
    "precision_form",
    lambda: pm.Normal("theta", 0, tau=4, dims="feature"),
    likelihood=lambda mu, r, w: pm.Normal("reward", mu, tau=w / SIGMA**2, observed=r),
)


def gaussian_process(x, reward, weight):
    knots = np.linspace(-2, 2, 5)
    K_uu = np.exp(-0.5 * np.subtract.outer(knots, knots) ** 2)
    value = pm.MvNormal("value", np.zeros(5), cov=K_uu)
    kernel = pt.exp(-0.5 * (x[:, 0][:, None] - knots) ** 2)
    return observe(kernel @ pt.linalg.solve(pt.as_tensor(K_uu), value), reward, weight)


def non_centred(x, reward, weight):
    centre, z = pm.Normal("centre", 1, 1), pm.Normal("z", 0, 1, dims="feature")
    theta = pm.Deterministic("theta", centre + 0.5 * z, dims="feature")
    return observe(x @ theta, reward, weight)


def log_normal(r, mu):
    return pm.logp(pm.Normal.dist(mu, SIGMA), r)


def potential(name, log_likelihood):
    """A declaration whose likelihood is a potential of mean, reward and weight."""
    return regression(
        name, likelihood=lambda *rows: pm.Potential("likelihood", log_likelihood(*rows))
    )


power_two = potential("power_two", lambda m, r, w: -0.5 * (w * (r - m) ** 2 / SIGMA**2).sum())
weights_by_potential = potential("weights_by_potential", lambda m, r, w: w * log_normal(r, m))
averaged = potential("averaged", lambda m, r, w: pt.mean(log_normal(r, m)))
weights_by_custom = regression(
    "weights_by_custom",
    likelihood=lambda m, r, w: pm.CustomDist(
        "reward", m, w, logp=lambda r, m, w: w * log_normal(r, m), observed=r
    ),
)
joint_noise = regression(
    "joint_noise",
    likelihood=lambda m, r, w: pm.MvNormal(
        "reward", m, cov=0.3 + pt.diag(SIGMA**2 / w), observed=r
    ),
)


def two_likelihoods(x, reward, weight):
    theta = pm.Normal("theta", 0, 1, dims="feature")
    pm.Normal("pilot", BASIS.T @ theta, 2.0, observed=np.arange(5.0))
    return observe(x @ theta, reward, weight)


def zellner(x, reward, weight):
    theta = pm.MvNormal("theta", np.zeros(D), tau=x.T @ x / 10, dims="feature")
    return observe(x @ theta, reward, weight)


def logarithms(x, reward, weight):
    theta = pm.Normal("theta", 0, 1, dims="feature")
    mu = pt.log(x) @ theta
    pm.Normal("reward", mu, SIGMA, observed=pt.log(reward))
    return pt.exp(mu + SIGMA**2 / 2)


def named_dimensions(x, reward, weight):
    x, reward = as_xtensor(x, dims=("row", "feature")), as_xtensor(reward, dims=("row",))
    mu = x.dot(pmd.Normal("theta", 0, 1, dims="feature"), dim="feature")
    sigma = SIGMA / pmd.math.sqrt(as_xtensor(weight, dims=("row",)))
    pmd.Normal("reward", mu, sigma, observed=reward)
    return mu


def arms(x, reward, weight, arm):
    theta = pm.Normal("theta", 0, 1, dims=("arm", "feature"))
    return observe((x * theta[arm]).sum(axis=1), reward, weight)


def arms_share_a_mean(x, reward, weight, arm):
    centre = pm.Normal("centre", 0, 1, dims="feature")
    theta = pm.Normal("theta", centre, 0.4, dims=("arm", "feature"))
    return observe((x * theta[arm]).sum(axis=1), reward, weight)


def arms_off_centre(x, reward, weight, arm):
    theta = pm.Normal("theta", 0, 1, dims="feature")
    alpha, z = pm.Normal("alpha", 0, 2), pm.Normal("z", 0, 1, dims="arm")
    return observe(alpha + 0.3 * z[arm] + x @ theta, reward, weight)


def noise_by_arm(x, reward, weight, arm):
    theta = pm.Normal("theta", 0, 1, dims=("arm", "feature"))
    mu = (x * theta[arm]).sum(axis=1)
    sigma = pt.as_tensor([0.5, 2.0, 1.0, 3.0])[arm]
    pm.Normal("reward", mu, sigma / pt.sqrt(weight), observed=reward)
    return mu


STREAMED = [
    *(ridge, intercept, precision_form, centred_elsewhere),
    *(squares_of_features, offset, mv_cov, mv_tau),
    *(random_walk, gaussian_process, hierarchical_mean, non_centred),
    *(power_two, weights_by_potential, weights_by_custom, two_likelihoods),
    *(noise_by_context, improper, logarithms, named_dimensions),
    *(arms, arms_share_a_mean, arms_off_centre),
]
IN_BATCH = [joint_noise, zellner, averaged, centred_contexts]


def data_of(declare):
    data = rows(n=N, d=D, arms=K if "arm" in declare.__name__ else None)
    if declare is logarithms:
        data = data | {"x": np.exp(data["x"]), "reward": np.exp(data["reward"])}
    return data
