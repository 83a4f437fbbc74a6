"""Penalised regressions on resampled rows: choose λ by cross-validation, then fit each replicate.

A replicate weights each row by the number of times it was drawn, times the row's weight. Rows are
never copied, so no row is in two folds.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bayesbandit.systems.bootstrap import kernels as lasso

Array = np.ndarray
Penalty = Literal["lasso", "ridge"]

SUBGRADIENT_TOLERANCE = 1e-7  # of the subgradient, in standard deviations of the rewards
# the smallest λ of a path, as a share of the λ that sets every θ to 0
PATH_END = 1e-3
SHORT_PATH_END = 1e-2
FLOAT_EPSILON = float(np.finfo(np.float64).eps)
DISTINCT_ROW_SHARE = 1.0 - np.exp(-1.0)  # the expected share of distinct rows in a replicate


@dataclass(frozen=True)
class Scaled:
    """Standardised features Z (n, p) and rewards r (n,), with weights (n,).

    shift, width (p,): the features' means and standard deviations. level, unit: the rewards'.
    """

    Z: Array
    r: Array
    weight: Array
    shift: Array
    width: Array
    level: float
    unit: float

    def declared(self, theta: Array) -> Array:
        """Return coefficients (…, p + 1) on the original scale, given standardised ones.

        The constant is last in both.
        """
        slope = self.unit * theta[..., :-1] / self.width
        constant = self.level + self.unit * theta[..., -1] - slope @ self.shift
        return np.concatenate([slope, constant[..., None]], axis=-1)


def standardised(z: Array, reward: Array, weight: Array) -> Scaled:
    """Return rows standardised by weighted means and standard deviations.

    A constant column is divided by 1.
    """
    shift = np.average(z, axis=0, weights=weight)
    level = float(np.average(reward, weights=weight))
    width = np.sqrt(np.average((z - shift) ** 2, axis=0, weights=weight))
    unit = float(np.sqrt(np.average((reward - level) ** 2, weights=weight)))
    width = np.where(width <= 1e-12 * (1.0 + np.abs(shift)), 1.0, width)
    unit = 1.0 if unit <= 1e-12 * (1.0 + abs(level)) else unit
    return Scaled((z - shift) / width, (reward - level) / unit, weight, shift, width, level, unit)


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
    columns = np.column_stack([rows.Z, rows.r])
    second = np.empty((len(v), columns.shape[1], columns.shape[1]))
    centre = lasso.moments(columns, np.ascontiguousarray(v), second)
    return np.ascontiguousarray(second[:, :-1, :-1]), second[:, :-1, -1].copy(), centre


def along(G: Array, q: Array, lams: Array, penalty: Penalty) -> Array:
    """Return solutions (m, L, p) of problems G (m, p, p), q (m, p) along penalties lams (L,).

    The largest penalty comes first.
    """
    m, p = q.shape
    if penalty == "ridge" and len(lams) == 1:
        with suppress(np.linalg.LinAlgError):  # λ is smaller than the rounding errors of G
            return np.linalg.solve(G + lams * np.eye(p), q[..., None])[..., 0][:, None]
    if penalty == "ridge":
        values, vectors = np.linalg.eigh(G)
        rotated = np.einsum("mij,mi->mj", vectors, q)
        tolerance = FLOAT_EPSILON * p * values[:, -1:]  # a smaller eigenvalue counts as 0
        values, rotated = (
            np.where(values > tolerance, values, 0.0),
            np.where(values > tolerance, rotated, 0.0),
        )
        shrunk = rotated[:, None] / (values[:, None] + lams[:, None])
        return np.einsum("mij,mlj->mli", vectors, shrunk)
    out = np.zeros((m, len(lams), p))
    lasso.paths(G, q, lams, SUBGRADIENT_TOLERANCE, out)
    return out


def chosen(rows: Scaled, lams: Array, folds: int, penalty: Penalty) -> float:
    """Return the λ with the smallest squared error over folds. Row i is in fold i mod `folds`."""
    n = len(rows.r)
    fold = np.arange(n) % folds
    v = np.where(fold == np.arange(folds)[:, None], 0.0, rows.weight)
    G, q, centre = moments(rows, v)
    theta = along(G, q, lams, penalty)
    error = np.zeros(len(lams))
    for f in range(folds):
        held_out = fold == f
        Z = rows.Z[held_out] - centre[f, :-1]
        r = rows.r[held_out] - centre[f, -1]
        error += rows.weight[held_out] @ (r[:, None] - Z @ theta[f].T) ** 2
    return float(lams[int(np.argmin(error))])


def constants(theta: Array, centre: Array) -> Array:
    """Return coefficients (m, p + 1): θ (m, p) and the constants implied by means (m, p + 1)."""
    last = centre[:, -1] - (centre[:, :-1] * theta).sum(axis=1)
    return np.column_stack([theta, last])
