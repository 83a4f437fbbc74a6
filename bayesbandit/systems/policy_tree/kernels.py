"""The policy tree of largest value, one split at a time; rows down a tree, and what its leaves
learn of each arm.

Rows have scores (n, K), one for each arm: the value of a tree is the sum over rows of the score of
the arm that is best in the row's leaf. Features are given as codes, the number of cut points below
a value, so that a split "code ≤ c" is one of few. A first split is swept along each feature, with
the sums of scores by feature, code and arm of both sides kept up to date, from which the best
second splits are read: O(d² K (n + C²)) for n rows, d features and C codes, where the search of
Athey and Wager's `policytree` (C = n) is the exact case.
"""

import numpy as np

from bayesbandit.kernels import njit


@njit(cache=True, nogil=True)
def largest(sums):
    """The largest of sums (K,), at least one."""
    best = sums[0]
    for k in range(1, sums.size):
        best = max(best, sums[k])
    return best


@njit(cache=True, nogil=True)
def stump(sums, count, total, n, least, slack):
    """The best tree of one split, from sums of scores (d, C, K) and counts (d, C) by code; total
    (K,) and n of all: value, feature and code, −1 where no split is worth more than `slack`."""
    d, C, K = sums.shape
    value, feature, cut = largest(total), -1, -1
    left, right = np.empty(K), np.empty(K)
    for j in range(d):
        left[:], m = 0.0, 0
        for c in range(C - 1):
            if count[j, c] == 0:
                continue
            m += count[j, c]
            if n - m < least:
                break
            for k in range(K):
                left[k] += sums[j, c, k]
                right[k] = total[k] - left[k]
            if m < least:
                continue
            found = largest(left) + largest(right)
            if found > value + slack:
                value, feature, cut = found, j, c
    return value, feature, cut


@njit(cache=True, nogil=True)
def put(sums, count, total, code, score, sign):
    """One row's codes (d,) and scores (K,), added (sign 1) or taken away (−1)."""
    for k in range(score.size):
        total[k] += sign * score[k]
    for j in range(code.size):
        count[j, code[j]] += sign
        for k in range(score.size):
            sums[j, code[j], k] += sign * score[k]


@njit(cache=True, nogil=True)
def first_split(code, score, C, two, least, slack):
    """The first split of the best tree of one split, or of `two` levels of them, for rows with
    codes (n, d) in [0, C) and scores (n, K): value, feature and code, −1 where a leaf is best."""
    n, d = code.shape
    K = score.shape[1]
    sums, count, total = np.zeros((d, C, K)), np.zeros((d, C), np.int64), np.zeros(K)
    for i in range(n):
        put(sums, count, total, code[i], score[i], 1)
    value, feature, cut = stump(sums, count, total, n, least, slack)
    if not two:
        return value, feature, cut
    left, n_left, t_left = np.empty_like(sums), np.empty_like(count), np.empty(K)
    right, n_right, t_right = np.empty_like(sums), np.empty_like(count), np.empty(K)
    for j in range(d):
        left[:], n_left[:], t_left[:] = 0.0, 0, 0.0
        right[:], n_right[:], t_right[:] = sums, count, total
        order, m = np.argsort(code[:, j], kind="mergesort"), 0
        for c in range(C - 1):
            if count[j, c] == 0:
                continue
            if n - m - count[j, c] < least:
                break
            for i in order[m : m + count[j, c]]:
                put(left, n_left, t_left, code[i], score[i], 1)
                put(right, n_right, t_right, code[i], score[i], -1)
            m += count[j, c]
            if m < least:
                continue
            found = stump(left, n_left, t_left, m, least, slack)[0]
            found += stump(right, n_right, t_right, n - m, least, slack)[0]
            if found > value + slack:
                value, feature, cut = found, j, c
    return value, feature, cut


@njit(cache=True, nogil=True)
def descend(x, feature, threshold, left, right):
    """The nodes (n,) where contexts x (n, d) end: left where a feature is at most the threshold, a
    node without a feature (−1) is a leaf."""
    out = np.zeros(x.shape[0], np.int64)
    for i in range(x.shape[0]):
        node = 0
        while feature[node] >= 0:
            node = left[node] if x[i, feature[node]] <= threshold[node] else right[node]
        out[i] = node
    return out


@njit(cache=True, nogil=True)
def tally(leaf, mean, arm, reward, weight, seen, plays, centre, spread, noise):
    """Rows one by one into leaves, by Welford's recurrence.

    leaf (n,); mean (n, K): an outcome model's, NaN of an arm that was not there; arm (n,), −1 of
    one that is gone; reward, weight (n,): an inverse propensity. Of each leaf and arm (L, K): rows
    that were seen and plays, the mean of the scores and their sum of squares about it. noise:
    rounds, and the sum of their squared residuals.
    """
    for i in range(leaf.size):
        node = leaf[i]
        for k in range(mean.shape[1]):
            score = mean[i, k]
            if np.isnan(score):
                continue
            if arm[i] == k:
                residual = reward[i] - score
                score += weight[i] * residual
                plays[node, k] += 1.0
                noise[0] += 1.0
                noise[1] += residual * residual
            seen[node, k] += 1.0
            off = score - centre[node, k]
            centre[node, k] += off / seen[node, k]
            spread[node, k] += off * (score - centre[node, k])
