"""Small systems of equations side by side: L of them stand in the last axis of their arrays, so
that a loop over lanes vectorises where one along a short row would not.
"""

import numpy as np

from bayesbandit.kernels.algebra.dense import LOST_PIVOT, copy_into
from bayesbandit.runtime.compiling import njit


@njit(cache=True)
def factor(A, diagonal):
    """Factor L matrices A = U'U in place in the upper triangles of A (D, D, L), with 1/pivot on
    their diagonals; diagonal (D, L) is scratch. What rounding has lost is as in `root.factor`.
    """
    D, L = diagonal.shape
    lost = LOST_PIVOT * D
    for j in range(D):
        copy_into(diagonal[j], A[j, j])
    for j in range(D):
        pivot = A[j, j]
        scale = diagonal[j]
        for p in range(L):
            square = pivot[p]
            smallest = lost * scale[p]
            # a lost pivot is lifted, and the rest of its row is set to 0
            pivot[p] = 1.0 / np.sqrt(max(square, smallest, 1e-300))
            scale[p] = pivot[p] if square > smallest else 0.0
        for i in range(j + 1, D):
            for p in range(L):
                A[j, i, p] *= scale[p]
        # A_ki ← A_ki − U_jk U_ji
        for k in range(j + 1, D):
            c = A[j, k]
            for i in range(k, D):
                subtract(A[k, i], c, A[j, i])


@njit(cache=True)
def solve(U, b):
    """Solve in place: b ← (U'U)⁻¹ b, by what `factor` left in U; b (D, L)."""
    D = b.shape[0]
    # U'y = b from above, then Ub = y from below; the diagonal holds 1/pivot
    for j in range(D):
        multiply(b[j], U[j, j])
        for i in range(j + 1, D):
            subtract(b[i], b[j], U[j, i])
    for j in range(D - 1, -1, -1):
        for i in range(j + 1, D):
            subtract(b[j], b[i], U[j, i])
        multiply(b[j], U[j, j])


@njit(cache=True)
def multiply(v, a):
    """Multiply v (L,) by a, lane by lane."""
    for p in range(v.size):
        v[p] *= a[p]


@njit(cache=True)
def subtract(v, a, b):
    """Subtract a b from v (L,), lane by lane."""
    for p in range(v.size):
        v[p] -= a[p] * b[p]
