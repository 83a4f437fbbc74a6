"""Gibbs sampler of the linear model with scalar noise and a diagonal scale mixture of normals.

    r | θ, σ² ~ N(Xθ, σ²/w),   θ_j | τ_j², σ² ~ N(0, s_j τ_j²) with s_j = σ² or 1

A sweep draws the scales given θ (`scales.py`), then σ² and θ given the scales (`sweeps.py`): there
θ ~ N(A⁻¹X'Wr, σ²A⁻¹) with A = X'WX + diag(shift), shift_j = σ²/(s_j τ_j²). Where every informative
prior is scaled by the noise, σ² is drawn with θ integrated out: the two-block sampler of
Rajaratnam, Sparks, Khare and Zhang (2019), which mixes faster than Park and Casella's three blocks
and costs nothing, since rr − b'A⁻¹b falls out of the factorisation.

All that is known of a chain is its `ScaleState`: a call continues where the last one ended, on the
same data or on newer ones. Same generator and same state, same chain.
"""

import numpy as np

from bayesbandit.kernels.algebra.cholesky import padded, room
from bayesbandit.kernels.gibbs import scales, sweeps
from bayesbandit.kernels.gibbs.scales import (
    FIXED,
    HORSESHOE,
    LAPLACE,
    RIDGE,
    Prior,
    ScaleState,
    Vector,
)
from bayesbandit.kernels.gibbs.sweeps import Draws, Matrix, Rows, Statistics

__all__ = [
    "FIXED", "HORSESHOE", "LAPLACE", "RIDGE", "Draws", "Prior", "Rows", "ScaleState", "Statistics",
    "declare", "most_rows", "prefers_rows", "problem", "rows", "sample", "statistics",
]  # fmt: skip


def statistics(G: Matrix, b: Vector, rr: float, n: float) -> Statistics:
    """Return the sufficient statistics G = X'WX (d, d), b = X'Wr (d,), rr = r'Wr, and the number of
    rows."""
    d = b.size
    A = np.zeros(room(d))
    A[:d, :d], A[:d, padded(d)] = G, b
    return Statistics(A, float(rr), float(n))


def rows(x: Matrix, r: Vector, weight: Vector | None = None) -> Rows:
    """Return rows x (n, d) and rewards r (n,) with precision weights (n,), for n < d.

    `statistics` keeps more digits where the rows outnumber the columns, or repeat themselves, and
    the prior is all but flat.
    """
    n, d = x.shape
    root = np.ones(n) if weight is None else np.sqrt(weight)
    xt = np.zeros((d, padded(n)))
    xt[:, :n] = (x * root[:, None]).T
    return Rows(xt, r * root, float(np.sum((r * root) ** 2)))


def most_rows(d: int) -> int:
    """Return how many rows are quicker as they are, at most: about n²d/2 multiplications a sweep
    against d³/6."""
    return 2 * d // 5


def prefers_rows(n: int, d: int) -> bool:
    """Return whether n rows are quicker as they are."""
    return 0 < n <= most_rows(d)


def problem(x: Matrix, r: Vector, weight: Vector | None = None) -> Statistics | Rows:
    """Return `rows` where `prefers_rows` says so, else `statistics`."""
    if prefers_rows(*x.shape):
        return rows(x, r, weight)
    if weight is not None:
        root = np.sqrt(weight)
        x, r = x * root[:, None], r * root
    return statistics(x.T @ x, x.T @ r, float(r @ r), len(r))  # of x'x NumPy computes one triangle


def declare(
    d: int, kind: int = LAPLACE, *, fixed: Vector | None = None, scaled: bool | Vector = True,
    gamma: tuple[float, float] | None = None, half_cauchy: float | None = None,
    noise: tuple[float, float] | None = None,
) -> Prior:  # fmt: skip
    """Return the prior of d coefficients whose scales are mixed as `kind` says.

    `fixed` (d,): 1/τ_j² where a column's scale is not drawn, 0 for an unpenalised one, NaN where it
    is drawn. `gamma=(shape, rate)`: the prior of λ²; `half_cauchy=scale`: of 1/λ; neither: λ² is
    known. `noise=(shape, scale)`: the inverse-gamma prior of σ², (0, 0) for 1/σ²; None: σ² is
    known. What is known has the value that the state starts with.
    """
    if fixed is None:
        fixed = np.full(d, 1.0 if kind == FIXED else np.nan)
    fixed = np.array(fixed, dtype=np.float64)
    hyper, (shape, rate) = scales.KNOWN, (0.0, 0.0)
    if gamma is not None:
        hyper, (shape, rate) = scales.GAMMA, gamma
    elif half_cauchy is not None:
        hyper, (shape, rate) = scales.HALF_CAUCHY, (0.5, half_cauchy**-2.0)
    noise_shape, noise_scale = noise or (0.0, 0.0)
    return Prior(
        int(kind), np.isnan(fixed), fixed, np.broadcast_to(scaled, d).astype(np.bool_),
        hyper, float(shape), float(rate), noise is None, float(noise_shape), float(noise_scale),
    )  # fmt: skip


def fitted(data: Statistics | Rows, d: int) -> float:
    """Return the part of rr that least squares explains."""
    if isinstance(data, Rows):
        x = data.xt[:, : data.r.size].T
        return float(data.r @ x @ np.linalg.lstsq(x, data.r)[0])
    G, b = data.A[:d, :d], data.A[:d, padded(d)]
    return float(b @ np.linalg.lstsq(G, b)[0])


def check_noise(data: Statistics | Rows, prior: Prior) -> None:
    """Raise where σ² has no proper posterior: too few rows, or a scale of 0 and a perfect fit."""
    n = data.r.size if isinstance(data, Rows) else data.n
    flat, d = int(np.sum(prior.fixed == 0.0)), prior.fixed.size
    known = f"an InverseGamma({prior.noise_shape:g}, {prior.noise_scale:g}) prior and {n:g} rows"
    if not 2.0 * prior.noise_shape + n > flat:
        raise ValueError(f"σ² has no proper posterior with {known} for {flat} unpenalised columns")
    if prior.noise_scale > 0.0:
        return
    residual = data.rr
    if n <= d and not (prior.scaled | (prior.fixed == 0.0)).all():
        residual -= fitted(data, d)
    if not residual > 1e-12 * data.rr:
        raise ValueError(f"σ² has no proper posterior with {known} that fit perfectly")


def sample(
    data: Statistics | Rows, prior: Prior, state: ScaleState, rng: np.random.Generator,
    draws: int, thin: int = 1,
) -> Draws:  # fmt: skip
    """Sweep, and return one of every `thin` sweeps, S = `draws`; the state moves on to the last
    one."""
    d = prior.fixed.size
    out = Draws(np.empty((draws, d)), np.empty((draws, d)), np.empty(draws), np.empty(draws))
    sweep = sweeps.sweep_rows if isinstance(data, Rows) else sweeps.sweep_statistics
    sweep(data, prior, state, out, thin, rng)
    if not np.isfinite(state.theta).all():
        raise FloatingPointError(
            f"the sampler has lost its digits: θ has {np.sum(~np.isfinite(state.theta))} values of "
            "NaN or infinity; are the data finite, and the columns of like size?"
        )
    return out
