"""Penalised regressions on resampled rows: choose λ by cross-validation, then fit each replicate.

A replicate weights each row by the number of times it was drawn, times the row's weight. Rows are
never copied, so no row is in two folds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from bayesbandit.checks import FLOAT_EPSILON, Array
from bayesbandit.systems.bootstrap import kernels as lasso

Penalty = Literal["lasso", "ridge"]

SUBGRADIENT_TOLERANCE = 1e-7  # of the subgradient, in standard deviations of the rewards
# the smallest λ of a path, as a share of the λ that sets every θ to 0
PATH_END = 1e-3
SHORT_PATH_END = 1e-2
DISTINCT_ROW_SHARE = 1.0 - np.exp(-1.0)  # the expected share of distinct rows in a replicate


@dataclass(frozen=True)
class Scaled:
    """Standardised features and, last, rewards: columns (n, p + 1), with weights (n,).

    shift, width (p + 1,): their means and standard deviations.
    """

    columns: Array
    weight: Array
    shift: Array
    width: Array

    def declared(self, theta: Array, centre: Array) -> Array:
        """Return coefficients (m, p + 1) on the original scale, the constant last.

        theta (m, p): standardised ones. centre (m, p + 1): the means about which they were fitted.
        """
        slope = self.width[-1] * theta / self.width[:-1]
        constant = centre[:, -1] - (centre[:, :-1] * theta).sum(axis=1)
        level = self.shift[-1] - slope @ self.shift[:-1]
        return np.column_stack([slope, level + self.width[-1] * constant])


def standardised(z: Array, reward: Array, weight: Array) -> Scaled:
    """Return rows standardised by weighted means and standard deviations.

    A constant column is divided by 1.
    """
    columns = np.column_stack([z, reward])
    shift = np.average(columns, axis=0, weights=weight)
    width = np.sqrt(np.average((columns - shift) ** 2, axis=0, weights=weight))
    width = np.where(width <= 1e-12 * (1.0 + np.abs(shift)), 1.0, width)
    return Scaled((columns - shift) / width, weight, shift, width)


def penalties(q: Array, n: int, count: int, penalty: Penalty) -> Array:
    """Return candidates for λ (L,) for n rows, largest first, on a logarithmic scale.

    The LASSO's begin at the λ that sets every coefficient to 0, ridge's at a thousand times that.
    Both end at a thousandth of that λ. Where replicates have fewer rows than columns, they end at
    a hundredth, as in glmnet.
    """
    largest = max(float(np.abs(q).max(initial=0.0)), 1e-8)
    begin = largest / PATH_END if penalty == "ridge" else largest
    return np.geomspace(
        begin, largest * (PATH_END if DISTINCT_ROW_SHARE * n >= q.size else SHORT_PATH_END), count
    )


def moments(rows: Scaled, v: Array) -> tuple[Array, Array, Array]:
    """Return G (m, p, p), q (m, p) and means (m, p + 1) under weights v (m, n)."""
    m = rows.columns.shape[1]
    second = np.empty((len(v), m, m))
    centre = lasso.moments(rows.columns, np.ascontiguousarray(v), second)
    return np.ascontiguousarray(second[:, :-1, :-1]), second[:, :-1, -1].copy(), centre


def along(G: Array, q: Array, lams: Array, penalty: Penalty) -> Array:
    """Return solutions (m, L, p) of problems G (m, p, p), q (m, p) along penalties lams (L,).

    The largest penalty comes first.
    """
    m, p = q.shape
    if penalty == "ridge":
        # the features have variance 1: what is added to λ is a rounding error of G
        lams = lams + FLOAT_EPSILON * p
        if len(lams) == 1:
            return np.linalg.solve(G + lams * np.eye(p), q[..., None])[..., 0][:, None]
        # of a path: G = VSV' is factored once, and (G + λI)⁻¹q = V(S + λI)⁻¹V'q
        values, vectors = np.linalg.eigh(G)
        rotated = np.einsum("mij,mi->mj", vectors, q)
        shrunk = rotated[:, None] / (np.maximum(values, 0.0)[:, None] + lams[:, None])
        return np.einsum("mij,mlj->mli", vectors, shrunk)
    out = np.zeros((m, len(lams), p))
    lasso.paths(G, q, lams, SUBGRADIENT_TOLERANCE, out)
    return out


def chosen(rows: Scaled, lams: Array, folds: int, penalty: Penalty) -> float:
    """Return the λ with the smallest squared error over folds. Row i is in fold i mod `folds`."""
    n = len(rows.weight)
    fold = np.arange(n) % folds
    v = np.where(fold == np.arange(folds)[:, None], 0.0, rows.weight)
    G, q, centre = moments(rows, v)
    theta = along(G, q, lams, penalty)
    error = np.zeros(len(lams))
    for f in range(folds):
        held_out = fold == f
        off = rows.columns[held_out] - centre[f]
        error += rows.weight[held_out] @ (off[:, -1:] - off[:, :-1] @ theta[f].T) ** 2
    return float(lams[int(np.argmin(error))])
