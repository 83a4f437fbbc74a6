"""The penalty λ of one arm's ridge regression by K-fold cross-validation, from fold statistics:
(2) of mathematics.md."""

import numpy as np

from bayesbandit.kernels.algebra.lanes import factor, solve
from bayesbandit.kernels.arm import GRID, named, stride, sums_of
from bayesbandit.runtime.compiling import njit

LANES_AT_A_TIME = 8  # lanes are filled up to a multiple of it
LEAST_DOUBT = 1e-12  # of an error, as a share of Σwr²
# times D and how much a pivot cancels: the rounding of θ
PIVOT_ROUNDING = 4.0 * np.finfo(np.float64).eps


@njit(cache=True)
def lanes_of(K, m):
    """Return a lane for each of m λ of each of K folds, that of λ k and fold f being f m + k."""
    return -(-K * m // LANES_AT_A_TIME) * LANES_AT_A_TIME


@njit(cache=True)
def scratch(settings):
    """Return how many numbers of scratch `cross_validated` takes."""
    setting = named(settings)
    m = settings.size - GRID
    D, K = int(setting.columns), int(setting.folds)
    return (D * D + 2 * D + 2) * lanes_of(K, m) + 2 * m


@njit(cache=True)
def cross_validated(arm, settings, work):
    """Return the λ of the grid with the smallest K-fold squared error, exactly; work (scratch,).

    A fold's error at θ is Σwr² − 2θ'b_f + θ'G_fθ, and the other folds' statistics, by which θ is
    found, are the totals minus its own. A tie, as near as rounding lets one tell, goes to the
    larger λ. A small λ may be all that a pivot has left: then θ has lost digits, and so has the
    error (`put_doubts`).
    """
    D = arm.d.size
    K = int(named(settings).folds)
    grid = settings[GRID:]
    m = grid.size
    folds = sums_of(arm, K).folds
    L = lanes_of(K, m)
    A = work[: D * D * L].reshape(D, D, L)
    vectors = work[D * D * L :][: (2 * D + 2) * L].reshape(2 * D + 2, L)
    theta, diagonal = vectors[:D], vectors[D : 2 * D]
    half, error = vectors[2 * D], vectors[2 * D + 1]
    total = work[(D * D + 2 * D + 2) * L :][:m]
    doubt = work[(D * D + 2 * D + 2) * L + m :][:m]
    others(arm, settings, A, theta)
    factor(A, diagonal)
    put_doubts(arm, settings, A, doubt)
    solve(A, theta)
    fill(error, 0.0)
    for i in range(D):  # ½ error − ½ Σwr² = Σ_i θ_i (½ G_ii θ_i + Σ_{j>i} G_ij θ_j − b_i)
        coef = theta[i]
        for f in range(K):
            # all λ of a fold side by side
            g = 0.5 * folds[f, 2 + D + i * D + i]
            linear = folds[f, 2 + i]
            for p in range(f * m, f * m + m):
                half[p] = g * coef[p] - linear
        for j in range(i + 1, D):
            other = theta[j]
            for f in range(K):
                g = folds[f, 2 + D + i * D + j]
                for p in range(f * m, f * m + m):
                    half[p] += g * other[p]
        for p in range(K * m):
            error[p] += coef[p] * half[p]
    fill(total, 0.0)
    for f in range(K):
        if folds[f, 0] == 0.0 or folds[f, 0] == arm.head.n:
            continue  # nothing to test, or nothing to train on: no λ is better than another
        for k in range(m):
            # (2), summed over the folds
            total[k] += folds[f, 1] + 2.0 * error[f * m + k]
    best = 0
    for k in range(1, m):
        # the grid falls: a smaller λ must be better by more than rounding
        if total[k] < total[best] - doubt[k] - doubt[best]:
            best = k
    return grid[best]


@njit(cache=True)
def put_doubts(arm, settings, U, out):
    """Fill out (m,) with what rounding may do to the error of each λ, from the factors in U.

    A pivot that is a share 1/c of its diagonal entry has lost as many digits as c has.
    """
    D = arm.d.size
    penalised = int(named(settings).penalised)
    K = int(named(settings).folds)
    M = stride(D)
    grid = settings[GRID:]
    sums = sums_of(arm, K)
    m, folds, G = grid.size, sums.folds, sums.G
    for k in range(m):
        lost = 0.0
        for i in range(D):
            inverse = U[i, i]
            lam = grid[k] if i < penalised else 0.0
            for f in range(K):
                if folds[f, 0] < arm.head.n:
                    # c = the diagonal entry over the pivot, whose root's inverse is in U
                    entry = (G[i * M + i] - folds[f, 2 + D + i * D + i]) / arm.head.w_bar + lam
                    lost = max(lost, entry * inverse[f * m + k] ** 2)
        out[k] = max(LEAST_DOUBT, PIVOT_ROUNDING * D * lost) * arm.head.sum_wrr


@njit(cache=True)
def fill(v, value):
    """Fill v with a value. It compiles sooner than a slice, which may broadcast."""
    for p in range(v.size):
        v[p] = value


@njit(cache=True)
def others(arm, settings, A, b):
    """Compute for each fold and λ, from all rows that are not the fold's: X'WX + λI, its upper
    triangle, in A (D, D, L), and X'Wr in b (D, L)."""
    D = arm.d.size
    penalised = int(named(settings).penalised)
    K = int(named(settings).folds)
    M = stride(D)
    grid = settings[GRID:]
    inverse = 1.0 / arm.head.w_bar
    sums = sums_of(arm, K)
    m, folds, G, rhs = grid.size, sums.folds, sums.G, sums.b
    for i in range(D):
        mine = b[i]
        for f in range(K):
            # totals less the fold's own; a lane that is only padding gets A = 1 and b = 0
            fill(mine[f * m : f * m + m], (rhs[i] - folds[f, 2 + i]) * inverse)
        fill(mine[K * m :], 0.0)
        for j in range(i, D):
            mine = A[i, j]
            g = G[i * M + j]
            for f in range(K):
                fill(mine[f * m : f * m + m], (g - folds[f, 2 + D + i * D + j]) * inverse)
            fill(mine[K * m :], 1.0)
        if i < penalised:
            mine = A[i, i]
            for f in range(K):
                for k in range(m):
                    mine[f * m + k] += grid[k]
