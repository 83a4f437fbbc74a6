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
def symmetric_times(P, z, v):
    """Fill v with P z, four rows at a time, for symmetric P stored row after row, each as long as
    v.

    v may be longer than z. Behind z's length P's rows are zero, and so is v.
    """
    D, M = z.size, v.size
    v[:] = 0.0
    blocks = D - D % 4
    for j in range(0, blocks, 4):
        z0, z1, z2, z3 = z[j], z[j + 1], z[j + 2], z[j + 3]
        start = j * M
        p0, p1 = P[start : start + M], P[start + M : start + 2 * M]
        p2, p3 = P[start + 2 * M : start + 3 * M], P[start + 3 * M : start + 4 * M]
        for i in range(M):
            v[i] += (p0[i] * z0 + p1[i] * z1) + (p2[i] * z2 + p3[i] * z3)
    for j in range(blocks, D):
        zj, pj = z[j], P[j * M : (j + 1) * M]
        for i in range(M):
            v[i] += pj[i] * zj


@njit(cache=True)
def half_times(P, z, v):
    """Fill v so that z'v = z'Pz: from the blocks of four on P's diagonal and, doubled, those below
    it.

    P is stored as for `symmetric_times`. This is half the memory traffic, which is the cost of a
    large P.
    """
    D, M = z.size, v.size
    v[:] = 0.0
    blocks = D - D % 4
    for j in range(0, blocks, 4):
        z0, z1, z2, z3 = z[j], z[j + 1], z[j + 2], z[j + 3]
        y0, y1, y2, y3 = 2.0 * z0, 2.0 * z1, 2.0 * z2, 2.0 * z3
        start, end = j * M, j * M + j
        p0, p1 = P[start : end + 4], P[start + M : end + M + 4]
        p2, p3 = P[start + 2 * M : end + 2 * M + 4], P[start + 3 * M : end + 3 * M + 4]
        before, block = v[:j], v[j : j + 4]
        for i in range(j):
            before[i] += (p0[i] * y0 + p1[i] * y1) + (p2[i] * y2 + p3[i] * y3)
        for i in range(4):
            block[i] += (p0[j + i] * z0 + p1[j + i] * z1) + (p2[j + i] * z2 + p3[j + i] * z3)
    for j in range(blocks, D):
        pj, before = P[j * M : j * M + j + 1], v[:j]
        yj = 2.0 * z[j]
        for i in range(j):
            before[i] += pj[i] * yj
        v[j] += pj[j] * z[j]


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


@njit(cache=True)
def invert(U, P):
    """Fill P with (U'U)⁻¹: first W = U'⁻¹ row by row, then U P = W from the last row up."""
    D = U.shape[0]
    P[:] = 0.0
    for j in range(D):
        row = P[j]
        for k in range(j):
            c, above = U[k, j], P[k]
            for i in range(k + 1):
                row[i] -= c * above[i]
        row[j] += 1.0
        for i in range(j + 1):
            row[i] /= U[j, j]
    for j in range(D - 1, -1, -1):
        row = P[j]
        for k in range(j + 1, D):
            c, below = U[j, k], P[k]
            for i in range(D):
                row[i] -= c * below[i]
        for i in range(D):
            row[i] /= U[j, j]
    for j in range(D):
        for i in range(j):
            P[i, j] = P[j, i]
