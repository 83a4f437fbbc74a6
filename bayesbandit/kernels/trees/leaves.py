"""Rows down a tree, and what its leaves learn of each arm."""

import numpy as np

from bayesbandit.runtime.compiling import njit


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
