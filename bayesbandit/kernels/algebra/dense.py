"""Small dense linear algebra for the hot loop, on one thread.

Loops run over contiguous rows element by element, so they vectorise without reassociation: a
function gives the same bits wherever it is compiled in.
"""

import numpy as np

from bayesbandit.runtime.compiling import njit

LOST = 1e-13  # times D: the share of a diagonal entry below which a Cholesky pivot is rounding


@njit(cache=True)
def dot(a, b):
    """Return the inner product, in four running sums."""
    n = a.size
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    blocks = n - n % 4
    for i in range(0, blocks, 4):
        s0 += a[i] * b[i]
        s1 += a[i + 1] * b[i + 1]
        s2 += a[i + 2] * b[i + 2]
        s3 += a[i + 3] * b[i + 3]
    for i in range(blocks, n):
        s0 += a[i] * b[i]
    return (s0 + s1) + (s2 + s3)


@njit(cache=True)
def add_scaled(v, c, z):
    """Add c z to v, as far as v goes."""
    for i in range(v.size):
        v[i] += c * z[i]


@njit(cache=True)
def copy_into(v, z):
    """Copy z into v. It compiles sooner than a slice, which may broadcast."""
    for i in range(v.size):
        v[i] = z[i]


@njit(cache=True)
def add_outer(A, M, scale, z):
    """Add scale · z z' to A, stored row after row of length M, as far as z goes."""
    for i in range(A.size // M):
        c, row = scale * z[i], A[i * M : (i + 1) * M]
        for j in range(z.size):
            row[j] += c * z[j]


@njit(cache=True)
def factor(A):
    """Factor A by `factor_by`, with its own scratch."""
    return factor_by(A, np.empty(A.shape[0]))


@njit(cache=True)
def factor_by(A, diagonal):
    """Factor A = U'U in place in the upper triangle; diagonal (D,) is scratch.

    Return the smallest pivot as a share of its diagonal entry. A pivot below the share LOST·D is
    rounding, as is the rest of its row: it is lifted to that share, and the rest is set to 0.
    (Divided by so small a pivot, rounding would grow from row to row without bound.) So columns
    that are copies of each other at a scale that swamps λ keep a finite, tiny precision.
    """
    D = A.shape[0]
    lost, smallest = LOST * D, 1.0
    for j in range(D):
        diagonal[j] = A[j, j]
    for j in range(D):
        row = A[j]
        lifted = max(lost * diagonal[j], 1e-300)
        smallest = min(smallest, row[j] / max(diagonal[j], 1e-300))
        if row[j] <= lifted:
            row[j] = np.sqrt(lifted)
            for i in range(j + 1, D):
                row[i] = 0.0
            continue
        pivot = np.sqrt(row[j])
        row[j] = pivot
        for i in range(j + 1, D):
            row[i] /= pivot
        for k in range(j + 1, D):
            c = row[k]
            below = A[k]
            for i in range(k, D):
                below[i] -= c * row[i]
    return smallest


@njit(cache=True)
def solve(U, b, theta):
    """Fill theta with (U'U)⁻¹ b, by two triangles."""
    D = b.size
    copy_into(theta, b)
    for j in range(D):
        theta[j] /= U[j, j]
        c = theta[j]
        for i in range(j + 1, D):
            theta[i] -= c * U[j, i]
    for j in range(D - 1, -1, -1):
        s = theta[j]
        for i in range(j + 1, D):
            s -= U[j, i] * theta[i]
        theta[j] = s / U[j, j]
