"""An arm's weighted ridge regression from the sums of many rows (`beliefs/sums.py`)."""

import numpy as np

from bayesbandit.kernels.arm import arm_of, named
from bayesbandit.kernels.linear import scratch, set_noise, settle
from bayesbandit.kernels.reward_moments import TINY, add_moments
from bayesbandit.kernels.root import rotate_rows
from bayesbandit.runtime.compiling import njit


@njit(cache=True)
def stack(x, reward, weight, arm, shift, origin, seen, folds, out, ends, heads):
    """Put √w (x − origin, 1, r − shift) of rows x (n, d) into out (n, D + 1), group after group.

    A group is a fold of an arm, arm · folds + fold, and ends at ends[group + 1]. Rows whose arm
    number is below 0 are left out. shift (K,), origin (K, D) by arm. seen (K,) counts the arms'
    rows, which go to the folds in turn. heads (K,): Σw and the moments of the rewards are added to
    these.
    """
    n, d, D, K = x.shape[0], x.shape[1], out.shape[1] - 1, shift.size
    group = np.empty(n, np.int64)
    total = np.zeros(K)
    first = np.zeros(K)  # an arm's first reward: gaps from it are exactly 0 if all are equal
    mean = np.zeros(K)  # of gaps from it
    largest = np.full(K, TINY)  # of their sizes
    powers = np.zeros((K, 3))  # Σw g², Σw g³ and Σw g⁴ of the gaps from the mean, over the largest
    ends[:] = 0
    for i in range(n):
        k = arm[i]
        group[i] = k
        if k >= 0:
            if folds > 1:
                group[i] = k * folds + seen[k] % folds
                seen[k] += 1
            ends[group[i] + 1] += 1
            if total[k] == 0.0:
                first[k] = reward[i]
            gap = reward[i] - first[k]
            total[k] += weight[i]
            mean[k] += weight[i] * gap
            largest[k] = max(largest[k], abs(gap))
    for g in range(1, ends.size):
        ends[g] += ends[g - 1]
    for k in range(K):
        if total[k] > 0.0:
            mean[k] /= total[k]
    unit = 1.0 / largest
    at = ends[:-1].copy()
    for i in range(n):
        if group[i] >= 0:
            k = arm[i]
            row, root = out[at[group[i]]], np.sqrt(weight[i])
            gap = (reward[i] - first[k] - mean[k]) * unit[k]
            square = weight[i] * gap * gap
            powers[k, 0] += square
            powers[k, 1] += square * gap
            powers[k, 2] += square * gap * gap
            at[group[i]] += 1
            for j in range(d):
                row[j] = root * (x[i, j] - origin[k, j])
            for j in range(d, D):
                row[j] = root
            row[D] = root * (reward[i] - shift[k])
    for k in range(K):
        spread, skew, tail = powers[k]
        share = 1.0 / spread if spread > 0.0 else 0.0
        skew *= share * largest[k]
        tail *= share * largest[k] * largest[k]
        spread *= largest[k] * largest[k]
        head = heads[k]
        add_moments(head, head.sum_w, total[k], first[k] + mean[k], spread, skew, tail)
        head.sum_w += total[k]


@njit(cache=True)
def add_root(numbers, settings, d, t, U, weight):
    """Add rows to an arm's root and loss: see `root.rotate_rows`."""
    arm = arm_of(numbers, int(named(settings).columns))
    arm.head.loss += rotate_rows(arm, d, t, U, weight, np.empty(scratch(settings)))


@njit(cache=True)
def renew(numbers, settings, sums):
    """Set the noise of an arm; if it learns from sums, first λ, the weights' divisor and B."""
    arm, work = arm_of(numbers, int(named(settings).columns)), np.empty(scratch(settings))
    if sums:
        settle(arm, settings, work)
    set_noise(arm, settings, work)
