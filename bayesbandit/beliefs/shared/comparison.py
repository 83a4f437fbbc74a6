"""Arms whose mean rewards are linear in the same normals or Student-t, compared by joint draws."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from scipy.stats import chi2, norm, qmc

from bayesbandit.history import Layout
from bayesbandit.kernels.draws import jointly

JOINT = 4096  # quasi-random joint draws, by which dependent arms are compared


class Comparison:
    """Mean rewards m + F'ε of the arms that may be chosen, in n contexts.

    arms: their numbers (A,). mean (n, A), factor (n, P, A). df: degrees of freedom of ε. params:
    α and least probability of a round, (n, 2) or (1, 2).
    """

    def __init__(
        self, arms: np.ndarray, mean: np.ndarray, factor: np.ndarray, df: float, params: np.ndarray
    ) -> None:
        self.arms, self.mean, self.df = arms, np.ascontiguousarray(mean), df
        self.factor = _principal(factor)
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


def _principal(factor: np.ndarray) -> np.ndarray:
    """Factors (n, D, A), D < A, that tell A arms apart as those (n, P, A) do: differences of arms
    along their principal axes, the widest first, as the first coordinates of a Sobol sequence are
    its best."""
    apart = factor - factor.mean(axis=2, keepdims=True)
    _, axes = np.linalg.eigh(apart @ apart.transpose(0, 2, 1))
    widest = axes[:, :, ::-1][:, :, : max(1, factor.shape[2] - 1)]
    return np.ascontiguousarray(widest.transpose(0, 2, 1) @ apart)


def quasi_random(D: int, df: float) -> tuple[np.ndarray, np.ndarray]:
    """Joint draws: standard normals (JOINT, D) and widths (JOINT,) that make them Student-t where
    df is finite; the same every time."""
    normal, uniform = _sobol(D)
    return normal, np.ones(JOINT) if np.isinf(df) else np.sqrt(df / chi2.ppf(uniform, df))


@cache
def _sobol(D: int) -> tuple[np.ndarray, np.ndarray]:
    """Standard normals (JOINT, D) and uniforms (JOINT,) from one scrambled Sobol sequence."""
    u = np.clip(qmc.Sobol(D + 1, seed=0).random(JOINT), 1e-12, 1.0 - 1e-12)
    return norm.ppf(u[:, :D]), u[:, D]
