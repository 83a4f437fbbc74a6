"""Arms whose mean rewards are linear in the same normals or Student-t, compared by joint draws."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from bayesbandit.history import Layout
from bayesbandit.kernels.draws import jointly

JOINT = 4096  # quasi-random joint draws, by which dependent arms are compared


class Comparison:
    """Mean rewards m + F'ε of the arms that may be chosen, in n contexts.

    arms: their numbers (A,). mean (n, A), factor (n, P, A). df: degrees of freedom of ε. params:
    α and least probability of a round, (n, 2) or (1, 2).
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

    def choose(self, rows: np.ndarray, done: int, layout: Layout, stream: np.ndarray) -> int:
        """Decide for rows (n, width) from `done` on, until the stream runs short; the next row."""
        decide: Any = jointly.choose_jointly
        where = layout.n_columns, len(layout.arms), self.arms
        return int(decide(rows, done, *where, *self._drawn(), stream))

    def probabilities(self) -> np.ndarray:
        """Of each arm (n, A)."""
        shares: Any = jointly.shares_of
        shares(*self._drawn(), out := np.empty(self.mean.shape))
        return out

    def fill(self, rows: np.ndarray, layout: Layout) -> None:
        """The probabilities into rows (n, width)."""
        layout.moment(rows, 2)[:, self.arms] = self.probabilities()

    def _drawn(self) -> tuple[np.ndarray, ...]:
        """What the kernels take."""
        noise, width = quasi_random(self.factor.shape[1], self.df)
        return self.mean, self.factor, noise, width, self.alpha, self.floor


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
    product: Any = jointly.product
    product(np.ascontiguousarray(a), np.ascontiguousarray(b), out := np.empty((len(a), b.shape[1])))
    return out


def _root(spread: np.ndarray) -> np.ndarray:
    """R with RR' = spread (P, P), which may be singular."""
    try:
        return np.linalg.cholesky(spread)
    except np.linalg.LinAlgError:
        variance, axes = np.linalg.eigh(spread)
        return axes * np.sqrt(np.maximum(variance, 0.0))


def quasi_random(D: int, df: float) -> tuple[np.ndarray, np.ndarray]:
    """Joint draws: standard normals (JOINT, D) and widths (JOINT,) that make them Student-t where
    df is finite; the same every time."""
    from scipy.stats import chi2  # what few bandits need, and takes long to load

    normal, uniform = _sobol(D)
    return normal, np.ones(JOINT) if np.isinf(df) else np.sqrt(df / chi2.ppf(uniform, df))


@lru_cache(maxsize=32)  # offers may come in any number
def _sobol(D: int) -> tuple[np.ndarray, np.ndarray]:
    """Standard normals (JOINT, D) and uniforms (JOINT,) from one scrambled Sobol sequence."""
    from scipy.stats import norm, qmc

    u = np.clip(qmc.Sobol(D + 1, seed=0).random(JOINT), 1e-12, 1.0 - 1e-12)
    return norm.ppf(u[:, :D]), u[:, D]
