"""The origin from which an arm's contexts are measured, where an intercept takes up any shift.

x'β + c = (x − o)'β + (c + o'β), and a flat prior of the intercept is the same about any origin o.
So an arm with an unpenalised intercept keeps its sums, θ and P about its first context, exactly.
Of large contexts that differ by little (years, prices, timestamps) the differences would drown in
sums of squares about 0, and z'Pz in terms that cancel.
"""

import numpy as np

from bayesbandit.kernels.algebra.dense import add_scaled
from bayesbandit.kernels.ridge_state import (
    D_,
    FOLDS,
    G_of,
    N,
    b_of,
    fold_of,
    matrix,
    origin_of,
)
from bayesbandit.runtime.compiling import njit


@njit(cache=True)
def measured(arm, z, out):
    """Fill out (D,) with z less the arm's origin, and return it."""
    origin = origin_of(arm, z.size)
    for i in range(z.size):
        out[i] = z[i] - origin[i]
    return out


@njit(cache=True)
def measured_to_learn(arm, z, out):
    """Do as `measured`; the first row of an arm is its origin."""
    if arm[N] == 0.0:
        origin = origin_of(arm, z.size)
        for i in range(z.size - 1):
            origin[i] = z[i]
    return measured(arm, z, out)


@njit(cache=True)
def recentre(arm, settings):
    """Move the origin to the weighted mean of the contexts, where rows fade: those of now may be
    far from the first one."""
    D = int(settings[D_])
    origin, G, b = origin_of(arm, D), matrix(G_of(arm, D), D), b_of(arm, D)
    if not G[D - 1, D - 1] > 0.0:
        return
    step = np.empty(D)
    for i in range(D):
        before = origin[i]
        if i < D - 1:
            origin[i] += G[i, D - 1] / G[D - 1, D - 1]
        step[i] = origin[i] - before
    move(G, b, step)
    for f in range(int(settings[FOLDS])):
        fold = fold_of(arm, D, f)
        move(fold[2 + D :].reshape(D, D), fold[2 : 2 + D], step)


@njit(cache=True)
def move(G, b, step):
    """Change X'WX and X'Wr of rows z, which end with 1, to those of rows z − step; step ends with
    0: first the columns, then the rows."""
    D = b.size
    for i in range(D):
        last = G[i, D - 1]
        for j in range(D - 1):
            G[i, j] -= last * step[j]
    for i in range(D - 1):
        add_scaled(G[i], -step[i], G[D - 1])
        b[i] -= step[i] * b[D - 1]
