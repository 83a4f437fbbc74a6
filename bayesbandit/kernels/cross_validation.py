"""The penalty λ of one arm's ridge regression by K-fold cross-validation, from fold statistics:
(2) of mathematics.md."""

import numpy as np

from bayesbandit.kernels.algebra.dense import add_scaled, copy_into, dot
from bayesbandit.kernels.arm import GRID, arm_of, core_width, named, stride, sums_of
from bayesbandit.kernels.root import coefficients, factor
from bayesbandit.runtime.compiling import njit

ALL_ROWS = np.int64(-1)  # no fold is left out
LEAST_DOUBT = 1e-12  # of an error, as a share of Σwr²
# times D and how much a pivot cancels: the rounding of θ
PIVOT_ROUNDING = 4.0 * np.finfo(np.float64).eps


@njit(cache=True)
def put_system(arm, settings, without, lam, out):
    """Fill U and t of an arm with X'WX + λI and X'Wr, for `root.factor`: of the rows that are in
    the sums of `arm`, except those of one fold."""
    setting = named(settings)
    D = arm.d.size
    M = stride(D)
    penalised = int(setting.penalised)
    weight_divisor = arm.head.weight_divisor
    sums = sums_of(arm, int(setting.folds))
    copy_into(out.U, sums.G)
    for i in range(D):
        row = out.U[i * M : (i + 1) * M]
        out.t[i] = sums.b[i]
        if without >= 0:
            # the others' statistics are the totals less the fold's own
            fold = sums.folds[without]
            out.t[i] -= fold[2 + i]
            add_scaled(row[i:D], -1.0, fold[2 + D + i * D + i :])
        out.t[i] /= weight_divisor
        for j in range(D):
            # B is symmetric: the upper triangle is enough
            row[j] = row[j] / weight_divisor if j >= i else 0.0
        if i < penalised:
            row[i] += lam


@njit(cache=True)
def scratch(settings):
    """Return how many numbers of scratch `cross_validated` takes."""
    D = int(named(settings).columns)
    return core_width(D) + 2 * stride(D) + 2 * (settings.size - GRID)


@njit(cache=True)
def cross_validated(arm, settings, work):
    """Return the λ of the grid with the smallest K-fold squared error, exactly; work (scratch,).

    A fold's error at θ, from the other folds' rows, is Σwr² − 2θ'b_f + θ'G_fθ. A tie, as near as
    rounding lets one tell, goes to the larger λ. A small λ may be all that a pivot has left: a
    pivot that is a share 1/c of its diagonal entry has lost as many digits as c has, and so have θ
    and the error.
    """
    D = arm.d.size
    M = stride(D)
    K = int(named(settings).folds)
    grid = settings[GRID:]
    m = grid.size
    folds = sums_of(arm, K).folds
    core = core_width(D)
    other = arm_of(work[:core], D)
    theta = work[core : core + M]
    entry = work[core + M : core + M + D]
    error = work[core + 2 * M : core + 2 * M + m]
    doubt = work[core + 2 * M + m : core + 2 * M + 2 * m]
    for k in range(m):
        error[k] = 0.0
        doubt[k] = LEAST_DOUBT
    for f in range(K):
        n = folds[f, 0]
        rr = folds[f, 1]
        if n == 0.0 or n == arm.head.n:
            continue  # nothing to test, or nothing to train on: no λ is better than another
        b = folds[f, 2 : 2 + D]
        G = folds[f, 2 + D :]
        for k in range(m):
            put_system(arm, settings, f, grid[k], other)
            for i in range(D):
                entry[i] = other.U[i * M + i]
            # its loss is of no use here: folds are judged by rows that they have not seen
            factor(other, 0.0)
            coefficients(other, theta)
            error[k] += rr
            for i in range(D):
                # Σ_i θ_i ((G_f θ)_i − 2 b_i)
                error[k] += theta[i] * (dot(G[i * D : (i + 1) * D], theta) - 2.0 * b[i])
                # c = B_ii/d_i: the pivot d_i is B_ii less what other columns explain of it
                doubt[k] = max(doubt[k], PIVOT_ROUNDING * D * (entry[i] / other.d[i]))
    best = 0
    for k in range(1, m):
        # the grid falls: a smaller λ must be better by more than rounding
        # doubts are shares of Σwr², the error of θ = 0
        if error[k] < error[best] - (doubt[k] + doubt[best]) * arm.head.sum_wrr:
            best = k
    return grid[best]
