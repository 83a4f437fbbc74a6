"""The draws of the scales against the laws that they claim."""

import numpy as np
import pytest
from scipy import stats

from bayesbandit.kernels.gibbs import scales


def inverses(m, shape, size, seed=3):
    """Draws of 1/X, X ~ InverseGaussian(1/m, shape)."""
    rng = np.random.default_rng(seed)
    z, u = rng.standard_normal(size), rng.random(size)
    return np.array(
        [scales.inverse_gaussian_inverse(m, shape, *pair) for pair in zip(z, u, strict=True)]
    )


@pytest.mark.parametrize("shape", [0.01, 1.0, 300.0])
@pytest.mark.parametrize("m", [1e-3, 0.3, 1.0, 50.0, 1e4])
def test_inverse_gaussian(m, shape):
    law = stats.invgauss(1.0 / (m * shape), scale=shape)
    assert stats.kstest(1.0 / inverses(m, shape, 4000), law.cdf).pvalue > 1e-3


def test_inverse_gaussian_without_a_mean():
    """θ = 0: 1/X ~ χ²₁/shape."""
    assert stats.kstest(2.5 * inverses(0.0, 2.5, 4000), stats.chi2(1).cdf).pvalue > 1e-3


@pytest.mark.parametrize("m", [0.0, 1e-200, 1e-12, 1e12, 1e120])
@pytest.mark.parametrize("shape", [1e-100, 1.0, 1e100])
def test_inverse_gaussian_far_out(m, shape):
    draws = inverses(m, shape, 50)
    assert np.isfinite(draws).all()
    assert (draws >= 0.0).all()


def one_coefficient(kind, theta, sigma2, hyper=scales.KNOWN, shape=0.0, rate=0.0):
    """A prior of one scaled coefficient, and a state at θ with everything else 1."""
    yes = np.array([True])
    prior = scales.Prior(
        kind, yes, np.array([np.nan]), yes, hyper, shape, rate, True, 0.0, 0.0
    )  # fmt: skip
    one = np.ones(1)
    return prior, scales.ScaleState(
        np.array([theta]), *(one.copy() for _ in range(4)), np.array([sigma2])
    )


def chain(prior, state, sweeps, seed=5):
    """(1/τ², λ²) sweep by sweep, θ and σ² held."""
    rng, work = np.random.default_rng(seed), np.empty((2, 1))
    out = np.empty((sweeps, 2))
    for s in range(sweeps):
        scales.draw_scales(prior, state, *work, rng)
        out[s] = state.inv_tau2[0], state.lambda2[0]
    return out


def test_laplace_given_theta():
    prior, state = one_coefficient(scales.LAPLACE, theta=-0.8, sigma2=2.0)
    draws = chain(prior, state, 4000)[:, 0]
    law = stats.invgauss(np.sqrt(2.0) / 0.8, scale=1.0)
    assert stats.kstest(draws, law.cdf).pvalue > 1e-3


def test_ridge_scale_given_theta():
    prior, state = one_coefficient(scales.RIDGE, 1.5, 3.0, scales.GAMMA, shape=2.0, rate=0.7)
    draws = chain(prior, state, 4000)
    np.testing.assert_array_equal(draws[:, 0], draws[:, 1])
    law = stats.gamma(2.5, scale=1.0 / (0.7 + 0.5 * 1.5**2 / 3.0))
    assert stats.kstest(draws[:, 1], law.cdf).pvalue > 1e-3


@pytest.mark.slow
def test_ridge_with_a_half_cauchy_scale():
    """p(τ | θ) ∝ N(θ; 0, τ²) C⁺(τ; 2), by quadrature; the chain is thinned to near independence."""
    prior, state = one_coefficient(scales.RIDGE, 1.5, 1.0, scales.HALF_CAUCHY, 0.5, 1.0 / 4.0)
    log_tau = np.log(1.0 / np.sqrt(chain(prior, state, 60_000)[::15, 1]))
    grid = np.linspace(-5.0, 25.0, 30_001)
    density = stats.norm.pdf(1.5, scale=np.exp(grid)) * stats.halfcauchy.pdf(np.exp(grid) / 2.0)
    cdf = np.cumsum(density * np.exp(grid))
    assert stats.kstest(log_tau, lambda q: np.interp(q, grid, cdf / cdf[-1])).pvalue > 1e-3


@pytest.mark.slow
def test_horseshoe_given_theta():
    """p(ω | θ) ∝ N(θ; 0, ω²) C⁺(ω; 1)."""
    prior, state = one_coefficient(scales.HORSESHOE, 0.6, 1.0)
    log_omega = -0.5 * np.log(chain(prior, state, 60_000)[::15, 0])
    grid = np.linspace(-6.0, 25.0, 31_001)
    density = stats.norm.pdf(0.6, scale=np.exp(grid)) * stats.halfcauchy.pdf(np.exp(grid))
    cdf = np.cumsum(density * np.exp(grid))
    assert stats.kstest(log_omega, lambda q: np.interp(q, grid, cdf / cdf[-1])).pvalue > 1e-3


def test_fixed_columns_stay(rng):
    for kind in (scales.RIDGE, scales.LAPLACE, scales.HORSESHOE):
        moving = np.array([True, False, False])
        prior = scales.Prior(
            kind, moving, np.array([np.nan, 0.0, 3.0]), moving, scales.GAMMA, 1.0, 1.0, True, 0.0,
            0.0,
        )  # fmt: skip
        state = scales.ScaleState(
            np.ones(3), np.array([1.0, 0.0, 3.0]), np.ones(3), np.ones(1), np.ones(1), np.ones(1)
        )
        scales.draw_scales(prior, state, np.empty(3), np.empty(3), rng)
        np.testing.assert_array_equal(state.inv_tau2[1:], [0.0, 3.0])
        assert state.inv_tau2[0] != 1.0
