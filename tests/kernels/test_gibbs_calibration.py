"""Simulation-based calibration of the Gibbs sampler (Talts, Betancourt, Simpson, Vehtari and Gelman
2018): parameters and data from the joint distribution; the truth's rank among the posterior draws
is uniform. The full size runs by `pytest -m slow tests/kernels/test_gibbs_calibration.py`.
"""

import zlib

import numpy as np
import pytest
from scipy import stats

from bayesbandit.kernels.gibbs import mixture as gibbs
from bayesbandit.kernels.gibbs.scales import GAMMA, HALF_CAUCHY
from tests.cases import few, slow_but
from tests.kernels.gibbs_twin import VARIANTS, prior_of, start

PROPER = [name for name in VARIANTS if "flat" not in name and "1/σ²" not in name]
UNLIKE = ("normal, free noise", "ridge, gamma", "laplace, half-Cauchy", "park-casella", "horseshoe")
DRAWS, BINS = 31, 8


def from_prior(prior, rng):
    """(θ, λ², σ²); where they are known, λ² = 1.4 and σ² = 0.8."""
    lambda2, sigma2, d = 1.4, 0.8, len(prior.fixed)
    if prior.hyper == GAMMA:
        lambda2 = rng.gamma(prior.shape) / prior.rate
    elif prior.hyper == HALF_CAUCHY:
        lambda2 = prior.rate / rng.standard_cauchy() ** 2
    if not prior.noise_known:
        sigma2 = prior.noise_scale / rng.gamma(prior.noise_shape)
    local = {
        gibbs.FIXED: np.ones(d),
        gibbs.RIDGE: np.ones(d),
        gibbs.LAPLACE: rng.exponential(2.0, d),
        gibbs.HORSESHOE: rng.standard_cauchy(d) ** 2,
    }[prior.kind]
    tau2 = np.where(prior.moving, local / lambda2, 1.0 / prior.fixed)
    s = np.where(prior.scaled, sigma2, 1.0)
    return np.sqrt(s * tau2) * rng.standard_normal(d), lambda2, sigma2


def ranks(name, from_rows, datasets, thin, rng):
    """(datasets, 5): ranks of θ_first, θ_last, λ², σ² and the log likelihood; −1: known."""
    n, d = (4, 6) if from_rows else (8, 3)
    prior = prior_of(name, d, mixed=True)
    out = np.empty((datasets, 5), dtype=int)
    for i in range(datasets):
        theta, lambda2, sigma2 = from_prior(prior, rng)
        x, w = rng.normal(size=(n, d)), rng.uniform(0.3, 3.0, n)
        r = x @ theta + rng.normal(size=n) * np.sqrt(sigma2 / w)
        xw = (w * x.T).T
        data = gibbs.statistics(x.T @ xw, xw.T @ r, w @ r**2, n)
        if from_rows:
            data = gibbs.rows(x, r, w)
        known = None if not prior.noise_known else sigma2
        state = start(data, prior, lambda2=1.4, sigma2=known)
        gibbs.sample(data, prior, state, rng, 1, thin=10 * thin)
        draws = gibbs.sample(data, prior, state, rng, DRAWS, thin=thin)
        thetas = np.vstack([theta, draws.theta])
        sigma2s = np.append(sigma2, draws.sigma2)
        loss = (r - thetas @ x.T) ** 2 @ w / sigma2s + n * np.log(sigma2s)
        values = thetas[:, 0], thetas[:, -1], np.append(lambda2, draws.lambda2), sigma2s, loss
        for k, v in enumerate(values):
            out[i, k] = -1 if v[1] == v[2] else np.sum(v[1:] < v[0])
    return out


@few("[64-20-normal, free noise-False]")
@pytest.mark.parametrize("from_rows", [False, True])
@pytest.mark.parametrize("name", slow_but(UNLIKE, PROPER))
@pytest.mark.parametrize(
    ("datasets", "thin"),
    [(64, 20), pytest.param(2000, 50, marks=pytest.mark.long)],
)
def test_ranks_are_uniform(name, from_rows, datasets, thin):
    case = zlib.crc32(f"{name} {from_rows}".encode())  # of its own: cases share no contexts
    rng = np.random.default_rng([case, datasets])
    for column in ranks(name, from_rows, datasets, thin, rng).T:
        if column[0] >= 0:
            counts = np.bincount(column * BINS // (DRAWS + 1), minlength=BINS)
            assert stats.chisquare(counts).pvalue > 1e-4, counts
