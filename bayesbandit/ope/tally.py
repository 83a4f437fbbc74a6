"""Sums over rounds, and what follows from them: a value, its variance, and what makes it up.

The variance is what was seen, and what weights and rewards promise. Given the past, a score
w(Y − m) has the mean square Σ_k e_k w_k² E[(Y − m_k)² | k], and no other arm's rewards count. A
short log has not seen what is rare: rounds of much weight, or clicks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from bayesbandit.checks import Array

PROMISED_ROUNDS = 50.0  # the weight of the promised variance, in rounds
CLICKS_NEEDED = 2.0  # effective rewards that an arm needs of its own, and that are added to them
MIN_WEIGHT_SUM = 1e-300


def effective(total: Any, squares: Any) -> Any:
    """Return (Σu)²/Σu², how many terms make up Σu (Kish 1965); 0 where Σu² is 0."""
    return np.where(squares > 0, total**2 / np.maximum(squares, MIN_WEIGHT_SUM), 0.0)


def ess(w: Array) -> float:
    """Return the effective sample size (Σw)²/Σw² of weights."""
    return float(effective(w.sum(), (w**2).sum()))


def powers(h: Any, d: Any) -> Array:
    """Return h, hd, h²dʲ for j = 0, 1, 2, and h⁴dʲ for j = 0 … 4, (10, …)."""
    h2 = h**2
    d2 = d**2
    each = (1.0, d, d2, d2 * d, d2**2)  # twice as fast as d**3 and d**4
    return np.array([h, h * d, *(h2 * p for p in each[:3]), *(h2**2 * p for p in each)])


def mixed(seen: Any, excess: Any, size: Any) -> Any:
    """Return the variance seen, raised by a share of the promised variance that is missing in it.

    excess: how much more is promised than was seen. size: how many rounds make up what was seen.
    What is promised counts as 50 rounds.
    """
    return seen + PROMISED_ROUNDS * np.maximum(excess, 0.0) / (size + PROMISED_ROUNDS)


def variance(sums: Array, excess: Any, size: Any) -> tuple[Any, Any]:
    """Return the variance of Σhd, seen and raised as in `mixed`, by the sums of `powers` of d.

    Seen is Σh²(d − v)² with v = Σhd/Σh. size: at most so many rounds make it up.
    """
    H, S, zero, one, two, *fourth = sums
    v = S / H
    # Σh²(d − v)², by its powers of d
    seen = np.maximum(two - 2 * v * one + v**2 * zero, 0.0)
    a, b, c, d, e = fourth
    # Σh⁴(d − v)⁴, so that (Σh²(d − v)²)²/Σh⁴(d − v)⁴ rounds make it up
    squares = np.maximum(e - 4 * v * d + 6 * v**2 * c - 4 * v**3 * b + v**4 * a, 0.0)
    return seen, mixed(seen, excess, np.minimum(effective(seen, squares), size))


def noise(own_variance: Any, left: Any, size: Any, pooled: Any) -> Any:
    """Return the variance of an arm's rewards around their mean, from few of them.

    own_variance: around the arm's mean. left: around predicted means, taken if it is smaller.
    size: how many rewards make it up. As if 2 more had come, it is (1 + 2/size) times as large. An
    arm with a size below 2 borrows `pooled`, the variance within all arms.
    """
    certainty = np.minimum(size / CLICKS_NEEDED, 1.0)
    added = np.minimum(size / CLICKS_NEEDED, CLICKS_NEEDED / np.maximum(size, MIN_WEIGHT_SUM))
    return np.minimum(own_variance, left) * (1 + added) + (1 - certainty) * pooled


class Arms(NamedTuple):
    """Sums over the rounds of each arm with a weight, (j,) each or (j, m).

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
        is_known = (self.n > 0) & (self.own <= self.left)
        return self.varies(pooled) + np.where(is_known, self.far, 0.0)


@dataclass(frozen=True)
class Tally:
    """Sums over the rounds that count; after each round (m,), or after the last, () each.

    H, S: Σh and Σhd of scores d. The value is S/H. V is the variance of S.
    origin: what is subtracted from scores, for less rounding error. powers (10, …): of the rest.
    ratios (j, 2, …): Σw and Σw² of each target. rewards (4, …): how many, Σ(Y − the arm's mean)²,
    Σu² and Σu⁴ of all arms, with u = Y less the arm's mean so far. seen: Σh²w²(Y − m)². excess: by
    how much more is promised of it. arms: after the last round.

    V is the observed variance Σh²(d − v)². Where more is promised of its part Σh²w²(Y − m)² than
    was seen, it is raised: what is promised counts as 50 rounds, what was seen as the rounds that
    make it up, at most as the effective sample size. Promised is Σ_k E[w_k²(Y − m_k)²], with each
    arm's own variance. In a short log, rare rewards and rounds with large weights may not have come
    yet, and the observed variance is too small.
    """

    origin: float
    powers: Array
    ratios: Array
    rewards: Array
    seen: Array
    excess: Array
    arms: Arms

    @property
    def H(self) -> Array:
        return self.powers[0]

    @property
    def S(self) -> Array:
        return self.powers[1] + self.origin * self.H

    @property
    def value(self) -> Array:
        return self.origin + self.powers[1] / self.H

    @property
    def V(self) -> Array:
        return self._variances[1]

    @property
    def se(self) -> Array:
        return np.sqrt(self.V) / self.H

    @property
    def raised(self) -> Array:
        """The factor by which the standard error is larger than the one that was seen."""
        seen, V = self._variances
        return np.sqrt(np.where(seen > 0, V / np.maximum(seen, MIN_WEIGHT_SUM), 1.0))

    @property
    def size(self) -> Array:
        """The effective sample size (Σw)²/Σw²; that of the worst target."""
        return effective(self.ratios[:, 0], self.ratios[:, 1]).min(axis=0)

    @property
    def steady(self) -> Array:
        """(Σu²)²/Σu⁴: how many rewards make up the variance of the rewards.

        It is n/3 for normal rewards; if rewards are rarely other than 0, about the number of those.
        """
        return effective(*self.rewards[2:])

    @property
    def carrying(self) -> float:
        """How many rewards make up the variance V; for rewards of 0 and 1, about the clicks.

        It is V²/Σ(V_k²/q_k), where V_k is an arm's share, mixed as in `mixed`, and q_k ≥ 1 rewards
        make up the arm's own variance.
        """
        arms = self.arms
        (n, within, *_) = self.rewards
        V = mixed(arms.seen, arms.varies(within / max(n, 1.0)) - arms.seen, self.size)
        q = np.maximum(effective(arms.u2, arms.u4), 1.0)
        return float(effective(V.sum(), (V**2 / q).sum())) if V.size else np.inf

    @cached_property
    def _variances(self) -> tuple[Array, Array]:
        return variance(self.powers, self.excess, self.size)

    def last(self) -> Tally:
        """Return the sums after the last round."""
        running = ("powers", "ratios", "rewards", "seen", "excess")
        return replace(self, **{name: getattr(self, name)[..., -1] for name in running})


def deviations(arm: Array, y: Array) -> tuple[Array, Array]:
    """Return Y less the mean of the arm so far, (n,), and by how much each reward raises the arm's
    Σ(Y − mean)²; 0 where a reward is not known."""
    u, gain = np.zeros((2, len(y)))
    order = np.argsort(arm, kind="stable")
    order = order[~np.isnan(y[order])]
    for rows in np.split(order, np.flatnonzero(np.diff(arm[order])) + 1):
        # for less rounding error
        # Welford: u = Y − the mean with Y in it, and Σ(Y − mean)² grows by u² n/(n − 1)
        n = np.arange(1, len(rows) + 1)
        shifted = y[rows] - y[rows[:1]]
        u[rows] = shifted - np.cumsum(shifted) / n
        gain[rows] = u[rows] ** 2 * n / np.maximum(n - 1, 1)
    return u, gain


@dataclass(frozen=True)
class Scored:
    """The scores Γ of rounds, and what multiplies the rewards in them, (n,) each.

    arm: numbers of the arms. reward: NaN if not known. part: w(Y − m_A). ratios: w of each target.
    arms: those with a weight. part_of_arm: a function of an arm's number k that returns its
    probability e_k (or whether it was chosen, if that is all that is known), weight w_k, predicted
    mean m_k, and m_k averaged over a batch by h; (n,) each, or a number.
    """

    scores: Array
    arm: Array
    reward: Array
    part: Array
    ratios: tuple[Array, ...]
    arms: tuple[int, ...]
    part_of_arm: Callable[[int], tuple[Any, Any, Any, Any]]


def alike(y: Array, scores: Array, ratios: tuple[Array, ...]) -> Scored:
    """Return scores of rewards y (n,) that all count alike, whatever their arms."""
    arm = np.zeros(len(y), dtype=np.int64)
    u, _ = deviations(arm, y)
    return Scored(scores, arm, y, u, ratios, (0,), lambda k: (1.0, 1.0, y - u, y - u))


def tallied(scored: Scored, h: Array) -> Tally:
    """Return the sums after each round with h > 0. h: the weights of rounds (n,)."""
    rounds = np.flatnonzero(h > 0)
    h = h[rounds]
    arm = scored.arm[rounds]
    y = scored.reward[rounds]
    d = scored.scores[rounds]
    is_known = ~np.isnan(y)
    origin = float(h @ d / h.sum()) if len(h) else 0.0
    u, gain = deviations(arm, y)
    rewards = np.cumsum([is_known, gain, u**2, u**4], axis=1)
    pooled = rewards[1] / np.maximum(rewards[0], 1)
    promised = np.zeros(len(rounds))
    last = []
    for k in scored.arms:
        e, w, m, m_batch = (
            np.broadcast_to(values, len(scored.arm))[rounds] for values in scored.part_of_arm(k)
        )
        of_arm = is_known & (arm == k)
        first = y[of_arm.argmax()] if of_arm.any() else 0.0  # for less rounding error
        own_y = np.where(of_arm, y - first, 0.0)
        m = m - first
        m_batch = m_batch - first
        n = np.cumsum(of_arm)
        mean = np.cumsum(own_y) / np.maximum(n, 1)
        own, u2, u4 = (np.cumsum(np.where(of_arm, values, 0.0)) for values in (gain, u**2, u**4))
        left = np.cumsum(np.where(of_arm & (n > 1), (own_y - m) ** 2, 0.0))
        # h²E[w²] = h² e_k w_k²: the weight of arm k's variance, and of what predictions miss
        g = (h * w) ** 2 * e
        C = np.cumsum(g)
        C1 = np.cumsum(g * m_batch)
        C2 = np.cumsum(g * m_batch**2)
        far = np.maximum(mean**2 * C - 2 * mean * C1 + C2, 0.0)
        seen = np.cumsum(np.where(of_arm, h * w * (own_y - mean[-1]), 0.0) ** 2)
        sums = Arms(n, own, left, u2, u4, C, far, seen)
        promised += sums.promised(pooled)
        last.append([values[-1] for values in sums])
    seen = np.cumsum((h * np.where(is_known, scored.part[rounds], 0.0)) ** 2)
    ratios = np.array([np.cumsum([w[rounds], w[rounds] ** 2], axis=1) for w in scored.ratios])
    arms = Arms(*np.array(last, dtype=np.float64).reshape(-1, len(Arms._fields)).T)
    return Tally(
        origin, np.cumsum(powers(h, d - origin), axis=1), ratios, rewards, seen, promised - seen,
        arms,
    )  # fmt: skip
