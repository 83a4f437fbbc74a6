"""Thompson sampling among many arms that share coefficients: mean rewards x'θ of features x.

A decision takes one of its draws of θ and the arm whose row has the largest x'θ. The arm's
probability is the share of all draws under which it is best. Arms are compared in the order of an
upper bound of their scores, in float32, until no further arm can win; what is left undecided by
rounding is compared as a choice compares it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from bayesbandit.kernels.prob_best import points, rows
from bayesbandit.kernels.prob_best.joint import put_noise

if TYPE_CHECKING:
    from bayesbandit.predictions import JointRows

Array = np.ndarray
MIN_ARMS_TO_BOUND = 3000  # fewer arms are compared all at once (`predictions.Comparison`)
FIRST_BLOCK, LARGEST_BLOCK = 64, 1024  # arms that are compared at a time
FLOAT32_ERROR = 1e-7  # of a product, as a share of its factors' lengths, for each dimension
FLOAT32_RANGE = 1e-15, 1e15  # lengths whose products and squares float32 holds
FLOAT64_RANGE = 1e-140, 1e140


class RowComparison:
    """Thompson sampling from `JointRows`: probabilities of the chosen arms alone, or of all.

    arms (A,): the numbers of those that may be chosen. alpha, floor, seeds: as in `Comparison`.
    """

    def __init__(self, joint: JointRows, arms: Array, alpha: Array, floor: Array) -> None:
        n = len(joint.x)
        self.joint = joint
        self.arms = arms
        self.seeds = np.zeros(n)
        self.alpha = np.broadcast_to(alpha, n) * 1.0
        self.floor = np.broadcast_to(floor, n) * 1.0
        P = len(joint.axes)
        self.points = points.cells(P + 1), points.normals(), points.log_width(joint.df)

    def choose(self, rows_: Array, done: int, D: int, K: int, arms: Array, stream: Array) -> int:
        """Choose one of the arms in each row (n, width) from `done` on: see `Comparison.choose`."""
        joint = self.joint
        return int(
            rows.choose_by_rows(
                rows_, done, D, K, arms, joint.x, joint.slopes, joint.axes, self.seeds,
                *self.points, self.alpha, self.floor, stream, joint.x, *joint.taken_in,
            )
        )  # fmt: skip

    def propensities(self, chosen: Array) -> Array:
        """Return the probabilities (n,) of the arms of these numbers (n,), one in each context."""
        return self._raised(np.array([self._wins(i, k) for i, k in enumerate(chosen.tolist())]))

    def probabilities(self) -> Array:
        """Return the probabilities of the arms (n, A)."""
        wins = np.zeros((len(self.seeds), len(self.arms)))
        for i in range(len(wins)):
            draws = Thetas(self, i)
            _, near = draws.rivals()
            found = np.empty(len(near))
            rows.put_shares(self.joint.x[i], self.arms[near], draws.theta, found)
            wins[i, near] = found
        return self._raised(wins.T).T

    def _raised(self, wins: Array) -> Array:
        """Return probabilities, from numbers of draws (…, n) under which arms are best."""
        share = np.minimum(wins / points.POINTS, 1.0)
        return self.floor + (1.0 - len(self.arms) * self.floor) * share

    def _wins(self, i: int, k: int) -> float:
        """Return the number of draws under which arm k is best."""
        x = self.joint.x[i]
        draws = Thetas(self, i)
        own = np.empty(len(draws.theta))
        rows.put_scores(draws.theta, np.arange(len(own)), x[k], own)
        left, near = draws.rivals(own)
        rivals = np.union1d(self.arms[near], k)
        return float(rows.share_of(x, rivals, draws.theta[left], own[left]))


class Thetas:
    """All draws θ (S, d) of a decision, and the arms (A,) in the order of what they may reach."""

    def __init__(self, comparison: RowComparison, i: int) -> None:
        joint, arms = comparison.joint, comparison.arms
        P, D = joint.axes.shape
        noise = np.empty((P + 1, points.POINTS))
        spread = np.empty(points.POINTS)
        put_noise(comparison.seeds[i], *comparison.points, comparison.alpha[i], spread, noise)
        self.theta = np.empty((points.POINTS, D))
        rows.put_thetas(noise, spread, joint.slopes, joint.axes, self.theta)
        self.x = joint.x[i]
        self.arms = arms
        level, length = (values[i, arms] for values in joint.taken_in)
        size2 = np.einsum("sd,sd->s", self.theta, self.theta)
        sizes = np.array([np.sqrt(size2.max()), length.max()])
        self.slack = 2.0 * FLOAT32_ERROR * (10 + D) * sizes.prod()
        self.kind = np.float32 if _within(sizes, FLOAT32_RANGE) else np.float64
        if _within(sizes, FLOAT64_RANGE):
            self.bound = self._bounds(level, length, joint.slopes)
        else:  # products overflow or vanish: every arm is compared exactly
            self.slack = np.inf
            self.bound = np.full(len(arms), np.inf)
        self.order = np.argsort(-self.bound)

    def _bounds(self, level: Array, length: Array, location: Array) -> Array:
        """Return the largest score that each arm (A,) may have under any draw.

        x'θ ≤ (x'u)(u'θ) + |x − u u'x| |θ − u u'θ| for the unit vector u along the mean of θ.
        level, length (A,): x'location and |x|.
        """
        unit = np.abs(location).max() or 1.0  # the squares of tiny numbers are 0
        unit *= np.linalg.norm(location / unit) or 1.0
        part = level / unit
        rest = np.sqrt(np.maximum(length**2 - part**2, 0.0))
        along = self.theta @ (location / unit)
        across2 = np.einsum("sd,sd->s", self.theta, self.theta) - along**2
        across = np.sqrt(np.maximum(across2, 0.0).max())
        return np.maximum(part * along.min(), part * along.max()) + rest * across

    def _blocks(self) -> Iterator[Array]:
        """Yield the places of arms, in the order of their bounds."""
        start, size = 0, FIRST_BLOCK
        while start < len(self.order):
            yield self.order[start : start + size]
            start += size
            size = min(2 * size, LARGEST_BLOCK)

    def _scores(self, draws: Array, block: Array) -> Array:
        """Return scores (draws, arms), to rounding."""
        x = self.x[self.arms[block]].astype(self.kind)
        return np.asarray(draws @ x.T)

    def rivals(self, own: Array | None = None) -> tuple[Array, Array]:
        """Return the draws that are left, and the places of arms among which the best ones are.

        own (S,): scores of one arm. Only draws are left under which no arm surely exceeds it, and
        arms that may exceed or equal it under some of them. Without it, all draws are left, and the
        places of all arms that are best under some draw, and of arms near them.
        """
        draws = self.theta.astype(self.kind)
        best = np.full(len(draws), -np.inf) if own is None else own
        left = np.arange(len(draws))
        near = [np.zeros(0, np.int64)]
        for block in self._blocks():
            if not left.size or self.bound[block[0]] < best[left].min() - self.slack:
                break
            scores = self._scores(draws[left], block)
            if own is None:
                best = np.maximum(best, scores.max(axis=1))
            else:
                kept = scores.max(axis=1) <= own[left] + self.slack
                left = left[kept]
                scores = scores[kept]
            near.append(block[(scores >= (best[left] - self.slack)[:, None]).any(axis=0)])
        return left, np.sort(np.concatenate(near))


def _within(sizes: Array, limits: tuple[float, float]) -> bool:
    return bool((sizes > limits[0]).all() and (sizes < limits[1]).all())
