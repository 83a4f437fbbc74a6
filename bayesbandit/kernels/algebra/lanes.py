"""Small systems of equations side by side: number i of each of L of them stands in L lanes next to
each other, so that a loop over lanes vectorises where one along a short row would not.
"""

import numpy as np

from bayesbandit.kernels.algebra.dense import LOST_PIVOT, copy_into
from bayesbandit.runtime.compiling import njit


@njit(cache=True)
def lanes(A, i, L):
    """Return the L numbers that stand at place i."""
    return A[i * L : (i + 1) * L]


@njit(cache=True)
def factor(A, diagonal, L):
    """Factor L matrices A = U'U in place in the upper triangles of A (D·D·L,), with 1/pivot on
    their diagonals; diagonal (D·L,) is scratch. What rounding has lost is as in `root.factor`.
    """
    D = diagonal.size // L
    lost = LOST_PIVOT * D
    for j in range(D):
        copy_into(lanes(diagonal, j, L), lanes(A, j * D + j, L))
    for j in range(D):
        pivot = lanes(A, j * D + j, L)
        scale = lanes(diagonal, j, L)
        for p in range(L):
            square = pivot[p]
            smallest = lost * scale[p]
            pivot[p] = 1.0 / np.sqrt(max(square, smallest, 1e-300))
            scale[p] = pivot[p] if square > smallest else 0.0
        for i in range(j + 1, D):
            entry = lanes(A, j * D + i, L)
            for p in range(L):
                entry[p] *= scale[p]
        for k in range(j + 1, D):
            c = lanes(A, j * D + k, L)
            for i in range(k, D):
                below, entry = lanes(A, k * D + i, L), lanes(A, j * D + i, L)
                for p in range(L):
                    below[p] -= c[p] * entry[p]


@njit(cache=True)
def solve(U, b, L):
    """Solve in place: b ← (U'U)⁻¹ b, by what `factor` left in U; b (D·L,)."""
    D = b.size // L
    for j in range(D):
        c = lanes(b, j, L)
        inverse = lanes(U, j * D + j, L)
        for p in range(L):
            c[p] *= inverse[p]
        for i in range(j + 1, D):
            below = lanes(b, i, L)
            entry = lanes(U, j * D + i, L)
            for p in range(L):
                below[p] -= c[p] * entry[p]
    for j in range(D - 1, -1, -1):
        c = lanes(b, j, L)
        inverse = lanes(U, j * D + j, L)
        for i in range(j + 1, D):
            known = lanes(b, i, L)
            entry = lanes(U, j * D + i, L)
            for p in range(L):
                c[p] -= known[p] * entry[p]
        for p in range(L):
            c[p] *= inverse[p]
