"""Honest trees: fill them with the rows that did not grow them, and predict at contexts.

Node i of a tree sends a row to left[i] if its feature number feature[i] is ≤ threshold[i], else to
right[i]. A leaf has feature −1. Children come after their parents. A split on the propensity has
feature d = the number of columns. A context has no propensity, so threshold[i] is the left side's
share there, and a prediction averages both sides.
"""

import math

import numpy as np

from bayesbandit.kernels import njit

ASYMPTOTE_BELOW = -30.0  # below this z, φ(z)/Φ(z) is replaced by its asymptote


@njit(cache=True, error_model="numpy")
def halfway(codes, x, feature, code, left, right, out):
    """Write a tree's thresholds to out (N,) as values of the features x (n, d).

    The tree was grown on their ranks codes (n, d). A threshold is half-way between the nearest
    values on its two sides.
    """
    N = feature.size
    low = np.full(N, -np.inf)
    high = np.full(N, np.inf)
    for r in range(codes.shape[0]):
        i = 0
        while feature[i] >= 0:
            j = feature[i]
            if codes[r, j] <= code[i]:
                low[i] = max(low[i], x[r, j])
                i = left[i]
            else:
                high[i] = min(high[i], x[r, j])
                i = right[i]
    for i in range(N):
        # half-way, unless rounding takes it to the right side's least value
        half = low[i] + 0.5 * (high[i] - low[i])
        out[i] = 0.0 if feature[i] < 0 else half if half < high[i] else low[i]


@njit(cache=True, error_model="numpy")
def fill(x, sums, feature, threshold, left, right, least, out):
    """Average rows x (n, d) in the nodes of a tree: write the averages to out (N, m − 1).

    sums (n, m): each row's count, then the numbers to be averaged. A node with a count below
    `least` takes its parent's averages. Returns the sums in each node (N, m).
    """
    N = feature.size
    m = sums.shape[1]
    total = np.zeros((N, m))
    for r in range(x.shape[0]):
        i = 0
        total[i] += sums[r]
        while feature[i] >= 0:
            i = left[i] if x[r, feature[i]] <= threshold[i] else right[i]
            total[i] += sums[r]
    out[0] = total[0, 1:] / total[0, 0]
    for i in range(N):
        if feature[i] < 0:
            continue
        for child in (left[i], right[i]):
            # too few rows: the node has the averages of the nearest one above that has enough
            if total[child, 0] >= least:
                out[child] = total[child, 1:] / total[child, 0]
            else:
                out[child] = out[i]
    return total


@njit(cache=True, error_model="numpy")
def ask(x, feature, threshold, left, right, value, roots, out):
    """Write the values of T trees at contexts x (n, d) to out (T, n, 2). value (N, 2): a node's."""
    n, d = x.shape
    deepest = 0
    for t in range(roots.size - 1):
        deepest = max(deepest, roots[t + 1] - roots[t])
    nodes = np.empty(deepest, np.int64)
    shares = np.empty(deepest)
    for t in range(roots.size - 1):
        for r in range(n):
            nodes[0] = roots[t]
            shares[0] = 1.0
            waiting = 1
            weight = 0.0
            total = 0.0
            while waiting > 0:
                waiting -= 1
                i = nodes[waiting]
                share = shares[waiting]
                while feature[i] >= 0:
                    j = feature[i]
                    if j < d:
                        i = left[i] if x[r, j] <= threshold[i] else right[i]
                    else:
                        nodes[waiting] = right[i]
                        shares[waiting] = share * (1.0 - threshold[i])
                        waiting += 1
                        share *= threshold[i]
                        i = left[i]
                weight += share * value[i, 0]
                total += share * value[i, 1]
            out[t, r, 0] = weight
            out[t, r, 1] = total


@njit(cache=True, error_model="numpy")
def little_bags(answers, size, mean, variance):
    """Compute a forest's means and variances (n,) from its trees' weights W and totals Y.

    answers (T, n, 2): W and Y of each tree. The mean is μ = ΣY / ΣW. Bags of `size` trees share a
    half-sample. With ψ = (Y − μW) / W̄ for each tree, the variance of μ is estimated by the variance
    of ψ's means between bags. The variance of ψ within a bag, over `size`, is subtracted. As the
    true variance is > 0, the result is the mean of N(estimate, its error²) truncated to positive
    values (grf's `ObjectiveBayesDebiaser`).
    """
    T = answers.shape[0]
    n = answers.shape[1]
    bags = T // size
    for r in range(n):
        weight = 0.0
        total = 0.0
        for t in range(T):
            weight += answers[t, r, 0]
            total += answers[t, r, 1]
        mu = total / weight
        between = 0.0
        within = 0.0
        for b in range(bags):
            bag = 0.0
            for t in range(b * size, (b + 1) * size):
                # the linearised error of ΣY/ΣW that one tree contributes, times W̄
                psi = answers[t, r, 1] - mu * answers[t, r, 0]
                bag += psi
                within += psi * psi
            between += (bag / size) ** 2
        scale = (weight / T) ** 2
        between /= bags * scale
        # the variance of ψ in a bag over `size`: the mean of ψ² less that of bags' means² is
        # (size − 1)/size of it
        noise = (within / (T * scale) - between) / (size - 1)
        mean[r] = mu
        variance[r] = positive(between - noise, max(between, noise), bags)


@njit(cache=True, error_model="numpy")
def positive(estimate, size, bags):
    """Return the mean of N(estimate, (size √(2/bags))²) truncated to positive values."""
    error = size * math.sqrt(2.0 / bags)
    if not error > 0.0:
        return 0.0
    z = estimate / error
    if z < ASYMPTOTE_BELOW:
        return -error / z
    # E[X | X > 0] of X ~ N(m, e²) is m + e φ(z)/Φ(z), z = m/e
    density = math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    return estimate + error * density / (0.5 * math.erfc(-z / math.sqrt(2.0)))
