"""An arm's weighted ridge regression from the sums of many rows (`beliefs/sums.py`)."""

import numpy as np

from bayesbandit.kernels.arm import arm_of, named
from bayesbandit.kernels.linear import scratch, set_noise, settle
from bayesbandit.kernels.reward_moments import add_moments
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
    d = x.shape[1]
    D = out.shape[1] - 1
    group = np.empty(reward.size, np.int64)
    ends[:] = 0
    for i in range(reward.size):
        k = arm[i]
        group[i] = k
        if k < 0:
            continue
        if folds > 1:
            group[i] = k * folds + seen[k] % folds
            seen[k] += 1
        ends[group[i] + 1] += 1
        head = heads[k]
        add_moments(head, head.sum_w, weight[i], reward[i], 0.0, 0.0, 0.0)
        head.sum_w += weight[i]
    for g in range(1, ends.size):
        ends[g] += ends[g - 1]
    at = ends[:-1].copy()
    for i in range(reward.size):
        if group[i] < 0:
            continue
        k = arm[i]
        row = out[at[group[i]]]
        root = np.sqrt(weight[i])
        at[group[i]] += 1
        for j in range(d):
            row[j] = root * (x[i, j] - origin[k, j])
        for j in range(d, D):
            row[j] = root
        row[D] = root * (reward[i] - shift[k])


@njit(cache=True)
def add_root(numbers, settings, d, t, U, weight):
    """Add rows to an arm's root and loss: see `root.rotate_rows`."""
    arm = arm_of(numbers, int(named(settings).columns))
    arm.head.loss += rotate_rows(arm, d, t, U, weight, np.empty(scratch(settings)))


@njit(cache=True)
def renew(numbers, settings, sums):
    """Set the noise of an arm; if it learns from sums, first λ, the weights' divisor and B."""
    arm = arm_of(numbers, int(named(settings).columns))
    work = np.empty(scratch(settings))
    if sums:
        settle(arm, settings, work)
    set_noise(arm, settings, work)
