"""The origin from which an arm's contexts are measured, where an intercept takes up any shift.

x'β + c = (x − o)'β + (c + o'β), and a flat prior of the intercept is the same about any origin o.
So an arm with an unpenalised intercept keeps all its numbers about its first context, exactly: of
large contexts that differ by little (years, prices, timestamps) the differences keep their digits.
Other arms have the origin 0.
"""

import numpy as np

from bayesbandit.kernels.algebra.dense import add_scaled
from bayesbandit.kernels.arm import stride, sums_of
from bayesbandit.runtime.compiling import njit


@njit(cache=True)
def recentre(arm, folds):
    """Move the origin to the weighted mean of the contexts, where rows fade and sums are kept: the
    contexts of now may be far from the first one, and sums of squares about it lose digits."""
    D, sums = arm.d.size, sums_of(arm, folds)
    M = stride(D)
    last = sums.G[(D - 1) * M : D * M]
    if not last[D - 1] > 0.0:
        return
    step = np.zeros(D)
    for i in range(D - 1):
        before = arm.origin[i]
        arm.origin[i] += last[i] / last[D - 1]
        step[i] = arm.origin[i] - before
    move(sums.G, M, sums.b, step)
    for f in range(folds):
        fold = sums.folds[f]
        move(fold[2 + D :], D, fold[2 : 2 + D], step)


@njit(cache=True)
def move(G, M, b, step):
    """Change X'WX, stored row after row of length M, and X'Wr of rows z, which end with 1, to those
    of rows z − step; step ends with 0: first the columns, then the rows."""
    D = b.size
    for i in range(D):
        row = G[i * M : i * M + D]
        add_scaled(row, -row[D - 1], step)
    last = G[(D - 1) * M : (D - 1) * M + D]
    for i in range(D - 1):
        add_scaled(G[i * M : i * M + D], -step[i], last)
        b[i] -= step[i] * b[D - 1]
