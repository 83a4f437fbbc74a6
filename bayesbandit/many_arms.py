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
FIRST, PAIRS = 64, 2**18  # good arms for all draws; arms times draws, for draws that are left
GROUP, MOST_GROUPS = 512, 8  # draws of a group, about
BLOCK, MOST_ROWS = 2**17, 2048  # products that are held at a time, and rows
BOXES = 8  # of draws that are alike
AT_ONCE = 2**14  # arms
MANY = 2**21  # products of whole rows that are worth asking first how many parts of them decide
PARTS = (1, 4, 8)  # parts of rows that are tried, in sixteenths of their length
GAIN = 0.7  # a part is worth its time if it leaves so many arms, of those before
ROUNDING = 1e-7  # of float32, as a share of the lengths of a product's factors, for each dimension
SINGLE, DOUBLE = (1e-15, 1e15), (1e-140, 1e140)  # numbers whose products and squares are in range


@dataclass(frozen=True)
class Thetas:
    """Draws of θ, location + spread · axes'ε, with numbers (S,) among noise ε (P, N), spread (N,).

    coarse (S, d): θ to rounding, in float32 where its range is enough. slack: more than what
    rounding may do to the difference of two coarse scores; infinite where it may do anything.
    """

    noise: Array
    spread: Array
    numbers: Array
    coarse: Array
    slack: float

    def some(self, which: Array) -> Thetas:
        """Return the draws at these places."""
        numbers, coarse = self.numbers[which], self.coarse[which]
        return Thetas(self.noise, self.spread, numbers, coarse, self.slack)

    def scores(self, x: Array) -> Array:
        """Return the coarse scores (A, S) of rows x (A, d)."""
        return np.asarray(x.astype(self.coarse.dtype) @ self.coarse.T)


class RowComparison:
    """Thompson sampling from `JointRows`: probabilities of the chosen arms alone, or of all.

    arms (A,): the numbers of those that may be chosen. alpha, floor, seeds: as in `Comparison`.
    """

    def __init__(self, joint: JointRows, arms: Array, alpha: Array, floor: Array) -> None:
        n = len(joint.level)
        self.joint, self.arms, self.seeds = joint, arms, np.zeros(n)
        self.which = slice(None) if len(arms) == joint.level.shape[1] else arms
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
            near = self._near(i, draws, self._best_of_first(i, draws, FIRST))
            found = np.empty(len(near))
            rows.put_shares(self.joint.x[i], self.arms[near], self._exactly(draws), found)
            wins[i, near] = found
        return self._raised(wins.T).T

    def _raised(self, wins: Array) -> Array:
        """Return probabilities, from numbers of draws (…, n) under which arms are best."""
        share = np.minimum(wins / points.POINTS, 1.0)
        return self.floor + (1.0 - len(self.arms) * self.floor) * share

    def _wins(self, i: int, k: int) -> float:
        """Return the number of draws under which arm k is best."""
        x, draws = self.joint.x[i], self._draws(i)
        own = draws.scores(x[[k]])[0].astype(np.float64)
        for first in (FIRST, PAIRS):
            best = self._best_of_first(i, draws, min(max(FIRST, first // len(own)), MOST_ROWS))
            left = np.flatnonzero(best <= own + draws.slack)
            if not left.size:  # a policy with a minimum probability may choose such an arm
                return 0.0
            draws, own = draws.some(left), own[left]
            if PAIRS // len(left) <= 2 * FIRST:
                break
        near = self.arms[self._near(i, draws, own)]
        best = np.full(len(own), -np.inf)
        for block in _blocks(near[near != k], len(own)):
            best = np.maximum(best, draws.scores(x[block]).max(axis=0))
        won = best < own - draws.slack
        close = np.flatnonzero(~won & (best <= own + draws.slack))
        theta, exact = self._exactly(draws.some(close)), np.empty(len(close))
        rows.put_scores(theta, np.arange(len(close)), x[k], exact)
        return float(won.sum() + rows.share_of(x, np.union1d(near, k), theta, exact))

    def _draws(self, i: int) -> Thetas:
        """Return all draws of a context."""
        joint, S, (P, D) = self.joint, points.POINTS, self.joint.axes.shape
        noise, spread = np.empty((P + 1, S)), np.empty(S)
        rows.put_noise(self.seeds[i], *self.points, self.alpha[i], spread, noise)
        theta = (spread * noise[:P]).T @ joint.axes + joint.location
        sizes = np.array(
            [np.sqrt(np.einsum("ij,ij->i", theta, theta).max()), joint.length[i].max()]
        )
        slack = 2.0 * ROUNDING * (10 + D) * sizes.prod()
        if not _within(sizes, DOUBLE):
            slack = np.inf
        coarse = theta.astype(np.float32) if _within(sizes, SINGLE) else theta
        return Thetas(noise[:P], spread, np.arange(S), coarse, float(slack))

    def _exactly(self, draws: Thetas) -> Array:
        """Return θ of draws (S, d) as they are compared, and as a choice computes them."""
        theta, which = np.empty(draws.coarse.shape), draws.numbers
        known = self.joint.location, self.joint.axes
        rows.put_thetas(draws.noise[:, which], draws.spread[which], *known, theta)
        return theta

    def _best_of_first(self, i: int, draws: Thetas, number: int) -> Array:
        """Return the best score (S,) of so many arms that seem good, to rounding."""
        joint, arms = self.joint, self.arms
        wide = 2.0 * np.linalg.norm(joint.axes) / np.sqrt(len(joint.axes))
        seems = joint.level[i, self.which] + self.alpha[i] * wide * joint.length[i, self.which]
        first = np.argpartition(-seems, min(number, len(arms)) - 1)[:number]
        return np.asarray(draws.scores(joint.x[i, arms[first]]).max(axis=0).astype(np.float64))

    def _near(self, i: int, draws: Thetas, best: Array) -> Array:
        """Return arms, by their places: all that are best under a draw and reach `best` (S,) there.

        A score is at most x₁θ₁ + |x₂||θ₂|, where x₁ and θ₁ are the parts of x and θ in some
        directions, and x₂ and θ₂ the rest. Most arms are left out by the part along the mean of θ,
        which is known, and most others by a few principal axes of these draws.
        """
        joint, arms, kind = self.joint, self.arms, draws.coarse.dtype
        if draws.slack == np.inf:
            return np.arange(len(arms))
        size = np.sqrt(np.einsum("ij,ij->i", draws.coarse, draws.coarse)).astype(np.float64)
        size[size == 0.0] = 1.0
        order = np.argsort((best - draws.slack) / size)
        theta, size, best = draws.coarse[order], size[order], best[order]
        least, slack = (best - draws.slack) / size, draws.slack / size
        unit = np.abs(joint.location).max() or 1.0  # the squares of tiny numbers are 0
        unit *= np.linalg.norm(joint.location / unit) or 1.0
        part, rest = joint.level[i, self.which] / unit, joint.length[i, self.which]
        rest = np.sqrt(np.maximum(rest**2 - part**2, 0.0))
        along = theta @ (joint.location / unit).astype(kind) / size
        across, kept = np.sqrt(np.maximum(1.0 - along**2, 0.0)), np.arange(len(arms))
        theta = theta / size[:, None].astype(kind)
        x, D, axes = joint.x[i], len(joint.location), None
        for boxes in (1, BOXES):
            kept = kept[_reach(part[kept], rest[kept], along, across, least, boxes)]
            if len(theta) <= D or len(kept) * len(theta) <= MANY:
                break
        else:
            square = (theta.T @ theta).astype(np.float64)
            axes = np.linalg.eigh(square)[1][:, ::-1].astype(kind)
            theta = theta @ axes
        if axes is None:
            ranks = [D]
        else:
            ranks = _ranks(
                _turned(x[arms[kept[:: 1 + len(kept) // 128]]], axes, kind), theta, least
            )
        groups = np.array_split(np.arange(len(theta)), min(MOST_GROUPS, 1 + len(theta) // GROUP))
        near = [kept[:0]]
        for some in (kept[at : at + AT_ONCE] for at in range(0, len(kept), AT_ONCE)):
            z, found = _turned(x[arms[some]], axes, kind), np.zeros(len(some), bool)
            rest = np.sqrt(np.einsum("ij,ij->i", z[:, 1:D], z[:, 1:D]))
            for group in groups:
                of, asked, places = theta[group], least[group], np.arange(len(some))
                if axes is not None:
                    across = np.linalg.norm(of[:, 1:], axis=1)
                    reach = _reach(z[:, 0], rest, of[:, 0], across, asked, BOXES)
                    places = np.flatnonzero(reach)
                for rank in ranks:
                    places = places[_reaching(z, places, rank, of, asked, slack[group])]
                found[places] = True
            near.append(some[found])
        return np.concatenate(near)


def _turned(x: Array, axes: Array | None, kind: np.dtype) -> Array:
    """Return rows x (A, d) along these axes (d, d), (A, d + 2); the last two columns are free."""
    z = np.empty((len(x), x.shape[1] + 2), kind)
    if axes is None:
        z[:, :-2] = x
    else:
        np.matmul(x.astype(kind), axes, out=z[:, :-2])
    return z


def _reach(
    part: Array, rest: Array, along: Array, across: Array, least: Array, boxes: int
) -> Array:
    """Return which arms (A,) may reach the least score (S,) under any draw, of the draws in boxes.

    part, along: the parts of x and θ in one direction; rest, across: the lengths of what is left.
    """
    reach = np.zeros(len(part), bool)
    for box in np.array_split(np.arange(len(least)), boxes):
        if len(box):
            low, high = along[box].min(), along[box].max()
            most = np.maximum(part * low, part * high) + rest * across[box].max()
            reach |= most >= least[box].min()
    return reach


def _reaching(
    z: Array, places: Array, rank: int, turned: Array, least: Array, slack: Array
) -> Array:
    """Return which of the arms at these places may reach the least score (S,) under any draw.

    z (A, D + 2), turned (S, D): x and θ along principal axes. The first ones, in this number, are
    multiplied, and the rest is bounded by its length. If all are, what is asked rises to the best
    score; slack (S,) is for its rounding.
    """
    D, hits = turned.shape[1], [np.zeros(0, bool)]
    across = np.linalg.norm(turned[:, rank:], axis=1)
    factors = np.column_stack([turned[:, :rank], across, -least]).astype(z.dtype)
    for block in _blocks(places, max(len(factors), D)):
        rows_ = z[block]
        rows_[:, rank] = np.sqrt(np.einsum("ij,ij->i", rows_[:, rank:D], rows_[:, rank:D]))
        rows_[:, rank + 1] = 1.0
        above = factors @ rows_[:, : rank + 2].T
        hit = above.max(axis=0) >= 0.0
        hits.append(hit)
        if rank == D and hit.any():
            least = least + np.maximum(above.max(axis=1) - slack, 0.0)
            factors[:, -1] = -least
    return np.concatenate(hits)


def _ranks(z: Array, turned: Array, least: Array) -> list[int]:
    """Return how many axes to multiply, one number after the other, by some arms and draws."""
    D, left, chosen = turned.shape[1], 1.0, []
    z, some = z[:: 1 + len(z) // 128], slice(None, None, 1 + len(turned) // 64)
    for rank in sorted({D * part // 16 for part in PARTS} - {0}):
        reach = _reaching(z, np.arange(len(z)), rank, turned[some], least[some], least[some])
        if (share := float(reach.mean())) < GAIN * left:
            chosen.append(rank)
            left = share
    return [*chosen, D]


def _within(sizes: Array, limits: tuple[float, float]) -> bool:
    return bool((sizes > limits[0]).all() and (sizes < limits[1]).all())


def _blocks(arms: Array, width: int) -> list[Array]:
    """Return parts of arms (A,) whose products with so many columns stay in the cache."""
    size = max(1, min(MOST_ROWS, BLOCK // width))
    return [arms[start : start + size] for start in range(0, len(arms), size)]
