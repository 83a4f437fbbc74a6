"""Quasi-random points by which dependent arms are compared (`kernels/prob_best/joint.py`)."""

from __future__ import annotations

from functools import cache, lru_cache

import numpy as np

from bayesbandit.checks import Array
from bayesbandit.kernels.prob_best import joint

JOINT_DRAWS = 4096  # joint draws; a power of 2
WIDTH_STEPS = 256  # of the cubics of `log_width`


@lru_cache(maxsize=32)  # offers may come in any number
def cells(P: int) -> Array:
    """Return the cells (P, JOINT_DRAWS) of points of a scrambled Sobol sequence: of each
    coordinate, each cell once."""
    from scipy.stats import qmc  # what few bandits need, and takes long to load

    return (qmc.Sobol(P, seed=0).random(JOINT_DRAWS).T * JOINT_DRAWS).astype(np.int64)


@cache
def normals() -> Array:
    """Return Φ⁻¹ as a cubic in each of S = JOINT_DRAWS cells (S, 4), by values and slopes; those
    at the ends are of no use."""
    from scipy.interpolate import CubicHermiteSpline
    from scipy.stats import norm

    z = norm.ppf(np.clip(np.arange(JOINT_DRAWS + 1) / JOINT_DRAWS, 1e-9, 1.0 - 1e-9))
    # u = i/S: dΦ⁻¹/di = 1/(S φ(Φ⁻¹))
    spline = CubicHermiteSpline(np.arange(JOINT_DRAWS + 1), z, 1.0 / (JOINT_DRAWS * norm.pdf(z)))
    return np.ascontiguousarray(spline.c.T)


@lru_cache(maxsize=32)
def log_width(df: float) -> Array:
    """Return log √(ν/χ²) of a χ² with ν degrees of freedom as a function of its normal score, a
    cubic in each of N = WIDTH_STEPS steps (4, N); (4, 0) where ν is infinite. It is nearly linear
    (Wilson and Hilferty 1931)."""
    if np.isinf(df):
        return np.empty((4, 0))
    from scipy.interpolate import CubicSpline
    from scipy.special import gammaln
    from scipy.stats import chi2, norm

    # the quantile of χ² at Φ(z), from whichever tail is the smaller
    z = np.linspace(-joint.MAX_NORMAL, joint.MAX_NORMAL, WIDTH_STEPS + 1)
    chi2_ = np.where(z < 0.0, chi2.ppf(norm.cdf(z), df), chi2.isf(norm.sf(z), df))
    # P(χ² < c) → (c/2)^(ν/2) / Γ(ν/2 + 1) as c → 0, where c is no longer a float64
    low = np.log(2.0) + (norm.logcdf(z) + gammaln(0.5 * df + 1.0)) / (0.5 * df)
    log = np.where(chi2_ > 1e-200, np.log(np.maximum(chi2_, 1e-200)), low)
    # log √(ν/χ²) = ½ (log ν − log χ²)
    return CubicSpline(np.arange(WIDTH_STEPS + 1), 0.5 * (np.log(df) - log)).c
