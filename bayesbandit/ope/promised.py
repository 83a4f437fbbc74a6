"""The variance of a sum of scores: what was seen of it, and what weights and rewards promise.

Given the past, a score w(Y − m) has the mean square Σ_k e_k w_k² E[(Y − m_k)² | k], and no other
arm's rewards count. A short log has not seen what is rare: rounds of much weight, or clicks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

Array = np.ndarray
PRIOR = 50.0  # the weight of the promised variance, in rounds
CLICKS = 2.0  # effective rewards that are added to those of an arm, and that it needs of its own
TINY = 1e-300


def effective(squares: Any, fourth: Any) -> Any:
    """Return (Σu²)²/Σu⁴, how many terms make up Σu²; 0 where Σu⁴ is 0."""
    return np.where(fourth > 0, squares**2 / np.maximum(fourth, TINY), 0.0)


def noise(own: Any, left: Any, size: Any, pooled: Any) -> Any:
    """Return the variance of an arm's rewards around their mean, from few of them.

    own: around the arm's mean. left: around predicted means, taken if it is smaller. size: how many
    rewards make it up. As if 2 more had come, it is (1 + 2/size) times as large. An arm with a size
    below 2 borrows `pooled`, the variance within all arms.
    """
    known = np.minimum(size / CLICKS, 1.0)
    added = np.minimum(size / CLICKS, CLICKS / np.maximum(size, TINY))
    return np.minimum(own, left) * (1 + added) + (1 - known) * pooled


def mixed(seen: Any, excess: Any, size: Any) -> Any:
    """Return the variance seen, raised by a share of the promised variance that is missing in it.

    excess: how much more is promised than was seen. size: how many rounds make up what was seen.
    What is promised counts as 50 rounds.
    """
    return seen + PRIOR * np.maximum(excess, 0.0) / (size + PRIOR)


def fourth_power(v: Any, *sums: Any) -> Any:
    """Return Σh⁴(d − v)⁴ from Σh⁴dʲ, j = 0 … 4."""
    a, b, c, d, e = sums
    return np.maximum(e - 4 * v * d + 6 * v**2 * c - 4 * v**3 * b + v**4 * a, 0.0)


@dataclass(frozen=True)
class Scored:
    """What multiplies the rewards in the scores of rounds, (n,) each.

    arm: numbers of the arms. reward: NaN if not known. part: w(Y − m_A). chance: the probabilities
    of an arm k, or None if only chosen arms' are known. weight, mean: the weight w_k and the mean
    m_k of an arm k in every round. level: m_k, averaged over a batch by h. arms: those
    with a weight. ratios: w of each target.
    """

    arm: Array
    reward: Array
    part: Array
    chance: Callable[[int], Array] | None
    weight: Callable[[int], Array]
    mean: Callable[[int], Any]
    level: Callable[[int], Any]
    arms: tuple[int, ...]
    ratios: tuple[Array, ...]

    def squares(self, k: int, h: Array) -> Array:
        """Return h²E[w_k²] (n,), the expected square of arm k's weight times h."""
        w2 = (h * self.weight(k)) ** 2
        return w2 * (self.arm == k if self.chance is None else self.chance(k))

    def size(self, rounds: Array) -> Array:
        """Return the effective sample size after each of the rounds; that of the worst target."""
        found = np.full(len(rounds), np.inf)
        for w in self.ratios:
            total, squares = np.cumsum(w[rounds]), np.cumsum(w[rounds] ** 2)
            found = np.minimum(found, total**2 / np.maximum(squares, TINY))
        return found


def deviations(arm: Array, y: Array) -> tuple[Array, Array]:
    """Return Y less the mean of the arm so far, (n,), and by how much each reward raises the arm's
    Σ(Y − mean)²; 0 where a reward is not known."""
    u, gain = np.zeros((2, len(y)))
    order = np.argsort(arm, kind="stable")
    order = order[~np.isnan(y[order])]
    for rows in np.split(order, np.flatnonzero(np.diff(arm[order])) + 1):
        n, own = np.arange(1, len(rows) + 1), y[rows] - y[rows[:1]]  # for less rounding error
        u[rows] = own - np.cumsum(own) / n
        gain[rows] = u[rows] ** 2 * n / np.maximum(n - 1, 1)
    return u, gain


def alike(y: Array, *ratios: Array) -> Scored:
    """Return what multiplies rewards y (n,) that all count alike, whatever their arms: 1."""
    arm, one = np.zeros(len(y), dtype=np.int64), np.ones(len(y))
    u, _ = deviations(arm, y)
    return Scored(
        arm, y, u, None, lambda k: one, lambda k: y - u, lambda k: y - u, (0,), ratios or (one,)
    )


@dataclass(frozen=True)
class Arms:
    """Sums over the rounds of each arm with a weight, (j,) each or (j, m); they add up over parts.

    n: rewards. own: Σ(Y − the arm's mean)². left: Σ(Y − m)² after the arm's first reward. u2, u4:
    powers of u, Y less the arm's mean so far. C: Σh²E[w²]. far: Σh²E[w²](mean − m)², what wrong
    predicted means cost. seen: Σh²w²(Y − the arm's mean)².
    """

    n: Any
    own: Any
    left: Any
    u2: Any
    u4: Any
    C: Any
    far: Any
    seen: Any

    def varies(self, pooled: Any) -> Any:
        """Return Σh²E[w²] times the variance of the arm's rewards. pooled: as in `noise`."""
        n = np.maximum(self.n, 1)
        return noise(self.own / n, self.left / n, effective(self.u2, self.u4), pooled) * self.C

    def promised(self, pooled: Any) -> Any:
        """Return Σh²E[w²(Y − m)²], as far as it is known."""
        known = (self.n > 0) & (self.own <= self.left)
        return self.varies(pooled) + np.where(known, self.far, 0.0)

    def carrying(self, pooled: float, size: float) -> float:
        """Return how many rewards make up the variance; for rewards of 0 and 1, about the clicks.

        It is V²/Σ(V_k²/q_k), where V_k is an arm's share, mixed as in `mixed`, and q_k ≥ 1 rewards
        make up the arm's own variance. size: the effective sample size.
        """
        V = mixed(self.seen, self.varies(pooled) - self.seen, size)
        q = np.maximum(effective(self.u2, self.u4), 1.0)
        return float(effective(V.sum(), (V**2 / q).sum())) if V.size else np.inf

    def __add__(self, other: Arms) -> Arms:
        return Arms(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Arms)))


@dataclass(frozen=True)
class Promise:
    """What was seen and what is promised of the variance of Σhw(Y − m), after each round, (m,).

    n, within, u2, u4: of all arms, the number of rewards, Σ(Y − the arm's mean)², and Σu² and Σu⁴
    with u = Y less the arm's mean so far. arms: after the last round.
    """

    seen: Array
    promised: Array
    n: Array
    within: Array
    u2: Array
    u4: Array
    arms: Arms


def promise(scored: Scored, h: Array, rounds: Array) -> Promise:
    """Return what was seen and what is promised, after each of the rounds (those with h > 0)."""
    arm, y = scored.arm[rounds], scored.reward[rounds]
    known = ~np.isnan(y)
    u, gain = deviations(arm, y)
    n, within = np.cumsum(known), np.cumsum(gain)
    pooled, promised, last = within / np.maximum(n, 1), np.zeros(len(rounds)), []
    for k in scored.arms:
        mine = known & (arm == k)
        origin = y[mine.argmax()] if mine.any() else 0.0  # for less rounding error
        own_y = np.where(mine, y - origin, 0.0)
        m = np.broadcast_to(scored.mean(k), scored.arm.shape)[rounds] - origin
        w, g = scored.weight(k)[rounds], scored.squares(k, h)[rounds]
        count = np.cumsum(mine)
        mean = np.cumsum(own_y) / np.maximum(count, 1)
        hwu = np.where(mine, h[rounds] * w * (own_y - mean[-1]), 0.0)
        own, u2, u4 = (np.cumsum(np.where(mine, of, 0.0)) for of in (gain, u**2, u**4))
        left = np.cumsum(np.where(mine & (count > 1), (own_y - m) ** 2, 0.0))
        C = np.cumsum(g)
        level = np.broadcast_to(scored.level(k), scored.arm.shape)[rounds] - origin
        first, second = np.cumsum(g * level), np.cumsum(g * level**2)
        far = np.maximum(mean**2 * C - 2 * mean * first + second, 0.0)
        found = Arms(count, own, left, u2, u4, C, far, np.cumsum(hwu**2))
        promised += found.promised(pooled)
        last.append([getattr(found, f.name)[-1] for f in fields(Arms)])
    part = np.where(known, scored.part[rounds], 0.0)
    rows = np.array(last, dtype=np.float64).reshape(-1, len(fields(Arms))).T
    return Promise(
        np.cumsum((h[rounds] * part) ** 2), promised, n, within, np.cumsum(u**2), np.cumsum(u**4),
        Arms(*rows),
    )  # fmt: skip
