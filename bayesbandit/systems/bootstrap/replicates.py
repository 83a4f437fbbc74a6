"""Penalised regressions of resampled rows: the penalty by cross-validation, then each replicate.

A replicate weighs each row by how often it was drawn, times its own weight; rows are never copied,
so that none is in two folds.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bayesbandit.systems.bootstrap import kernels as lasso

Array = np.ndarray
Penalty = Literal["lasso", "ridge"]

TOLERANCE = 1e-7  # of the subgradient, in standard deviations of the rewards
REACH, SHORT = 1e-3, 1e-2  # the smallest λ of a path, relative to that at which the LASSO is 0
ROUNDING = float(np.finfo(np.float64).eps)
DISTINCT = 1.0 - np.exp(-1.0)  # the share of rows that a replicate draws


@dataclass(frozen=True)
class Rows:
    """Features Z (n, p) in their standard deviations, rewards r (n,) in theirs, weights (n,).

    shift, width (p,): how features were scaled; level, unit: rewards.
    """

    Z: Array
    r: Array
    weight: Array
    shift: Array
    width: Array
    level: float
    unit: float

    def declared(self, theta: Array) -> Array:
        """Coefficients (…, p + 1) of features and rewards as they came, the constant last, from
        those of standardised ones, with the constant last."""
        slope = self.unit * theta[..., :-1] / self.width
        constant = self.level + self.unit * theta[..., -1] - slope @ self.shift
        return np.concatenate([slope, constant[..., None]], axis=-1)


def standardised(z: Array, reward: Array, weight: Array) -> Rows:
    """Rows by weighted means and standard deviations; what is constant is divided by 1."""
    shift, level = np.average(z, axis=0, weights=weight), float(np.average(reward, weights=weight))
    width = np.sqrt(np.average((z - shift) ** 2, axis=0, weights=weight))
    unit = float(np.sqrt(np.average((reward - level) ** 2, weights=weight)))
    width = np.where(width <= 1e-12 * (1.0 + np.abs(shift)), 1.0, width)
    unit = 1.0 if unit <= 1e-12 * (1.0 + abs(level)) else unit
    return Rows((z - shift) / width, (reward - level) / unit, weight, shift, width, level, unit)


def penalties(q: Array, n: int, count: int, penalty: Penalty) -> Array:
    """λ's (L,) for n rows, largest first: from where the LASSO is 0 down to a thousandth, on a
    logarithmic scale, or as in glmnet to a hundredth, where replicates have fewer rows than
    columns; of ridge, from a thousand times as much."""
    largest = max(float(np.abs(q).max(initial=0.0)), 1e-8)
    begin = largest / REACH if penalty == "ridge" else largest
    return np.geomspace(begin, largest * (REACH if DISTINCT * n >= q.size else SHORT), count)


def moments(rows: Rows, v: Array) -> tuple[Array, Array, Array]:
    """G (m, p, p), q (m, p) and means (m, p + 1) under weights v (m, n)."""
    m, p = len(v), rows.Z.shape[1]
    G, q = np.empty((m, p, p)), np.empty((m, p))
    centre = lasso.moments(np.ascontiguousarray(rows.Z), rows.r, np.ascontiguousarray(v), G, q)
    return G, q, centre


def along(G: Array, q: Array, lams: Array, penalty: Penalty, start: Array | None = None) -> Array:
    """Solutions (m, L, p) of problems G (m, p, p), q (m, p) along penalties (L,), largest first.
    start (m, p): where to begin."""
    m, p = q.shape
    if penalty == "ridge" and len(lams) == 1:
        with suppress(np.linalg.LinAlgError):  # λ is below the rounding of G
            return np.linalg.solve(G + lams * np.eye(p), q[..., None])[..., 0][:, None]
    if penalty == "ridge":
        values, vectors = np.linalg.eigh(G)
        turned = np.einsum("mij,mi->mj", vectors, q)
        least = ROUNDING * p * values[:, -1:]  # of an eigenvalue that is told from 0
        values, turned = (
            np.where(values > least, values, 0.0),
            np.where(values > least, turned, 0.0),
        )
        shrunk = turned[:, None] / (values[:, None] + lams[:, None])
        return np.einsum("mij,mlj->mli", vectors, shrunk)
    out = np.zeros((m, len(lams), p))
    if start is not None:
        out[:, 0] = start
    lasso.paths(G, q, lams, TOLERANCE, out)
    return out


def chosen(rows: Rows, lams: Array, folds: int, penalty: Penalty) -> float:
    """The λ of the least squared error over folds, to which rows go in turn."""
    n = len(rows.r)
    fold = np.arange(n) % folds
    v = np.where(fold == np.arange(folds)[:, None], 0.0, rows.weight)
    G, q, centre = moments(rows, v)
    theta = along(G, q, lams, penalty)
    error = np.zeros(len(lams))
    for f in range(folds):
        own = fold == f
        Z, r = rows.Z[own] - centre[f, :-1], rows.r[own] - centre[f, -1]
        error += rows.weight[own] @ (r[:, None] - Z @ theta[f].T) ** 2
    return float(lams[int(np.argmin(error))])


def constants(theta: Array, centre: Array) -> Array:
    """Coefficients (m, p + 1) with the constants that go with weighted means (m, p + 1)."""
    last = centre[:, -1] - (centre[:, :-1] * theta).sum(axis=1)
    return np.column_stack([theta, last])
