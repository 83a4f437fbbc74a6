"""Arms whose mean rewards are linear in the same normals or Student-t, compared by joint draws."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, cast

import numpy as np

from bayesbandit.history import Layout
from bayesbandit.kernels.prob_best import joint

POINTS = 4096  # quasi-random joint draws, by which dependent arms are compared; a power of 2
STEPS = 256


class Comparison:
    """Mean rewards m + F'ε of the arms that may be chosen, in n contexts.

    arms: their numbers (A,). mean (n, A), factor (n, P, A). df: degrees of freedom of ε. params:
    α and least probability of a round, (n, 2) or (1, 2). seeds (n,): of the shift of the points by
    which a context's arms are compared; until decisions draw them, the same for all.
    """

    def __init__(
        self, arms: np.ndarray, z: np.ndarray, offset: Any, known: Any, params: np.ndarray
    ) -> None:
        """Of mean rewards z θ + b: z (n A, D), offset b (n A,) or a number, and what is known of θ,
        `location` (D,), `spread` (D, D) and `df`."""
        shape = -1, len(arms)
        mean = _product(z, known.location[:, None])[:, 0] + offset
        self.arms, self.df, self.mean = arms, known.df, np.ascontiguousarray(mean.reshape(shape))
        self.factor = _principal(z.reshape(*shape, z.shape[1]), _root(known.spread))
        self.alpha, self.floor = params.T.copy()
        self.seeds = np.zeros(len(self.mean))

    def choose(self, rows: np.ndarray, done: int, layout: Layout, stream: np.ndarray) -> int:
        """Decide for rows (n, width) from `done` on, until the stream runs short; the next row."""
        decide: Any = joint.choose_jointly
        where = layout.n_columns, len(layout.arms), self.arms
        return int(decide(rows, done, *where, *self._known(), stream))

    def probabilities(self) -> np.ndarray:
        """Of each arm (n, A)."""
        shares: Any = joint.shares_of
        shares(*self._known(), out := np.empty(self.mean.shape))
        return out

    def fill(self, rows: np.ndarray, layout: Layout) -> None:
        """The probabilities into rows (n, width)."""
        layout.moment(rows, 2)[:, self.arms] = self.probabilities()

    def _known(self) -> tuple[np.ndarray, ...]:
        """What the kernels take."""
        points = _cells(self.factor.shape[1] + 1), _normals(), _log_width(self.df)
        return self.mean, self.factor, self.seeds, *points, self.alpha, self.floor


def _principal(z: np.ndarray, root: np.ndarray) -> np.ndarray:
    """Factors (n, P, A), P < A, of arms z (n, A, D) with coordinates' `root` (D, D): differences of
    arms along their principal axes, the widest first, as the first coordinates of a Sobol sequence
    are its best."""
    apart = z - z.mean(axis=1, keepdims=True)
    n, A, D = apart.shape
    spread = apart @ root
    if A > D:
        axes = np.linalg.eigh(spread.transpose(0, 2, 1) @ spread)[1][:, :, ::-1]
    else:  # fewer than D axes tell all: squares would lose narrow ones beside wide ones
        axes = np.linalg.svd(spread)[2].transpose(0, 2, 1)[:, :, : max(1, A - 1)]
    turned, out = root @ axes, np.empty((n, axes.shape[2], A))
    for i in range(n):
        out[i] = _product(apart[i], turned[i]).T
    return out


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a (n, D) times b (D, P), by which equal rows have equal bits wherever they stand, so that
    equal arms tie; a library's product lets them differ."""
    product: Any = joint.product
    product(np.ascontiguousarray(a), np.ascontiguousarray(b), out := np.empty((len(a), b.shape[1])))
    return out


def _root(spread: np.ndarray) -> np.ndarray:
    """R with RR' = spread (P, P), which may be singular."""
    try:
        return np.linalg.cholesky(spread)
    except np.linalg.LinAlgError:
        variance, axes = np.linalg.eigh(spread)
        return axes * np.sqrt(np.maximum(variance, 0.0))


def quasi_random(P: int, df: float) -> tuple[np.ndarray, np.ndarray]:
    """Joint draws: standard normals (POINTS, P) and widths (POINTS,) that make them Student-t where
    df is finite; the same every time."""
    put, width_at = cast(Any, joint.put_points), cast(Any, joint.width_at)
    noise, log_width = np.empty((P + 1, POINTS)), _log_width(df)
    put(0.0, _cells(P + 1), _normals(), np.empty(POINTS), noise)
    return noise[:P].T, np.array([width_at(z, log_width) for z in noise[P]])


@lru_cache(maxsize=32)  # offers may come in any number
def _cells(P: int) -> np.ndarray:
    """The cells (P, POINTS) of points of a scrambled Sobol sequence: of each coordinate, each of
    POINTS cells once."""
    from scipy.stats import qmc  # what few bandits need, and takes long to load

    return (qmc.Sobol(P, seed=0).random(POINTS).T * POINTS).astype(np.int64)


@cache
def _normals() -> np.ndarray:
    """Φ⁻¹ as a cubic in each of POINTS cells (4, POINTS), by its values and slopes; those at the
    ends are of no use."""
    from scipy.interpolate import CubicHermiteSpline
    from scipy.stats import norm

    z = norm.ppf(np.clip(np.arange(POINTS + 1) / POINTS, 1e-9, 1.0 - 1e-9))
    return CubicHermiteSpline(np.arange(POINTS + 1), z, 1.0 / (POINTS * norm.pdf(z))).c


@lru_cache(maxsize=32)
def _log_width(df: float) -> np.ndarray:
    """log √(ν/χ²) of a χ² with ν degrees of freedom as a function of its normal score, a cubic in
    each of STEPS steps (4, STEPS); (4, 0) where ν is infinite. It is nearly linear (Wilson and
    Hilferty 1931)."""
    if np.isinf(df):
        return np.empty((4, 0))
    from scipy.interpolate import CubicSpline
    from scipy.special import gammaln
    from scipy.stats import chi2, norm

    z = np.linspace(-joint.REACH, joint.REACH, STEPS + 1)
    chi2_ = np.where(z < 0.0, chi2.ppf(norm.cdf(z), df), chi2.isf(norm.sf(z), df))
    # P(χ² < c) → (c/2)^(ν/2) / Γ(ν/2 + 1) as c → 0, where c is no longer a float64
    low = np.log(2.0) + (norm.logcdf(z) + gammaln(0.5 * df + 1.0)) / (0.5 * df)
    log = np.where(chi2_ > 1e-200, np.log(np.maximum(chi2_, 1e-200)), low)
    return CubicSpline(np.arange(STEPS + 1), 0.5 * (np.log(df) - log)).c
