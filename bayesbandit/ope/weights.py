"""Weights h_t of rounds: from earlier rounds and not from X_t, so that the estimand stays the same.

Hadad et al. (2021), Confidence intervals for policy evaluation in adaptive experiments; Zhan et al.
(2021), Off-policy evaluation via adaptive weighting with data from contextual bandits.
"""

from __future__ import annotations

import numpy as np

from bayesbandit.checks import Array
from bayesbandit.ope.logs.log import Log

WEIGHTS = ("equal", "stablevar", "minvar", "contextual")
DEFAULT_WEIGHTS = "stablevar"
WEIGHT_POWERS = {"stablevar": -0.5, "minvar": -1.0}  # of φ
MAX_CONTEXTS = 10_000  # largest number of earlier contexts over which a snapshot is averaged
SEEN_ARMS_ROUNDS = 50  # rounds, after which all count in full, whatever arms were seen
# the share of its weight that a round has before; never 0, so that some round counts
WEIGHT_BEFORE = 1e-12
# smallest φ, as a share of the average so far: two policies may agree for a while
MIN_PHI_SHARE = 0.1


def spread(delta: Array, e: Array) -> Array:
    """Return Σ_k δ_k²/e_k of rows (n, K), 0/0 = 0: the variance that weighting by 1/e costs."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(delta == 0, 0.0, delta**2 / e).sum(axis=1)


def phi(log: Log, delta: Array, on: Array) -> Array:
    """Return φ (B,), the expected Σ_k δ²/e_t(X, k) under each batch's policy.

    δ: the target (n, K), or the difference of two. on: a mask (n,) of the rounds that count. With
    snapshots φ is the mean for the batch's policy at contexts of earlier batches; without, the mean
    of the previous batch. The first batch uses its own. Needs the probabilities (n, K).
    """
    assert log.probabilities is not None
    means = np.empty(len(log.batches))
    so_far = 0.0
    n = 0
    cost = spread(delta, log.probabilities)
    for b, rows in enumerate(log.batches):
        if log.snapshots is not None and b > 0:
            before = np.flatnonzero(on[: rows.start])
            before = before[:: -(-len(before) // MAX_CONTEXTS)] if len(before) else before
            costs = spread(delta[before], log.policy(b, before)) if len(before) else cost[:0]
        else:
            last = log.batches[max(b - 1, 0)]
            # without snapshots the batch before stands for this one
            costs = cost[last][on[last]]
        if n == 0 or len(costs) == 0:  # no earlier rounds: its own; or the average so far
            costs = cost[rows][on[rows]] if n == 0 else np.array([so_far / n])
        mean = costs.mean() if len(costs) else 0.0
        means[b] = max(mean, MIN_PHI_SHARE * so_far / max(n, 1))
        if means[b] == 0.0:  # two policies that agree so far: the largest possible cost
            means[b] = spread(np.sign(log.probabilities[rows]), log.probabilities[rows]).mean()
        so_far = so_far + cost[rows][on[rows]].sum()
        n = n + int(on[rows].sum())
    return means


def informed(log: Log, delta: Array, on: Array, reward: Array) -> Array:
    """Return a mask (n,) of the rounds before which most of the target's arms have been seen.

    delta: the target (n, K), or the difference of two. on: a mask (n,) of the rounds that count.
    reward: (n,), NaN if not known. An arm is seen once a reward of it is known. Those not seen must
    have less than half of Σ|δ| so far. Until then predicted means are a guess, off by as much as
    rewards are away from 0, or arms from each other. All rounds after 50 are in the mask.
    """
    took = (log.played[:, None] == np.arange(len(log.arms))) & ~np.isnan(reward)[:, None]
    seen = np.cumsum(took, axis=0) - took > 0
    size = np.abs(delta) * on[:, None]
    share = np.cumsum(size, axis=0) - size
    total = share.sum(axis=1)
    missing = (share * ~seen).sum(axis=1)
    is_informed = seen.any(axis=1) & ((2 * missing < total) | (total == 0))
    return is_informed | (np.cumsum(on) > SEEN_ARMS_ROUNDS)


def by_batch(log: Log, values: Array) -> Array:
    """Return values (n,) of rounds from values (B,) of batches."""
    return np.repeat(values, [rows.stop - rows.start for rows in log.batches])


def averaged(log: Log, h: Array, values: Array) -> Array:
    """Return values (n,) averaged over each batch by h; 0 in a batch without weight."""
    starts = [rows.start for rows in log.batches]
    total = np.add.reduceat(h, starts)
    sums = np.add.reduceat(h * values, starts)
    return by_batch(log, np.divide(sums, total, out=np.zeros_like(total), where=total > 0))


def contextual(log: Log, delta: Array, scores: Array) -> tuple[Array, float, float]:
    """Return the shares h (n,), the value Σ_t B_t and its variance, by weights that depend on x.

    h_t(x) = 1/Σ_k δ²/e_t(x, k), Z(x) = Σ_s h_s(x), B_t = h_t(X_t) Γ_t/Z(X_t), and
    var = Σ_t (B_t − Σ_s h_t(X_s) B_s/Z(X_s))² (Zhan et al. 2021), snapshot by snapshot in O(nK)
    memory.
    """

    def h_of(b: int) -> Array:
        cost = spread(delta, log.policy(b, slice(None)))
        return np.divide(1.0, cost, out=np.ones_like(cost), where=cost > 0)

    Z = np.zeros(len(log))
    h_own = np.empty(len(log))
    for b, rows in enumerate(log.batches):
        h = h_of(b)
        Z += (rows.stop - rows.start) * h
        h_own[rows] = h[rows]
    share = h_own / Z
    # B_t = h_t(X_t)Γ_t/Z(X_t), and the variance is that of a martingale about its means by snapshot
    B = share * scores
    each = B / Z
    centre = by_batch(log, np.array([h_of(b) @ each for b in range(len(log.batches))]))
    return share, float(B.sum()), float(((B - centre) ** 2).sum())
