"""Small dense linear algebra for the hot loop, on one thread.

Loops run over contiguous rows element by element, so they vectorise without reassociation: a
function gives the same bits wherever it is compiled in.
"""

from bayesbandit.runtime.compiling import njit

LOST_PIVOT = 1e-13  # times D: the share of a diagonal entry below which a pivot is rounding


@njit(cache=True)
def dot(a, b):
    """Return the inner product, in four running sums."""
    n = a.size
    s0 = 0.0
    s1 = 0.0
    s2 = 0.0
    s3 = 0.0
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
def copy_rows(A, B):
    """Copy the rows of B into those of A."""
    for i in range(A.shape[0]):
        copy_into(A[i], B[i])


@njit(cache=True)
def add_outer(A, M, scale, z):
    """Add scale · z z' to A, stored row after row of length M, as far as z goes."""
    for i in range(A.size // M):
        add_scaled(A[i * M : i * M + z.size], scale * z[i], z)
