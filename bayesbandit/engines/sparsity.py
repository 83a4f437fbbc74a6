"""A prior's natural parameters, read off at as few points as the zeros of its precision allow.

Columns of Λ that share no row are read in one: the gradient along the sum of their coordinates has
each one's elements in rows of its own. A diagonal prior takes one direction, a random walk three,
coefficients of K arms about a common mean K + 1: Curtis, Powell and Reid (1974), On the estimation
of sparse Jacobian matrices.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayesbandit.engines.quadratic import Given, Quadratic, affine, along


class SparsePrior:
    """Λ (D, D) and η (D,) of a prior as functions of what it is given.

    An element counts as zero if it is at all of some random values of the given variables: it is an
    analytic function of them.
    """

    def __init__(self, quadratic: Quadratic, points: Sequence[Given]) -> None:
        self.quadratic, D = quadratic, quadratic.dim
        present = np.eye(D, dtype=bool)
        for given in points:
            H = affine(lambda Z: quadratic.prior_slopes(Z, given), D)[0]  # noqa: B023
            present |= (H != 0.0) | (H.T != 0.0)
        color = coloring(present)
        self.directions = np.eye(int(color.max()) + 1)[:, color]  # (m, D)
        i, j = self._where = np.nonzero(present)
        self._read, self._mirrored = (color[j], i), (color[i], j)

    def __call__(self, given: Given) -> tuple[np.ndarray, np.ndarray]:
        """The natural parameters."""
        slopes, shift = along(lambda Z: self.quadratic.prior_slopes(Z, given), self.directions)
        precision = np.zeros((self.quadratic.dim,) * 2)
        precision[self._where] = -0.5 * (slopes[self._read] + slopes[self._mirrored])
        return precision, shift


def coloring(present: np.ndarray) -> np.ndarray:
    """A colour (D,) for each column of a pattern (D, D), so that those of one share no row."""
    apart = (present.T.astype(np.float64) @ present) > 0.0
    color = np.full(len(present), -1)
    for j, others in enumerate(apart):
        taken = np.unique(color[others])
        free = np.setdiff1d(np.arange(len(taken) + 1), taken)
        color[j] = free[0]
    return color
