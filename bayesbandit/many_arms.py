"""Thompson sampling among many arms that share coefficients: mean rewards x'θ of features x.

A decision takes one of its draws of θ and the arm whose row has the largest x'θ. The arm's
probability is the share of all draws under which it is best. Arms are compared in the order of an
upper bound of their scores, in float32, until no further arm can win; what is left undecided by
rounding is compared as a choice compares it.
"""

from __future__ import annotations

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


class RowComparison:
    """Thompson sampling from `JointRows`: probabilities of the chosen arms alone, or of all.

    arms (A,): the numbers of those that may be chosen, in order. alpha, floor, seeds: as in
    `Comparison`.
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
                *self.points, self.alpha, self.floor, stream,
            )
        )  # fmt: skip

    def propensities(self, chosen: Array) -> Array:
        """Return the probabilities (n,) of the arms of these numbers (n,), one in each context."""
        places = np.searchsorted(self.arms, chosen).tolist()
        return self._raised(np.array([self._wins(i, a)[a] for i, a in enumerate(places)]))

    def probabilities(self) -> Array:
        """Return the probabilities of the arms (n, A)."""
        wins = [self._wins(i) for i in range(len(self.seeds))]
        return self._raised(np.reshape(wins, (-1, len(self.arms))).T).T

    def _raised(self, wins: Array) -> Array:
        """Return probabilities, from numbers of draws (…, n) under which arms are best."""
        share = np.minimum(wins / points.JOINT_DRAWS, 1.0)
        return self.floor + (1.0 - len(self.arms) * self.floor) * share

    def _wins(self, i: int, own: int | None = None) -> Array:
        """Return the number of draws under which each arm (A,) is best in context i.

        own: the place of an arm, whose number alone is right then.
        """
        joint = self.joint
        P, d = joint.axes.shape
        noise = np.empty((P + 1, points.JOINT_DRAWS))
        spread = np.empty(points.JOINT_DRAWS)
        put_noise(self.seeds[i], *self.points, self.alpha[i], spread, noise)
        theta = np.empty((points.JOINT_DRAWS, d))
        rows.put_thetas(noise, spread, joint.slopes, joint.axes, theta)
        x = joint.x[i] if len(self.arms) == joint.x.shape[1] else joint.x[i, self.arms]
        draws, near = rivals(x, theta, joint.slopes, own)
        found = np.empty(len(near))
        rows.put_wins(x[near], theta[draws], found)
        wins = np.zeros(len(x))
        wins[near] = found
        return wins


def rivals(x: Array, theta: Array, location: Array, own: int | None = None) -> tuple[Array, Array]:
    """Return places of draws theta (S, d), and those of rows x (A, d) that may be best under one.

    They are all draws; with the place of an arm, draws under which no other surely exceeds it. Rows
    come in the order of an upper bound of their scores: for the unit vector u along the location of
    θ, x'θ ≤ (x'u)(u'θ) + |x − u u'x| |θ − u u'θ|. All is in units in which the largest number is 1.
    """
    unit = max(x.max(), -x.min()) or 1.0
    theta = theta / (np.abs(theta).max() or 1.0)
    u = location / (np.abs(location).max() or 1.0)
    u /= np.linalg.norm(u) or 1.0
    part, length = np.empty((2, len(x)))
    rows.put_lengths(x, unit, u, part, length)
    along = theta @ u
    square = np.einsum("sd,sd->s", theta, theta)
    across = np.sqrt(np.maximum(square - along**2, 0.0).max())
    bound = np.maximum(part * along.min(), part * along.max())
    bound += np.sqrt(np.maximum(length**2 - part**2, 0.0)) * across
    slack = 2.0 * FLOAT32_ERROR * (10 + len(u)) * length.max() * np.sqrt(square.max())
    best = np.full(len(theta), -np.inf) if own is None else theta @ (x[own] / unit)
    theta = theta.astype(np.float32)
    order = np.argsort(-bound)
    draws = np.arange(len(theta))
    near = [np.zeros(0, np.int64)]
    start = 0
    size = FIRST_BLOCK
    while start < len(x) and draws.size and bound[order[start]] >= best[draws].min() - slack:
        block = order[start : start + size]
        scores = theta[draws] @ (x[block] / unit).astype(np.float32).T
        top = scores.max(axis=1)
        if own is None:
            best = np.maximum(best, top)
        else:
            kept = top <= best[draws] + slack
            draws, scores = draws[kept], scores[kept]
        near.append(block[(scores >= (best[draws] - slack)[:, None]).any(axis=0)])
        start += size
        size = min(2 * size, LARGEST_BLOCK)
    return draws, np.sort(np.concatenate(near))
