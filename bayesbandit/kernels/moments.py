"""Mean and scale of an arm's mean reward, from the row that keeps it (`kernels/ridge_state.py`)."""

import numpy as np

from bayesbandit.kernels.algebra.dense import dot, half_times
from bayesbandit.kernels.origin import measured
from bayesbandit.kernels.ridge_state import (
    ABOUT_ORIGIN,
    FORM,
    SIGMA2,
    P_of,
    is_rooted,
    matrix,
    stride,
    theta_of,
)
from bayesbandit.runtime.compiling import njit


@njit(cache=True)
def moments(arm, z, D, v):
    """Return mean z'θ and scale √(σ² z'Pz) of the mean reward at z; v (stride,) is scratch."""
    if arm[FORM] > 0.0:
        return moments_by_form(arm, z, D)
    mean = dot(z, theta_of(arm, D))
    if arm[SIGMA2] == np.inf:
        return mean, np.inf
    half_times(P_of(arm, D), z, v)
    return mean, scale_of(arm[SIGMA2], dot(z, v))


@njit(cache=True)
def moments_by_form(arm, z, D):
    """Return `moments` where P is about an origin, or a root R stands in its place."""
    u = np.empty(D)
    if arm[FORM] >= ABOUT_ORIGIN:
        measured(arm, z, u)
    else:
        for i in range(D):
            u[i] = z[i]
    mean = dot(u, theta_of(arm, D))
    if arm[SIGMA2] == np.inf:
        return mean, np.inf
    if is_rooted(arm):
        return mean, scale_of(arm[SIGMA2], by_root(arm, u, D))
    v = np.empty(stride(D))
    half_times(P_of(arm, D), u, v)
    return mean, scale_of(arm[SIGMA2], dot(u, v))


@njit(cache=True, inline="always")
def scale_of(sigma2, q):
    """Return √(σ² q), also where the product is beyond float64."""
    product = sigma2 * q
    return np.sqrt(max(product, 0.0)) if product < np.inf else np.sqrt(sigma2) * np.sqrt(q)


@njit(cache=True)
def by_root(arm, z, D):
    """Return z'Pz = ‖Rz‖² by the root R that stands in the place of P."""
    R, q = matrix(P_of(arm, D), D), 0.0
    for j in range(D):
        u = dot(z, R[j])
        q += u * u
    return q


@njit(cache=True)
def moments_of_block(arm, zt, means, scales, work):
    """Fill in `moments`, to the bit, of a block of B contexts at once: zt (D, B); work (5, B) is
    scratch.

    Every operation of the one-context form is done in its order, along the block.
    """
    D, B = zt.shape
    if arm[FORM] > 0.0:
        for b in range(B):
            means[b], scales[b] = moments_by_form(arm, np.ascontiguousarray(zt[:, b]), D)
        return
    P, theta, v, sums = matrix(P_of(arm, D), D), theta_of(arm, D), work[4], work[:4]
    blocks = D - D % 4
    sums[:] = 0.0
    for i in range(D):
        into = sums[i % 4 if i < blocks else 0]
        for b in range(B):
            into[b] += zt[i, b] * theta[i]
    for b in range(B):
        means[b] = (sums[0, b] + sums[1, b]) + (sums[2, b] + sums[3, b])
    sums[:] = 0.0
    for i in range(D):
        v[:] = 0.0
        for j in range(i - i % 4, blocks, 4):
            twice = 2.0 if j > i else 1.0
            p0, p1, p2, p3 = P[j, i], P[j + 1, i], P[j + 2, i], P[j + 3, i]
            z0, z1, z2, z3 = zt[j], zt[j + 1], zt[j + 2], zt[j + 3]
            for b in range(B):
                v[b] += (p0 * (twice * z0[b]) + p1 * (twice * z1[b])) + (
                    p2 * (twice * z2[b]) + p3 * (twice * z3[b])
                )
        for j in range(max(blocks, i), D):
            p0, z0, twice = P[j, i], zt[j], 2.0 if j > i else 1.0
            for b in range(B):
                v[b] += p0 * (twice * z0[b])
        into = sums[i % 4 if i < blocks else 0]
        for b in range(B):
            into[b] += zt[i, b] * v[b]
    sigma2 = arm[SIGMA2]
    for b in range(B):
        q = (sums[0, b] + sums[1, b]) + (sums[2, b] + sums[3, b])
        scales[b] = np.inf if sigma2 == np.inf else scale_of(sigma2, q)
