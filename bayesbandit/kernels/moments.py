"""Mean and scale of an arm's mean reward (`kernels/root.py`)."""

import numpy as np

from bayesbandit.kernels.algebra.dense import add_scaled
from bayesbandit.kernels.arm import arm_of, stride
from bayesbandit.kernels.root import MAX_VARIANCE, mean_and_variance
from bayesbandit.runtime.compiling import njit


@njit(cache=True)
def moments(numbers, z, D, work):
    """Return mean z'θ and scale √(σ² z'B⁻¹z) of the mean reward at z; work has room for a row."""
    arm = arm_of(numbers, D)
    mean, variance = mean_and_variance(arm, z, work[: stride(D)])
    return mean + arm.head.shift, scale_of(arm.head.sigma2, variance)


@njit(cache=True, inline="always")
def scale_of(sigma2, variance):
    """Return √(σ² z'B⁻¹z), also where the product is beyond float64."""
    if variance > MAX_VARIANCE or sigma2 == np.inf:
        return np.inf
    # the product of the roots is in range where that of the squares is not
    product = sigma2 * variance
    return np.sqrt(product) if product < np.inf else np.sqrt(sigma2) * np.sqrt(variance)


@njit(cache=True, error_model="numpy")
def moments_of_block(numbers, zt, means, scales, work):
    """Fill in `moments`, to the bit, of B contexts, a block zt (D, B); work (D + 8, B) is scratch.

    Every operation of the one-context form is done in its order, along the block.
    """
    D, B = zt.shape
    M = stride(D)
    arm = arm_of(numbers, D)
    blocks = D - D % 4
    h = work[:D]
    m = work[D : D + 4]
    v = work[D + 4 : D + 8]
    for i in range(D):
        for b in range(B):
            # U'h = z − origin, as in `root.solve_half`
            h[i, b] = zt[i, b] - arm.origin[i]
    for k in range(0, blocks, 4):
        # a 4 × 4 triangle, then its four rows are subtracted from all that follow
        for i in range(k + 1, k + 4):
            for j in range(k, i):
                add_scaled(h[i], -arm.U[j * M + i], h[j])
        u0 = arm.U[k * M : (k + 1) * M]
        u1 = arm.U[(k + 1) * M : (k + 2) * M]
        u2 = arm.U[(k + 2) * M : (k + 3) * M]
        u3 = arm.U[(k + 3) * M : (k + 4) * M]
        h0 = h[k]
        h1 = h[k + 1]
        h2 = h[k + 2]
        h3 = h[k + 3]
        for j in range(k + 4, D):
            a0 = u0[j]
            a1 = u1[j]
            a2 = u2[j]
            a3 = u3[j]
            rest = h[j]
            for b in range(B):
                rest[b] -= (a0 * h0[b] + a1 * h1[b]) + (a2 * h2[b] + a3 * h3[b])
    for k in range(blocks, D):
        for j in range(k + 1, D):
            add_scaled(h[j], -arm.U[k * M + j], h[k])
    m[:] = 0.0
    v[:] = 0.0
    # z'θ = Σ h_k t_k and z'B⁻¹z = Σ h_k² / d_k, in the four running sums of the one-context form
    for k in range(D):
        lane = k % 4 if k < blocks else 0
        now = h[k]
        variance = v[lane]
        d = arm.d[k]
        add_scaled(m[lane], arm.t[k], now)
        for b in range(B):
            variance[b] += now[b] * now[b] / d
    sigma2 = arm.head.sigma2
    shift = arm.head.shift
    for b in range(B):
        means[b] = ((m[0, b] + m[1, b]) + (m[2, b] + m[3, b])) + shift
        scales[b] = scale_of(sigma2, (v[0, b] + v[1, b]) + (v[2, b] + v[3, b]))
