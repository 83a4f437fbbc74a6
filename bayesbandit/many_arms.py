"""Thompson sampling among arms that share coefficients: mean rewards x'θ of rows x.

A decision takes one of its draws of θ and the arm whose row has the largest x'θ. The arm's
probability is the share of all draws under which it is best. Many arms are compared in the order of
an upper bound of their scores, in float32, until no further arm can win; what is left undecided by
rounding is compared as a choice compares it.
"""

from __future__ import annotations

import numpy as np

from bayesbandit.checks import Array
from bayesbandit.kernels.prob_best import joint, points

MIN_ARMS_TO_BOUND = 3000  # fewer arms are compared all at once
FIRST_BLOCK, LARGEST_BLOCK = 64, 1024  # arms that are compared at a time
FLOAT32_ERROR = 1e-7  # of a product, as a share of its factors' lengths, for each dimension


class Comparison:
    """Thompson sampling by joint draws; probabilities are computed when they are first needed.

    x (n, A, d): the arms' rows. location (d,), axes (P, d), df: θ is location + α width · axes'ε,
    of standard normal ε and the width of a Student-t. The widest axis comes first.
    alpha, floor: the factor of the sds and the minimum probability, (n,) or (1,) each.
    bounded: whether arms are compared in the order of a bound, and one without the others.
    seeds (n,): each context's random shift of the quasi-random points. It is 0 until `choose` draws
    it.
    """

    def __init__(
        self, x: Array, location: Array, axes: Array, df: float, alpha: Array, floor: Array,
        bounded: bool = False,
    ) -> None:  # fmt: skip
        n = len(x)
        self.x = x
        self.location = location
        self.axes = axes
        self.df = df
        self.alpha = np.zeros(n) + alpha
        self.floor = np.zeros(n) + floor
        self.bounded = bounded
        self.seeds = np.zeros(n)

    @property
    def _points(self) -> tuple[Array, Array, Array]:
        return points.cells(len(self.axes) + 1), points.normals(), points.log_width(self.df)

    def choose(self, rows: Array, done: int, D: int, K: int, arms: Array, stream: Array) -> int:
        """Choose an arm in each row of a batch from number `done` on, and write it into the row.

        rows: (n, width), for D columns of contexts and K arms: see kernels/row_layout.py. arms: the
        numbers (A,) of those that may be chosen. stream: normal random numbers, which are used up.
        Return the number of the first row that the stream did not reach; n if it reached all.
        """
        needed = 1 if self.bounded else K
        return int(
            joint.choose_jointly(
                rows, done, D, K, needed, arms, self.x, self.location, self.axes, self.seeds,
                *self._points, self.alpha, self.floor, stream,
            )
        )  # fmt: skip

    def propensities(self, places: Array) -> Array:
        """Return the probabilities (n,) of the arms in these places (n,), one in each context."""
        return self._raised(np.array([self._wins(i, a)[a] for i, a in enumerate(places.tolist())]))

    def probabilities(self) -> Array:
        """Return the probabilities of the arms (n, A)."""
        wins = [self._wins(i) for i in range(len(self.seeds))]
        return self._raised(np.reshape(wins, (-1, self.x.shape[1])).T).T

    def _raised(self, wins: Array) -> Array:
        """Return probabilities, from numbers of draws (…, n) under which arms are best."""
        share = np.minimum(wins / points.JOINT_DRAWS, 1.0)
        return self.floor + (1.0 - self.x.shape[1] * self.floor) * share

    def _wins(self, i: int, own: int | None = None) -> Array:
        """Return the number of draws under which each arm (A,) is best in context i.

        own: the place of an arm, whose number alone is right then.
        """
        x = self.x[i]
        cells, normals, log_width = self._points
        noise = np.empty(cells.shape)
        spread = np.empty(points.JOINT_DRAWS)
        theta = np.empty((len(self.location), points.JOINT_DRAWS))
        joint.put_noise(self.seeds[i], cells, 0, normals, log_width, self.alpha[i], spread, noise)
        joint.put_theta(self.location, self.axes, noise, spread, theta)
        if not self.bounded:
            return joint.wins(x, theta)
        draws, near = rivals(x, theta, self.location, own)
        wins = np.zeros(len(x))
        wins[near] = joint.wins(x[near], np.ascontiguousarray(theta[:, draws]))
        return wins


def rivals(x: Array, theta: Array, location: Array, own: int | None = None) -> tuple[Array, Array]:
    """Return places of draws theta (d, S), and those of rows x (A, d) that may be best under one.

    They are all draws; with the place of an arm, draws under which no other surely exceeds it. Rows
    come in the order of an upper bound of their scores: for the unit vector u along the location of
    θ, x'θ ≤ (x'u)(u'θ) + |x − u u'x| |θ − u u'θ|. All is in units in which the largest number is 1.
    """
    x = x / (np.abs(x).max() or 1.0)
    theta = theta / (np.abs(theta).max() or 1.0)
    u = location / (np.abs(location).max() or 1.0)
    u /= np.linalg.norm(u) or 1.0
    part = x @ u
    x_square = np.einsum("ad,ad->a", x, x)
    along = u @ theta
    square = np.einsum("ds,ds->s", theta, theta)
    across = np.sqrt(np.maximum(square - along**2, 0.0).max())
    bound = np.maximum(part * along.min(), part * along.max())
    bound += np.sqrt(np.maximum(x_square - part**2, 0.0)) * across
    slack = 2.0 * FLOAT32_ERROR * (10 + len(u)) * np.sqrt(x_square.max() * square.max())
    best = np.full(theta.shape[1], -np.inf) if own is None else x[own] @ theta
    theta = theta.astype(np.float32)
    order = np.argsort(-bound)
    draws = np.arange(theta.shape[1])
    near = [np.zeros(0, np.int64)]
    start = 0
    size = FIRST_BLOCK
    while start < len(x) and draws.size and bound[order[start]] >= best[draws].min() - slack:
        block = order[start : start + size]
        scores = x[block].astype(np.float32) @ theta
        top = scores.max(axis=0)
        if own is None:
            best = np.maximum(best, top)
            is_kept = np.ones(len(draws), np.bool_)
        else:
            is_kept = top <= best[draws] + slack
        least = np.where(is_kept, best[draws] - slack, np.inf)
        near.append(block[(scores >= least).any(axis=1)])
        draws = draws[is_kept]
        theta = theta[:, is_kept]
        start += size
        size = min(2 * size, LARGEST_BLOCK)
    return draws, np.sort(np.concatenate(near))
