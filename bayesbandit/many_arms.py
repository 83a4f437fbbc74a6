"""Many arms that share coefficients: a decision scores all of them, and compares few.

A decision takes one of its draws of the coefficients θ, and the arm whose row x of features has the
largest x'θ. The arm's probability is the share of all draws under which it is best. Most draws are
settled by a few good arms, and most arms cannot be best under those that are left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesbandit.kernels.prob_best import points, rows

if TYPE_CHECKING:
    from bayesbandit.predictions import JointRows

Array = np.ndarray
FEW = 3000  # fewer arms are compared all at once (`predictions.Comparison`)
FIRST = 64  # good arms, with which all draws are compared first
GROUP, MOST_GROUPS = 128, 32  # draws of a group, about
BLOCK, MOST_ROWS = 2**17, 2048  # products that are held at a time, and rows
ROUNDING = 1e-7  # of float32, as a share of the lengths of a product's factors, for each dimension
LARGE = 1e15  # the products of larger numbers are not in the range of float32


@dataclass(frozen=True)
class Thetas:
    """Draws of θ: theta (S, d); coarse, the same in float32 where its range is enough.

    length (S,): how far they are out, |ε| times its factor. slack: more than what rounding may do
    to a coarse score.
    """

    theta: Array
    coarse: Array
    length: Array
    slack: float

    def some(self, which: Array) -> Thetas:
        """Return the draws of these numbers."""
        return Thetas(self.theta[which], self.coarse[which], self.length[which], self.slack)


class RowComparison:
    """Thompson sampling from `JointRows`: probabilities of the chosen arms alone, or of all.

    arms (A,): the numbers of those that may be chosen. alpha, floor, seeds: as in `Comparison`.
    """

    def __init__(self, joint: JointRows, arms: Array, alpha: Array, floor: Array) -> None:
        n = len(joint.level)
        self.joint, self.arms, self.seeds = joint, arms, np.zeros(n)
        self.alpha, self.floor = np.broadcast_to(alpha, n) * 1.0, np.broadcast_to(floor, n) * 1.0
        P = len(joint.axes)
        self.points = points.cells(P + 1), points.normals(), points.log_width(joint.df)

    def choose(self, rows_: Array, done: int, D: int, K: int, arms: Array, stream: Array) -> int:
        """Choose one of the arms in each row (n, width) from `done` on: see `Comparison.choose`."""
        joint, settings = self.joint, (self.alpha, self.floor, stream)
        known = joint.given, joint.location, joint.axes, self.seeds, *self.points, *settings
        taken = joint.own, joint.level, joint.length
        done = int(rows.choose_by_rows(rows_, done, D, K, arms, *known, *taken))
        if done == len(rows_):
            joint.taken_in()
        return done

    def propensities(self, chosen: Array) -> Array:
        """Return the probabilities (n,) of the arms of these numbers (n,), one in each context."""
        return self._raised(np.array([self._wins(i, k) for i, k in enumerate(chosen.tolist())]))

    def probabilities(self) -> Array:
        """Return the probabilities of the arms (n, A)."""
        wins = np.zeros((len(self.seeds), len(self.arms)))
        for i in range(len(wins)):
            draws = self._draws(i)
            near = self._near(i, draws, self._best_of_first(i, draws))
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
        x, draws = self.joint.x[i], self._draws(i)
        own = np.empty(len(draws.theta))
        rows.put_scores(draws.theta, np.arange(len(own)), x[k], own)
        left = np.flatnonzero(self._best_of_first(i, draws) <= own + draws.slack)
        if not left.size:  # a policy with a minimum probability may choose such an arm
            return 0.0
        draws, own = draws.some(left), own[left]
        near = self.arms[self._near(i, draws, own)]
        return float(rows.share_of(x, np.union1d(near, k), draws.theta, own))

    def _draws(self, i: int) -> Thetas:
        """Return all draws of a context."""
        joint, S, D = self.joint, points.POINTS, len(self.joint.location)
        theta, length = np.empty((S, D)), np.empty(S)
        known = self.alpha[i], joint.location, joint.axes
        rows.put_thetas(self.seeds[i], *self.points, *known, length, theta)
        size = np.linalg.norm(joint.location) + np.linalg.norm(joint.axes[0]) * length.max()
        long = joint.length[i].max()
        coarse = theta.astype(np.float32) if max(long, size) < LARGE else theta
        return Thetas(theta, coarse, length, float(ROUNDING * (10 + D) * size * long))

    def _best_of_first(self, i: int, draws: Thetas) -> Array:
        """Return the best score (S,) of arms that seem good, to rounding."""
        joint, arms = self.joint, self.arms
        wide = 2.0 * np.linalg.norm(joint.axes) / np.sqrt(len(joint.axes))
        seems = joint.level[i, arms] + self.alpha[i] * wide * joint.length[i, arms]
        first = np.argpartition(-seems, min(FIRST, len(arms)) - 1)[:FIRST]
        score = joint.x[i, arms[first]].astype(draws.coarse.dtype) @ draws.coarse.T
        return np.asarray(score.max(axis=0).astype(np.float64))

    def _near(self, i: int, draws: Thetas, best: Array) -> Array:
        """Return arms, by their places: all that are best under a draw and reach `best` (S,) there.

        Thetas are grouped by how far an arm must reach. Most arms can in few groups, if in any.
        """
        joint, arms, kind, length = self.joint, self.arms, draws.coarse.dtype, draws.length
        x, level, long = joint.x[i], joint.level[i, arms], joint.length[i, arms]
        least, D = best - draws.slack, len(joint.axes)
        wide = np.linalg.norm(joint.axes) / np.sqrt(D) * long.mean()
        order = np.argsort(best - wide * length)
        groups = np.array_split(order, min(MOST_GROUPS, 1 + len(best) // GROUP))
        reach = np.array([length[group].max() for group in groups])
        need = np.array([least[group].min() for group in groups])
        scale = np.linalg.norm(joint.axes[0]) * long  # |x'Rε| ≤ |x| |R| |ε|, and ≤ |x'R| |ε|
        kept = np.flatnonzero(level + scale * reach.max() >= need.min())
        if len(best) > D:  # else it is as quick to score them
            root, rounding = joint.axes.T.astype(kind), ROUNDING * (10 + D) * scale
            for block in _blocks(kept, D):
                own = x[arms[block]].astype(kind) @ root
                scale[block] = np.sqrt(np.einsum("ij,ij->i", own, own)) + rounding[block]
            kept = kept[level[kept] + scale[kept] * reach.max() >= need.min()]
        near = [kept[:0]]
        for group, far, enough in zip(groups, reach, need, strict=True):
            theta, bound = draws.coarse[group].T, least[group].astype(kind)
            for block in _blocks(kept[level[kept] + scale[kept] * far >= enough], len(group)):
                score = x[arms[block]].astype(kind) @ theta
                hit = (score >= bound).any(axis=1)
                if hit.any():
                    near.append(block[hit])
                    bound = np.maximum(bound, score.max(axis=0) - kind.type(draws.slack))
        return np.unique(np.concatenate(near))


def _blocks(arms: Array, width: int) -> list[Array]:
    """Return parts of arms (A,) whose products with so many columns stay in the cache."""
    size = max(1, min(MOST_ROWS, BLOCK // width))
    return [arms[start : start + size] for start in range(0, len(arms), size)]
