"""Many arms that share coefficients: a decision scores all of them, and compares few.

A decision takes one of its draws of the coefficients θ, and the arm whose row x of features has the
largest x'θ. The arm's probability is the share of all draws under which it is best. Most draws are
settled by a few good arms, and most arms cannot be best under those that are left.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, combinations, pairwise
from typing import TYPE_CHECKING

import numpy as np

from bayesbandit.kernels.prob_best import points, rows

if TYPE_CHECKING:
    from bayesbandit.predictions import JointRows

Array = np.ndarray
FEW = 3000  # fewer arms are compared all at once (`predictions.Comparison`)
FIRST, PAIRS = 64, 2**18  # good arms for all draws; arms times draws, for draws that are left
GROUP, MOST_GROUPS = 512, 8  # draws of a group, about
BLOCK, MOST_ROWS = 2**18, 2048  # products that are held at a time, and rows
BOXES = 8  # of draws that are alike
AT_ONCE = 2**14  # arms
MANY = 2**21  # products of whole rows that are worth asking first how many parts of them decide
PARTS = (4, 8)  # parts of rows that are tried, in sixteenths of their length
AXES = 30  # comparing a product takes the time of so many axes of it
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
        across = np.sqrt(np.maximum(1.0 - along**2, 0.0))
        kept = np.flatnonzero(_reach(part, rest, along, across, least, 1))
        if _is_many(kept, theta):
            kept = kept[_reach(part[kept], rest[kept], along, across, least, BOXES)]
        theta = theta / size[:, None].astype(kind)
        return kept[_by_axes(joint.x[i], arms[kept], theta, least, slack)]


def _is_many(arms: Array, theta: Array) -> bool:
    """Return whether the products of whole rows are so many that parts of them are tried first."""
    return len(theta) > theta.shape[1] and len(arms) * len(theta) > MANY


def _by_axes(x: Array, arms: Array, theta: Array, least: Array, slack: Array) -> Array:
    """Return which of these arms (A,), by rows of x (K, d), are best under a θ (S, d) and reach the
    least score (S,) there. slack: see `_reaching`."""
    D, axes, ranks = theta.shape[1], np.eye(0), [theta.shape[1]]
    if many := _is_many(arms, theta):
        axes = np.linalg.eigh((theta.T @ theta).astype(np.float64))[1][:, ::-1].astype(theta.dtype)
        theta = theta @ axes
        some = arms[:: 1 + len(arms) // 128]
        ranks = _ranks(x[some].astype(theta.dtype) @ axes, theta, least)
    groups = np.array_split(np.arange(len(theta)), min(MOST_GROUPS, 1 + len(theta) // GROUP))
    cuts = {1, *ranks} if many else {D}
    of_draws = {rank: _cut(theta, rank, -least) for rank in cuts}
    found = np.zeros(len(arms), bool)
    for start in range(0, len(arms), AT_ONCE):
        z = x.take(arms[start : start + AT_ONCE], axis=0).astype(theta.dtype)
        if many:
            z = z @ axes
        of_arms = {rank: _cut(z, rank, 1.0) for rank in cuts}
        for group in groups:
            places = np.arange(len(z))
            if many:
                (part, rest, _), (along, across, _) = of_arms[1].T, of_draws[1][group].T
                places = places[_reach(part, rest, along, across, least[group], BOXES)]
            for rank in ranks:
                rising = slack[group] if rank == D else None
                places = places[_reaching(of_arms[rank], places, of_draws[rank][group], rising)]
            found[start + places] = True
    return found


def _cut(rows_: Array, rank: int, last: float | Array) -> Array:
    """Return the first columns of rows, in this number, the length of the rest, and `last`."""
    cut = np.empty((len(rows_), rank + 2), rows_.dtype)
    cut[:, :rank], rest, cut[:, rank + 1] = rows_[:, :rank], rows_[:, rank:], last
    cut[:, rank] = np.sqrt(np.einsum("ij,ij->i", rest, rest))
    return cut


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


def _reaching(of_arms: Array, places: Array, of_draws: Array, slack: Array | None = None) -> Array:
    """Return which of the arms at these places may reach the least score under any draw.

    of_arms (A, rank + 2), of_draws (S, rank + 2): x and θ along the first axes, which are
    multiplied, the lengths of what is left, which bound it, and 1 and −least. slack (S,): given if
    nothing is left. Then what is asked rises to the best score, but for its rounding.
    """
    least, hits = -of_draws[:, -1].astype(np.float64), [np.zeros(0, bool)]
    for block in _blocks(places, max(len(of_draws), of_draws.shape[1])):
        above = of_draws @ of_arms.take(block, axis=0).T
        hit = above.max(axis=0) >= 0.0
        hits.append(hit)
        if slack is not None and hit.any():
            least += np.maximum(above.max(axis=1) - slack, 0.0)
            of_draws[:, -1] = -least
    return np.concatenate(hits)


def _ranks(z: Array, theta: Array, least: Array) -> list[int]:
    """Return how many axes to multiply, one number after the other: what takes the least time for
    some arms z (A, d) and some of the draws (S, d)."""
    D, some, left = z.shape[1], slice(None, None, 1 + len(theta) // 64), {0: 1.0}
    for rank in sorted({D * part // 16 for part in PARTS} - {0}):
        of_draws = _cut(theta[some], rank, -least[some])
        reach = _reaching(_cut(z, rank, 1.0), np.arange(len(z)), of_draws)
        left[rank] = float(reach.mean())

    def cost(ranks: tuple[int, ...]) -> float:
        return sum(left[a] * (AXES + b) for a, b in pairwise((0, *ranks, D)))

    tried = sorted(left)[1:]
    sets = chain.from_iterable(combinations(tried, n) for n in range(len(tried) + 1))
    return [*min(sets, key=cost), D]


def _within(sizes: Array, limits: tuple[float, float]) -> bool:
    return bool((sizes > limits[0]).all() and (sizes < limits[1]).all())


def _blocks(arms: Array, width: int) -> list[Array]:
    """Return parts of arms (A,) whose products with so many columns stay in the cache."""
    size = max(1, min(MOST_ROWS, BLOCK // width))
    return [arms[start : start + size] for start in range(0, len(arms), size)]
