"""Kernels of policy trees: find the best split, send rows to leaves, and learn each arm's scores.

Rows have scores (n, K), one for each arm. The value of a tree is the sum over rows of the score of
the best arm in the row's leaf. A feature is given as a code, the number of cut points below its
value, so there are few splits "code ≤ c". To find a first split, move the cut along each feature
and keep, for both sides, the sums of scores by feature, code and arm. The best second splits follow
from these sums. The cost is O(d² K (n + C²)) for n rows, d features and C codes. The search of
Athey and Wager's `policytree` is the exact case C = n.
"""

import numpy as np

from bayesbandit.kernels import njit


@njit(cache=True, nogil=True)
def largest(sums):
    """Return the largest of sums (K,), K ≥ 1."""
    best = sums[0]
    for k in range(1, sums.size):
        best = max(best, sums[k])
    return best


@njit(cache=True, nogil=True)
def stump(sums, count, total, n, least, slack):
    """Return the value, feature and code of the best tree with one split.

    sums (d, C, K), count (d, C): scores and rows by code. total (K,), n: of all rows.
    The feature is −1 where no split improves the value by more than `slack`.
    """
    d, C, K = sums.shape
    value = largest(total)
    feature = -1
    cut = -1
    left = np.empty(K)
    right = np.empty(K)
    for j in range(d):
        left[:] = 0.0
        m = 0
        for c in range(C - 1):
            if count[j, c] == 0:
                continue
            m += count[j, c]
            if n - m < least:
                break
            # the cut moves one code to the right: its rows go from the right side to the left one
            for k in range(K):
                left[k] += sums[j, c, k]
                right[k] = total[k] - left[k]
            if m < least:
                continue
            # each side plays the arm with the largest sum of scores
            split = largest(left) + largest(right)
            if split > value + slack:
                value = split
                feature = j
                cut = c
    return value, feature, cut


@njit(cache=True, nogil=True)
def put(sums, count, total, code, score, sign):
    """Add one row's codes (d,) and scores (K,) to the sums (sign 1), or subtract them (−1)."""
    for k in range(score.size):
        total[k] += sign * score[k]
    for j in range(code.size):
        count[j, code[j]] += sign
        for k in range(score.size):
            sums[j, code[j], k] += sign * score[k]


@njit(cache=True, nogil=True)
def first_split(code, score, C, two, least, slack):
    """Return the value, and the first split's feature and code, of the best tree of one level.

    With `two`, the tree has two levels of splits. The feature is −1 where a leaf is best.
    code (n, d): in [0, C). score (n, K). least: the fewest rows in a leaf.
    """
    n, d = code.shape
    K = score.shape[1]
    sums = np.zeros((d, C, K))
    count = np.zeros((d, C), np.int64)
    total = np.zeros(K)
    for i in range(n):
        put(sums, count, total, code[i], score[i], 1)
    value, feature, cut = stump(sums, count, total, n, least, slack)
    if not two:
        return value, feature, cut
    left = np.empty_like(sums)
    n_left = np.empty_like(count)
    t_left = np.empty(K)
    right = np.empty_like(sums)
    n_right = np.empty_like(count)
    t_right = np.empty(K)
    for j in range(d):
        left[:] = 0.0
        n_left[:] = 0
        t_left[:] = 0.0
        right[:] = sums
        n_right[:] = count
        t_right[:] = total
        order = np.argsort(code[:, j], kind="mergesort")
        m = 0
        for c in range(C - 1):
            if count[j, c] == 0:
                continue
            if n - m - count[j, c] < least:
                break
            # the rows of this code, which stand together in the order of the feature
            for i in order[m : m + count[j, c]]:
                put(left, n_left, t_left, code[i], score[i], 1)
                put(right, n_right, t_right, code[i], score[i], -1)
            m += count[j, c]
            if m < least:
                continue
            # each side is split once more, as well as its sums allow
            split = stump(left, n_left, t_left, m, least, slack)[0]
            split += stump(right, n_right, t_right, n - m, least, slack)[0]
            if split > value + slack:
                value = split
                feature = j
                cut = c
    return value, feature, cut


@njit(cache=True, nogil=True)
def descend(x, feature, threshold, left, right):
    """Return the leaves' node numbers (n,) of contexts x (n, d).

    A row goes left where its feature is at most the threshold. A leaf has feature −1.
    """
    out = np.zeros(x.shape[0], np.int64)
    for i in range(x.shape[0]):
        node = 0
        while feature[node] >= 0:
            node = left[node] if x[i, feature[node]] <= threshold[node] else right[node]
        out[i] = node
    return out


@njit(cache=True, nogil=True)
def tally(leaf, mean, arm, reward, weight, seen, plays, centre, spread, noise):
    """Add rows one by one to the leaves' moments, by Welford's recurrence.

    The score of an arm is doubly robust: the model's mean, plus weight · (reward − mean) if it was
    played.

    leaf (n,): the rows' leaves.
    mean (n, K): the outcome model's means, NaN for an arm that did not exist yet.
    arm (n,): −1 for an arm that was removed.
    reward, weight (n,): weights are inverse propensities.
    seen, plays (L, K): by leaf and arm, the rows with a score and the rows that played the arm.
    centre, spread (L, K): the mean of the scores, and the sum of squares about it.
    noise (2,): the number of residuals, and the sum of their squares.
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
            # Welford: m ← m + off/n, M₂ ← M₂ + off (score − m)
            off = score - centre[node, k]
            centre[node, k] += off / seen[node, k]
            spread[node, k] += off * (score - centre[node, k])
