"""The policy tree of largest value, one split at a time.

Rows have scores (n, K), one for each arm: the value of a tree is the sum over rows of the score of
the arm that is best in the row's leaf. Features are given as codes, the number of cut points below
a value, so that a split "code ≤ c" is one of few. A first split is swept along each feature, with
the sums of scores by feature, code and arm of both sides kept up to date, from which the best
second splits are read: O(d² K (n + C²)) for n rows, d features and C codes, where the search of
Athey and Wager's `policytree` (C = n) is the exact case.
"""

import numpy as np

from bayesbandit.runtime.compiling import njit


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
