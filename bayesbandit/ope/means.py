"""Predicted mean rewards m_t(x, k), learned batch by batch from earlier rounds only.

Means that are fitted to all rounds would bias the estimate under adaptive assignment: they and the
choice of the arm would depend on the same rewards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayesbandit.checks import Array, finite, one_of
from bayesbandit.ope.logs.columns import matrix_of
from bayesbandit.ope.logs.log import Log
from bayesbandit.ope.weights import by_batch
from bayesbandit.runtime.one_thread import one_thread

OUTCOME_MODELS = ("chosen", "running", "arm", "ridge", "quadratic", "logged")
RIDGE_PENALTY = 1.0  # of coefficients of standardised features
FIRST_ROUNDS = 50  # by which the features of squares are standardised


def shrunk(count: Array, total: Array, squares: Any) -> Array:
    """Return each arm's mean reward (…, K), shrunk to the mean r̄ of all rewards.

    count, total: of each arm's rewards (…, K). squares: the sum of all squared rewards (…). With
    the variances σ² within arms and τ² between them, by the method of moments (one-way random
    effects): m_k = r̄ + (r̄_k − r̄) n_kτ²/(n_kτ² + σ²). It is r̄ where an arm has no rewards.
    """
    n = count.sum(axis=-1)
    k = (count > 0).sum(axis=-1)
    mean = (total.sum(axis=-1) / np.maximum(n, 1))[..., None]
    arm_mean = np.where(count > 0, total / np.maximum(count, 1), mean)
    between = (count * (arm_mean - mean) ** 2).sum(axis=-1)
    sigma2 = np.maximum(squares - (count * arm_mean**2).sum(axis=-1), 0.0) / np.maximum(n - k, 1)
    free = n - (count**2).sum(axis=-1) / np.maximum(n, 1)
    tau2 = np.maximum(between - (k - 1) * sigma2, 0.0) / np.maximum(free, 1)
    # by one-way random effects: the share n τ²/(n τ² + σ²) of an arm's mean is its own
    signal = count * tau2[..., None]
    noise = sigma2[..., None]
    share = np.divide(signal, signal + noise, out=np.zeros_like(arm_mean), where=signal > 0)
    return mean + share * (arm_mean - mean)


def arm_means(log: Log, reward: Array, alike: bool = False) -> Array:
    """Return each arm's mean reward before each round, shrunk as in `shrunk`, (n, K); 0 before the
    first.

    alike: take the rounds as if of one arm, (n, 1).
    """
    played = np.zeros_like(log.played) if alike else log.played
    K = 1 if alike else len(log.arms)
    is_known = ~np.isnan(reward)
    origin = reward[is_known][0] if is_known.any() else 0.0  # for less rounding error
    m = np.zeros((len(log), K))
    count, total = np.zeros((2, K))
    squares = 0.0
    for rows in log.batches:
        took = (played[rows][:, None] == np.arange(K)) & is_known[rows][:, None]
        y = np.where(took, reward[rows][:, None] - origin, 0.0)
        y2 = (y**2).sum(axis=1)
        n = count + np.cumsum(took, axis=0) - took
        sums = total + np.cumsum(y, axis=0) - y
        has_past = n.sum(axis=1, keepdims=True) > 0
        prediction = origin + shrunk(n, sums, squares + np.cumsum(y2) - y2)
        m[rows] = np.where(has_past, prediction, 0.0)
        count += took.sum(axis=0)
        total += y.sum(axis=0)
        squares += (y**2).sum()
    return m


def ridge_means(log: Log, reward: Array, m_arms: Array, f: Array) -> Array:
    """Return means (n, K) by a ridge regression for each arm on features f (n, D), by batch.

    m_arms: means m̄ (n, K), as of `arm_means`. The first feature is 1. Features are standardised by
    earlier rounds, f̃. Then (Σ f̃f̃' + λI) θ_k = Σ f̃ (Y − m̄_k), and m = m̄_k + f̃'θ_k.
    """
    K, D = m_arms.shape[1], f.shape[1]
    is_known = ~np.isnan(reward)
    G = np.zeros((K, D, D))
    c = np.zeros((K, D))
    m = m_arms.copy()
    for rows in log.batches:
        total = G.sum(axis=0)
        if n := total[0, 0]:
            centre = total[0] / n
            # features standardised by the rounds so far
            variance = np.maximum(np.diag(total) / n - centre**2, 0.0)
            variance[0] = 1.0
            centre[0] = 0.0
            variance[variance <= 1e-12] = 1.0  # a constant: centred it is 0, and learns nothing
            scale = 1 / np.sqrt(variance)
            # f̃ = T f with T = diag(scale) − shift e₀', f₀ = 1: T G T' takes D² numbers
            shift = centre * scale
            means = m_arms[rows.start]
            # Σ f̃ (Y − m̄_k) of each arm, from the sums of f Y and f
            b = c - means[:, None] * G[:, 0]
            b = b * scale - b[:, :1] * shift
            half = G * scale - G[:, :, :1] * shift  # G T'
            penalised = half * scale[:, None] - half[:, :1] * shift[:, None]
            penalised[:, np.arange(D), np.arange(D)] += RIDGE_PENALTY
            theta = np.linalg.solve(penalised, b[..., None])[..., 0]
            slopes = theta * scale  # T'θ
            slopes[:, 0] -= theta @ shift
            m[rows] = means + f[rows] @ slopes.T
        for k in np.unique(log.played[rows]):
            of_arm = (log.played[rows] == k) & is_known[rows]
            f_arm = f[rows][of_arm]
            G[k] += f_arm.T @ f_arm
            c[k] += f_arm.T @ reward[rows][of_arm]
    return clipped(log, m, reward)


def clipped(log: Log, m: Array, reward: Array) -> Array:
    """Return means (n, K) limited to the range of the rewards in earlier batches, if there are."""
    before = by_batch(log, np.array([rows.start - 1 for rows in log.batches]))
    least, most = (ends.accumulate(reward)[before] for ends in (np.fmin, np.fmax))
    has_past = (before >= 0) & ~np.isnan(least)
    return np.where(has_past[:, None], np.clip(m, least[:, None], most[:, None]), m)


def features(x: Array) -> Array:
    """Return (1, x) with x standardised by the first rounds, (n, 1 + d).

    It avoids rounding errors, and squares of far columns that are like the columns: `ridge_means`
    standardises again. Later rounds change no earlier feature.
    """
    first = x[:FIRST_ROUNDS]
    sd = first.std(axis=0)
    z = (x - first.mean(axis=0)) / np.where(sd > 0, sd, 1.0)
    return np.hstack([np.ones((len(x), 1)), z])


def predicted_means(log: Log, reward: Array, w: Array, mean: Any) -> Array:
    """Return predicted means m (n, K).

    reward: (n,), NaN if not known. w: the weights (n,) of the policy. mean: one of
    OUTCOME_MODELS, or numbers (n, K); a table has them by the arms' names. "chosen" uses, in each
    batch, "arm", "ridge" or "quadratic", whichever has the smallest Σ w²(Y − m)² over earlier
    batches.
    """
    shape = len(log), len(log.arms)
    if not isinstance(mean, str):
        return finite(matrix_of(mean, len(log), log.arms, "mean"), "mean")
    one_of(mean, "mean, where it is no array (n, K),", OUTCOME_MODELS)
    if mean == "logged":
        if log.mean is None:
            raise ValueError("mean='logged' needs a log with mean=")
        return log.mean
    if mean == "running":
        return np.broadcast_to(arm_means(log, reward, alike=True), shape)
    arms = arm_means(log, reward)
    if mean == "arm" or (mean == "chosen" and not log.x.shape[1]):
        return arms
    f = features(log.x)
    candidates = [arms]
    with one_thread():  # many small systems: threads cost more than they do
        if mean != "quadratic":
            candidates.append(ridge_means(log, reward, arms, f))
        if mean != "ridge":
            squares = np.hstack([f, f[:, 1:] ** 2])
            candidates.append(ridge_means(log, reward, arms, squares))
    return best_so_far(log, candidates, reward, w) if mean == "chosen" else candidates[-1]


def best_so_far(log: Log, candidates: Sequence[Array], reward: Array, w: Array) -> Array:
    """Return means (n, K), in each batch those of the candidate with the smallest loss before it.

    Batches 0 and 1 use the first candidate. The choice depends on earlier rounds only, so the
    estimate stays unbiased.
    """
    rows = np.arange(len(log))
    starts = [batch.start for batch in log.batches]
    errors = [np.nan_to_num((w * (reward - m[rows, log.played])) ** 2) for m in candidates]
    loss = np.cumsum(np.add.reduceat(errors, starts, axis=1), axis=1)
    pick = np.zeros(len(starts), dtype=np.int64)
    pick[2:] = loss[:, 1:-1].argmin(axis=0)
    return np.stack(candidates)[by_batch(log, pick), rows]
