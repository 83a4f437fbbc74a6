"""Conditional draws of the scales in a scale mixture of normals, θ_j ~ N(0, s_j τ_j²).

What is held is the precision `inv_tau2` = 1/τ_j², and λ², the squared inverse of the scale that the
coefficients have in common: τ_j² = 1/λ² (ridge), λ² τ_j² ~ Exponential(½) (Laplace with rate λ/√s:
Park and Casella 2008), λ² τ_j² = ω_j² with ω_j half-Cauchy (horseshoe: Makalic and Schmidt 2016).
Random numbers are taken from the generator as NumPy would take them, array by array.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesbandit.runtime.compiling import njit

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]

FIXED, RIDGE, LAPLACE, HORSESHOE = range(4)  # how the scales of the moving columns are mixed
KNOWN, GAMMA, HALF_CAUCHY = range(3)  # prior of λ²
TINY, HUGE = 1e-100, 1e100  # what a precision or a variance is kept within

kernel = njit(cache=True, error_model="numpy", nogil=True)


class Prior(NamedTuple):
    """Prior of d coefficients and of the noise; `gibbs.declare` makes it."""

    kind: int  # how the moving columns' scales are mixed
    moving: Mask  # (d,) columns whose scale is drawn
    fixed: Vector  # (d,) 1/τ_j² of the others; 0: unpenalised
    scaled: Mask  # (d,) s_j = σ² where true, 1 elsewhere
    hyper: int  # prior of λ²: KNOWN, GAMMA(shape, rate), or HALF_CAUCHY on 1/λ, rate = 1/scale²
    shape: float
    rate: float
    noise_known: bool
    noise_shape: float  # σ² ~ InverseGamma(shape, scale)
    noise_scale: float


class ScaleState(NamedTuple):
    """Where a chain stands; sweeps change it in place."""

    theta: Vector  # (d,)
    inv_tau2: Vector  # (d,) 1/τ_j²
    inv_nu: Vector  # (d,) the horseshoe's auxiliaries 1/ν_j
    lambda2: Vector  # (1,)
    rate: Vector  # (1,) where 1/λ is half-Cauchy: the rate of λ²'s gamma, an auxiliary
    sigma2: Vector  # (1,)


@kernel
def bounded(x):
    """Return x, limited so that its products stay finite."""
    return min(max(x, TINY), HUGE)


@kernel
def fill_normal(rng, out):
    for i in range(out.size):
        out[i] = rng.standard_normal()


@kernel
def fill_uniform(rng, out):
    for i in range(out.size):
        out[i] = rng.random()


@kernel
def fill_exponential(rng, out):
    for i in range(out.size):
        out[i] = rng.standard_exponential()


@kernel
def inverse_gaussian_inverse(m, shape, z, u):
    """Return 1/X for X ~ InverseGaussian(mean 1/m, shape), from a standard normal z and a uniform
    u.

    Michael, Schucany and Haas (1976), in a form that subtracts nothing and allows m = 0: with
    q = z²/2·shape the roots are 1/(m + q + √(q(q + 2m))) and its counterpart with product 1/m².
    """
    q = 0.5 * z * z / shape
    root = m + q + np.sqrt(q * (q + 2.0 * m))
    return root if u * (root + m) <= root else m * m / root


@kernel
def draw_lambda2(prior, state, rng):
    """Draw λ² | θ, τ², σ² ~ Gamma; where 1/λ ~ HalfCauchy, also its rate ~ Gamma(½, 1/scale²)."""
    theta, inv_tau2, old = state.theta, state.inv_tau2, state.lambda2[0]
    count, total = 0.0, 0.0
    inv_sigma2 = 1.0 / state.sigma2[0]
    for j in range(theta.size):
        if prior.moving[j]:
            if prior.kind == LAPLACE:
                count += 2.0
                total += 1.0 / inv_tau2[j]
            else:
                count += 1.0
                inv_s = inv_sigma2 if prior.scaled[j] else 1.0
                total += theta[j] * theta[j] * inv_s * (inv_tau2[j] / old)
    gamma = rng.standard_gamma(prior.shape + 0.5 * count)
    rate = state.rate[0] if prior.hyper == HALF_CAUCHY else prior.rate
    state.lambda2[0] = bounded(gamma / (rate + 0.5 * total))
    if prior.hyper == HALF_CAUCHY:
        state.rate[0] = rng.standard_exponential() / (prior.rate + state.lambda2[0])


@kernel
def draw_scales(prior, state, first, second, rng):
    """Draw λ², then the moving columns' 1/τ_j², given θ and σ²; `first`, `second` (d,): scratch."""
    if prior.kind == FIXED:
        return
    if prior.hyper != KNOWN:
        draw_lambda2(prior, state, rng)
    theta, inv_tau2, inv_nu, moving = state.theta, state.inv_tau2, state.inv_nu, prior.moving
    lambda2, inv_sigma2 = state.lambda2[0], 1.0 / state.sigma2[0]
    if prior.kind == RIDGE:
        for j in range(theta.size):
            inv_tau2[j] = lambda2 if moving[j] else inv_tau2[j]
    elif prior.kind == LAPLACE:
        fill_normal(rng, first)
        fill_uniform(rng, second)
        c, c_scaled = np.sqrt(1.0 / lambda2), np.sqrt(inv_sigma2 / lambda2)
        for j in range(theta.size):
            m = abs(theta[j]) * (c_scaled if prior.scaled[j] else c)
            tau2 = inverse_gaussian_inverse(m, lambda2, first[j], second[j])
            inv_tau2[j] = bounded(1.0 / tau2) if moving[j] else inv_tau2[j]
    else:
        fill_exponential(rng, first)
        fill_exponential(rng, second)
        for j in range(theta.size):
            t = 0.5 * theta[j] * theta[j] * (inv_sigma2 if prior.scaled[j] else 1.0)
            local = bounded(first[j] / (inv_nu[j] + t * lambda2))
            inv_nu[j] = bounded(second[j] / (1.0 + local))
            inv_tau2[j] = bounded(local * lambda2) if moving[j] else inv_tau2[j]
