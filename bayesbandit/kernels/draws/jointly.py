"""Arms that share coefficients, compared by joint draws: mean rewards m + a ε'F, one ε for all.

A decision takes one of S fixed draws at random, and the arm that is best under it; the share of all
S in which an arm is best is therefore its exact probability, whether it is asked for or not.
"""

import numpy as np

from bayesbandit.kernels.borrowing import borrowed, held
from bayesbandit.kernels.compiling import njit
from bayesbandit.kernels.rules import (
    ARM,
    FLOOR,
    KIND,
    PARAM,
    PROPENSITY,
    REWARD,
    TABULATED,
    WEIGHT,
    below,
    is_short,
    normal,
    normal_cdf,
    tail_at,
)


@njit(cache=True)
def product(a, b, out):
    """a (n, D) times b (D, P) into out (n, P): each row by the same operations."""
    for i in range(a.shape[0]):
        out[i] = 0.0
        for j in range(a.shape[1]):
            for p in range(b.shape[1]):
                out[i, p] += a[i, j] * b[j, p]


@njit(cache=True)
def put_scores(mean, factor, noise, a, out):
    """Mean rewards out (A,) of arms with means (A,) and factors (P, A) under one draw ε (P,)."""
    out[:] = 0.0
    for j in range(factor.shape[0]):
        for k in range(out.size):
            out[k] += noise[j] * factor[j, k]
    for k in range(out.size):
        out[k] = mean[k] + a * out[k]


@njit(cache=True)
def best_in(scores):
    """The largest score, and how many arms have it."""
    best, ties = -np.inf, 0
    for k in range(scores.size):
        if scores[k] > best:
            best, ties = scores[k], 1
        elif scores[k] == best:
            ties += 1
    return best, ties


@njit(cache=True)
def nth(scores, best, n):
    """The arm that is the n-th, from 0, to have this score."""
    for k in range(scores.size):
        if scores[k] == best:
            if n == 0:
                return k
            n -= 1
    return -1


@njit(cache=True)
def contenders(mean, factor, reach, kept):
    """The arms, into `kept` (A,), that may be best under draws no longer than `reach`, and how many
    they are: |(F_k − F_b)'ε| ≤ |F_k − F_b| |ε| beside the arm b of the largest mean."""
    b, count = 0, 0
    for k in range(mean.size):
        b = k if mean[k] > mean[b] else b
    for k in range(mean.size):
        apart2 = 0.0
        for j in range(factor.shape[0]):
            apart2 += (factor[j, k] - factor[j, b]) ** 2
        slack = 1e-9 * (abs(mean[b]) + abs(mean[k]))
        if mean[b] - mean[k] <= (1.0 + 1e-9) * reach * np.sqrt(apart2) + slack:
            kept[count] = k
            count += 1
    return count


@njit(cache=True)
def shares_of(mean, factor, noise, width, alpha, floor, out):
    """Probabilities out (n, A) for means (n, A), factors (n, P, A), draws (S, P) of these widths
    (S,), spreads α and least probabilities (n,) or (1,)."""
    n, S, A, P = mean.shape[0], noise.shape[0], mean.shape[1], factor.shape[1]
    reach = 0.0
    for s in range(S):
        reach = max(reach, width[s] * np.sqrt((noise[s] ** 2).sum()))
    kept = np.empty(A, np.int64)
    for i in range(n):
        at = i if alpha.size > 1 else 0
        out[i] = 0.0
        count = contenders(mean[i], factor[i], alpha[at] * reach, kept)
        m, F, scores = np.empty(count), np.empty((P, count)), np.empty(count)
        for c in range(count):
            m[c] = mean[i, kept[c]]
            for j in range(P):
                F[j, c] = factor[i, j, kept[c]]
        for s in range(S):
            put_scores(m, F, noise[s], alpha[at] * width[s], scores)
            best, ties = best_in(scores)
            for tied in range(ties):
                out[i, kept[nth(scores, best, tied)]] += 1.0 / (ties * S)
        for k in range(A):
            out[i, k] = floor[at] + (1.0 - A * floor[at]) * min(out[i, k], 1.0)


@njit(cache=True)
def choose_jointly(rows, start, D, K, arms, mean, factor, noise, width, alpha, floor, stream):
    """Decide for rows (n, width) from `start` on among the arms of these numbers (A,), until the
    stream runs short; the next row to do. See `shares_of`."""
    rows, stream, A = borrowed(rows), borrowed(stream), arms.size
    scores = np.empty(A)
    for i in range(start, rows.shape[0]):
        if is_short(stream, K):
            stream[-1] += i - start
            held(scores)
            return i
        at = i if alpha.size > 1 else 0
        if floor[at] > 0.0 and normal_cdf(normal(stream)) < A * floor[at]:
            arm = below(A, stream)
        else:
            s = below(noise.shape[0], stream)
            put_scores(mean[i], factor[i], noise[s], alpha[at] * width[s], borrowed(scores))
            best, ties = best_in(borrowed(scores))
            arm = nth(borrowed(scores), best, below(ties, stream) if ties > 1 else 0)
        tail = rows[i, tail_at(D, K) :]
        tail[ARM], tail[KIND] = arms[arm], TABULATED
        tail[PARAM], tail[FLOOR] = alpha[at], floor[at]
        tail[PROPENSITY] = tail[REWARD] = tail[WEIGHT] = np.nan
    stream[-1] += rows.shape[0] - start
    held(scores)
    return rows.shape[0]
