"""Simulation-based calibration of the generic sweep, each of its kinds of step: parameters and data
from the joint distribution; the truth's rank among the posterior draws is uniform (Talts and others
2018). The full size runs by `pytest -m slow tests/inference/test_generic_calibration.py`.
"""

import zlib

import numpy as np
import pymc as pm
import pytest
from scipy import stats

from bayesbandit.declaring.priors import Prior
from bayesbandit.inference.gibbs.problem import lay_out
from bayesbandit.inference.gibbs.sampler import match
from bayesbandit.model import reward_model
from tests.cases import few, slow_but

DRAWS, BINS, N, D = 31, 8, 12, 2
EACH = Prior("Normal", mu=0, sigma=1, dims="feature")
HALF = Prior("HalfNormal", sigma=1)


@reward_model(mu0=EACH, tau=HALF, sigma=Prior("Gamma", alpha=3, beta=3))
def hierarchy(x, reward, arm, mu0, tau, sigma):
    """A stretch about the common mean, and three powers of σ."""
    theta = pm.Normal("theta", mu0, tau, dims=("arm", "feature"))
    mu = (x * theta[arm]).sum(axis=-1)
    pm.Normal("r", mu, sigma, observed=reward)
    return mu


@reward_model(theta=EACH, sigma2=Prior("InverseGamma", alpha=3, beta=2))
def student(x, reward, theta, sigma2):
    """σ² with all precisions of rows."""
    mu = x @ theta
    pm.StudentT("r", 4, mu, sigma=pm.math.sqrt(sigma2), observed=reward)
    return mu


@reward_model(b=HALF, sigma=Prior("LogNormal", mu=0, sigma=0.5))
def laplace(x, reward, b, sigma):
    """b with the mixing variances, with and without the coefficients; a square of log σ."""
    theta = pm.Laplace("theta", 0, b, dims="feature")
    pm.Normal("r", x @ theta, sigma, observed=reward)
    return x @ theta


@reward_model(theta=EACH, sigma=Prior("Uniform", lower=0.5, upper=1.5, dims="arm"))
def by_arm(x, reward, arm, theta, sigma):
    """Walls."""
    mu = x @ theta
    pm.Normal("r", mu, sigma[arm], observed=reward)
    return mu


@reward_model(sigma2=Prior("InverseGamma", alpha=3, beta=2))
def scaled(x, reward, sigma2):
    """A noise that scales the prior, too; other noise by row."""
    theta = pm.Normal("theta", 0, pm.math.sqrt(sigma2), dims="feature")
    mu = x @ theta
    sd = pm.math.sqrt(sigma2) * pm.math.exp(x[:, 0] / 2)
    pm.Normal("r", mu, sd, observed=reward)
    return mu


@reward_model(
    lambda2=Prior("Gamma", alpha=2, beta=1), sigma2=Prior("InverseGamma", alpha=3, beta=2)
)
def park_casella(x, reward, lambda2, sigma2):
    """Inverse Gaussian scales, and σ² with them and with the coefficients."""
    tau2 = pm.Exponential("tau2", lambda2 / 2, dims="feature")
    theta = pm.Normal("theta", 0, pm.math.sqrt(sigma2 * tau2), dims="feature")
    pm.Normal("r", x @ theta, pm.math.sqrt(sigma2), observed=reward)
    return x @ theta


@reward_model(tau=Prior("HalfCauchy", beta=1), sigma=HALF)
def horseshoe(x, reward, tau, sigma):
    """Local and common half-Cauchy scales, and those that mix them."""
    local = pm.HalfCauchy("local", 1, dims="feature")
    theta = pm.Normal("theta", 0, tau * local, dims="feature")
    pm.Normal("r", x @ theta, sigma, observed=reward)
    return x @ theta


MODELS = {m.name: m for m in (hierarchy, student, laplace, by_arm, scaled, park_casella, horseshoe)}


def simulated(model, x, arm, size, seed):
    """Draws of the free variables and of rewards (size, N) from the joint distribution."""
    data = {"x": x, "reward": np.zeros(N)} | ({"arm": arm} if model.takes_arm else {})
    built = model.build(**data)
    free = list(built.free_RVs)
    drawn = pm.draw([*free, built["r"]], draws=size, random_seed=seed)
    return {v.name: d for v, d in zip(free, drawn[:-1], strict=True)}, drawn[-1]


@pytest.mark.parametrize("name", slow_but(("hierarchy", "scaled"), MODELS))
@pytest.mark.parametrize(
    ("datasets", "thin"),
    [(64, 20), pytest.param(2000, 40, marks=pytest.mark.long)],
)
@few("hierarchy")
def test_ranks_are_uniform(name, datasets, thin):
    model, rng = MODELS[name], np.random.default_rng([zlib.crc32(name.encode()), datasets])
    x, arm = rng.normal(size=(N, D)), np.arange(N) % 3
    truth, rewards = simulated(model, x, arm, datasets, int(rng.integers(2**31)))
    data = {"x": x, "reward": rewards[0]} | ({"arm": arm} if model.takes_arm else {})
    found = match(model.build(**data))
    ranks = []
    for i, reward in enumerate(rewards):
        whole = lay_out(found, found.data(x, reward, arm=arm))
        start = found.start(len(whole.data[0]), rng)
        every = thin * DRAWS
        values, _ = whole.sample(start, every, 200, rng, found.names)
        ranks.append([
            np.sum(np.reshape(v[::thin], (DRAWS, -1))[:, j] < np.ravel(truth[k][i])[j])
            for k, v in values.items() for j in range(np.ravel(truth[k][i]).size)
        ])  # fmt: skip
    for column in np.array(ranks).T:
        counts = np.bincount(column * BINS // (DRAWS + 1), minlength=BINS)
        assert stats.chisquare(counts).pvalue > 1e-4, counts
