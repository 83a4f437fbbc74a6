"""An arm's weighted ridge regression from the sums of many rows (`beliefs/sums.py`)."""

import numpy as np

from bayesbandit.kernels.linear import (
    ROUGH,
    factorise,
    invert_and_solve,
    scratch,
    set_noise,
    settle_weights,
)
from bayesbandit.kernels.reward_moments import add_moments
from bayesbandit.kernels.ridge_state import FOLDS, NORMALIZE, SUM_W
from bayesbandit.runtime.compiling import njit


@njit(cache=True)
def stack(x, reward, weight, arm, shift, origin, seen, folds, out, ends, heads):
    """Put √w (x − origin, 1, r − shift) of rows x (n, d) into out (n, D + 1), group after group.

    A group is a fold of an arm, arm · folds + fold, and ends at ends[group + 1]. Rows whose arm
    number is below 0 are left out. shift (K,), origin (K, d) by arm. seen (K,) counts the arms'
    rows, which go to the folds in turn. heads (K, HEAD): Σw and the moments of the rewards are
    added to these.
    """
    n, d, D = x.shape[0], x.shape[1], out.shape[1] - 1
    group = np.empty(n, np.int64)
    ends[:] = 0
    for i in range(n):
        k = arm[i]
        group[i] = k
        if k >= 0:
            if folds > 1:
                group[i] = k * folds + seen[k] % folds
                seen[k] += 1
            ends[group[i] + 1] += 1
    for g in range(1, ends.size):
        ends[g] += ends[g - 1]
    at = ends[:-1].copy()
    for i in range(n):
        if group[i] >= 0:
            row, root = out[at[group[i]]], np.sqrt(weight[i])
            head = heads[arm[i]]
            add_moments(head, head[SUM_W], weight[i], reward[i], 0.0, 0.0, 0.0)
            head[SUM_W] += weight[i]
            at[group[i]] += 1
            for j in range(d):
                row[j] = root * (x[i, j] - origin[arm[i], j])
            for j in range(d, D):
                row[j] = root
            row[D] = root * (reward[i] - shift[arm[i]])


@njit(cache=True)
def solve_sums(arm, settings, always):
    """Set λ, the weights' divisor, P, θ and the noise from the arm's sums; return whether it did.

    A rough factorisation is taken `always`, or where λ or the divisor change (`linear.settle`).
    """
    work = np.empty(scratch(settings))
    settle_weights(arm, settings, work)
    rough = factorise(arm, settings, work) < ROUGH
    if rough and not always and settings[FOLDS] == 0 and settings[NORMALIZE] == 0:
        return False
    invert_and_solve(arm, settings, work)
    set_noise(arm, settings)
    return True
