"""The information root of a weighted regression, B = U'DU and b = U'Dt: (3) of mathematics.md.

U is upper triangular with 1 on its diagonal, and D = diag(d): R = √D U is the root of B = R'R, and
no square root is taken. The coefficients θ = B⁻¹b solve Uθ = t. With U'h = z the mean reward z'θ is
h't, and z'B⁻¹z is Σ h²/d. A row z with reward r and weight w is rotated in by Givens rotations
without square roots (Gentleman 1973, Journal of the Institute of Mathematics and its Applications
12, 329–336), which keep their digits whatever the scales: B is never formed, or divided by.

Rows of U are taken four at a time, so that x or h is read and written once for all four.
"""

from bayesbandit.kernels.algebra.dense import LOST_PIVOT, add_scaled, dot
from bayesbandit.kernels.algebra.dots import four_dots
from bayesbandit.kernels.arm import stride
from bayesbandit.runtime.compiling import njit

MIN_PRECISION = 1e-300  # d of a direction about which nothing is known
MAX_VARIANCE = 1e250  # a variance beyond which nothing is known

compiled = njit(cache=True, error_model="numpy")


@compiled
def pivot(d, t, k, p, w, y):
    """Eliminate the entry p in column k of a row with weight w and reward y. Return c and s, by
    which row k of U is mixed with the rest of the row, and what is left of w and y."""
    # d_k becomes d_k + w p², and the row's share of the average is s = w p / (d_k + w p²)
    s = w * p
    new = d[k] + s * p
    # with u = row k of U, u_k = 1 and u⁺ = c u + s x, the row changes B by w xx' because
    # d uu' + w xx' = d⁺ u⁺u⁺' + c w (x − p u)(x − p u)', whose last vector is 0 in column k.
    # Where d_k was 0, c is 0: row k becomes x/p, and no weight of the row is left
    inverse = 1.0 / new
    c = d[k] * inverse
    s = s * inverse
    d[k] = new
    # what θ as it was does not explain of the reward, once column k is eliminated
    left = y - p * t[k]
    t[k] = c * t[k] + s * y
    return c, s, c * w, left


@compiled
def mix(u, j, x, c, s, p):
    """Make u_j the average c u_j + s x; return x − p u_j."""
    left = x - p * u[j]
    u[j] = c * u[j] + s * x
    return left


@compiled
def rotate_in(arm, x, y, w, first):
    """Add a row x (stride,) with reward y and weight w; return what the loss grows by.

    x begins with `first` zeros, and is overwritten. A weight below 0 takes a row out again.

    At pivot k the row's p = x_k is eliminated: d_k becomes d_k + w p², row k of U and t the average
    c u + s x with c = d_k/(d_k + w p²) and s = w p/(d_k + w p²), x becomes x − p u, and w c w.
    """
    d = arm.d
    t = arm.t
    D = arm.d.size
    M = x.size
    blocks = D - D % 4
    for k in range(first - first % 4, blocks, 4):
        start = k * M
        end = (k + 4) * M
        u0 = arm.U[start : start + M]
        u1 = arm.U[start + M : start + 2 * M]
        u2 = arm.U[start + 2 * M : end - M]
        u3 = arm.U[end - M : end]
        # Row k + 1 of U can be mixed only with what row k has left of x. So a triangle of 4 × 4
        # entries comes first, for the four pivots; then all four rows pass over the rest at once.
        p0 = x[k]
        c0, s0, w, y = pivot(d, t, k, p0, w, y)
        p1 = mix(u0, k + 1, x[k + 1], c0, s0, p0)
        x2 = mix(u0, k + 2, x[k + 2], c0, s0, p0)
        x3 = mix(u0, k + 3, x[k + 3], c0, s0, p0)
        c1, s1, w, y = pivot(d, t, k + 1, p1, w, y)
        p2 = mix(u1, k + 2, x2, c1, s1, p1)
        x3 = mix(u1, k + 3, x3, c1, s1, p1)
        c2, s2, w, y = pivot(d, t, k + 2, p2, w, y)
        p3 = mix(u2, k + 3, x3, c2, s2, p2)
        c3, s3, w, y = pivot(d, t, k + 3, p3, w, y)
        u0 = u0[k + 4 :]
        u1 = u1[k + 4 :]
        u2 = u2[k + 4 :]
        u3 = u3[k + 4 :]
        rest = x[k + 4 :]
        # x ← x − p u and u ← c u + s x, for four rows of U in turn
        for j in range(rest.size):
            z = mix(u0, j, rest[j], c0, s0, p0)
            z = mix(u1, j, z, c1, s1, p1)
            z = mix(u2, j, z, c2, s2, p2)
            rest[j] = mix(u3, j, z, c3, s3, p3)
    for k in range(max(blocks, first), D):
        row = arm.U[k * M : (k + 1) * M]
        p = x[k]
        c, s, w, y = pivot(d, t, k, p, w, y)
        for j in range(k + 1, D):
            x[j] = mix(row, j, x[j], c, s, p)
    # the row is eliminated: what is left of its reward is a residual that no θ explains
    return w * y * y


@compiled
def rotate_rows(arm, d, t, U, weight, work):
    """Add the rows of another root, each with this weight times its own; return what the loss grows
    by. work (stride,) is scratch.

    So two roots become one, a prior comes back as rows fade, and the one that is there twice goes.
    """
    D = d.size
    loss = 0.0
    M = stride(D)
    x = work[:M]
    for i in range(D):
        row = U[i * M : (i + 1) * M]
        for j in range(M):
            x[j] = row[j]
        # B = Σ_i d_i u_i u_i': row i of U is an observation of t_i with weight d_i, and has i zeros
        loss += rotate_in(arm, x, t[i], weight * d[i], i)
    return loss


@compiled
def factor(arm, rr):
    """Factor B = U'DU in place, whose upper triangle U holds, and b = U'Dt, which t holds; return
    the loss rr − b'B⁻¹b.

    A pivot below the share LOST_PIVOT · D of its diagonal entry is rounding, and so is the rest of
    its row: the pivot is lifted to that share, and the rest is set to 0. (Divided by so small a
    pivot, rounding would grow from row to row without bound.) So columns that are copies of each
    other at a scale that swamps λ keep a finite, tiny precision.
    """
    d = arm.d
    t = arm.t
    U = arm.U
    D = arm.d.size
    M = stride(D)
    for j in range(D):
        # until its turn comes, d_j holds the smallest pivot that is not rounding
        d[j] = max(LOST_PIVOT * D * U[j * M + j], MIN_PRECISION)
    for j in range(D):
        row = U[j * M : (j + 1) * M]
        is_lost = row[j] <= d[j]
        if not is_lost:
            d[j] = row[j]
        # U'Dt = b, row by row: t_j = (b_j − Σ_{i<j} u_ij d_i t_i) / d_j, and b'B⁻¹b = Σ d_j t_j²
        t[j] /= d[j]
        rr -= t[j] * t[j] * d[j]
        row[j] = 1.0
        # the Schur complement: B_ki ← B_ki − B_jk B_ji / d_j, and b_k ← b_k − B_jk t_j
        for k in range(j + 1, D):
            if is_lost:
                row[k] = 0.0
            u = row[k]
            add_scaled(U[k * M + k : k * M + D], -(u / d[j]), row[k:])
            t[k] -= u * t[j]
        for k in range(j + 1, D):
            row[k] /= d[j]
    # min over θ of rr − 2b'θ + θ'Bθ, a sum of squares: below 0 only by rounding
    return max(rr, 0.0)


@compiled
def solve_half(arm, z, h):
    """Fill h (stride,) with U'⁻¹(z − origin)."""
    D, M = z.size, h.size
    blocks = D - D % 4
    # U'h = z − origin, from above: h_i = z_i − origin_i − Σ_{k<i} u_ki h_k
    for i in range(D):
        h[i] = z[i] - arm.origin[i]
    for i in range(D, M):
        h[i] = 0.0
    for k in range(0, blocks, 4):
        start = k * M + k
        end = (k + 4) * M
        u0 = arm.U[start : start + M - k]
        u1 = arm.U[start + M : end - 2 * M]
        u2 = arm.U[start + 2 * M : end - M]
        u3 = arm.U[start + 3 * M : end]
        rest = h[k:]
        # a 4 × 4 triangle, then its four rows are subtracted from all that follow
        h0 = rest[0]
        h1 = rest[1] - u0[1] * h0
        h2 = (rest[2] - u0[2] * h0) - u1[2] * h1
        h3 = ((rest[3] - u0[3] * h0) - u1[3] * h1) - u2[3] * h2
        rest[1] = h1
        rest[2] = h2
        rest[3] = h3
        u0 = u0[4:]
        u1 = u1[4:]
        u2 = u2[4:]
        u3 = u3[4:]
        rest = rest[4:]
        for j in range(rest.size):
            rest[j] -= (u0[j] * h0 + u1[j] * h1) + (u2[j] * h2 + u3[j] * h3)
    for k in range(blocks, D):
        add_scaled(h[k + 1 : D], -h[k], arm.U[k * M + k + 1 : (k + 1) * M])


@compiled
def mean_and_variance(arm, z, h):
    """Return z'θ, without the shift of the rewards, and z'B⁻¹z; h (stride,) is scratch."""
    solve_half(arm, z, h)
    d = arm.d
    t = arm.t
    D = z.size
    blocks = D - D % 4
    v0 = 0.0
    v1 = 0.0
    v2 = 0.0
    v3 = 0.0
    # z'θ = Σ h_k t_k and z'B⁻¹z = Σ h_k² / d_k, (3), in four running sums each, which vectorise
    for k in range(0, blocks, 4):
        h0 = h[k]
        h1 = h[k + 1]
        h2 = h[k + 2]
        h3 = h[k + 3]
        v0 += h0 * h0 / d[k]
        v1 += h1 * h1 / d[k + 1]
        v2 += h2 * h2 / d[k + 2]
        v3 += h3 * h3 / d[k + 3]
    for k in range(blocks, D):
        v0 += h[k] * h[k] / d[k]
    return dot(t, h), (v0 + v1) + (v2 + v3)


@compiled
def coefficients(arm, theta):
    """Return θ (D,), without the shift of the rewards; theta (stride,) is filled with it."""
    U = arm.U
    t = arm.t
    D = arm.d.size
    M = theta.size
    blocks = D - D % 4
    for k in range(M):
        theta[k] = 0.0
    # Uθ = t, from below: θ_k = t_k − Σ_{j>k} u_kj θ_j
    for k in range(D - 1, blocks - 1, -1):
        theta[k] = t[k]
        for j in range(k + 1, D):
            theta[k] -= U[k * M + j] * theta[j]
    for k in range(blocks - 4, -1, -4):
        # what has been solved below, for four rows at once; θ is still 0 within the block
        s0, s1, s2, s3 = four_dots(U, theta, k * M, M, (k + 4) // 8 * 8, M)
        u = U[k * M + k :]
        h3 = t[k + 3] - s3
        h2 = (t[k + 2] - s2) - u[2 * M + 3] * h3
        h1 = ((t[k + 1] - s1) - u[M + 3] * h3) - u[M + 2] * h2
        h0 = (((t[k] - s0) - u[3] * h3) - u[2] * h2) - u[1] * h1
        theta[k] = h0
        theta[k + 1] = h1
        theta[k + 2] = h2
        theta[k + 3] = h3
    return theta[:D]


@compiled
def walk(arm, step, S):
    """Add step · I to the covariance B⁻¹, where θ has moved; S (D · stride,) is scratch.

    With D⁻¹ + step UU' = VΓV', V upper triangular with 1 on its diagonal, (B⁻¹ + step I)⁻¹ is
    U'V'⁻¹Γ⁻¹V⁻¹U: U becomes V⁻¹U, t V⁻¹t and d Γ⁻¹. S has the rows of V'.
    """
    d = arm.d
    t = arm.t
    U = arm.U
    D = arm.d.size
    M = stride(D)
    blocks = D - D % 4
    # the lower triangle of S = D⁻¹ + step UU': (UU')_ji for i ≤ j, from row j of U on
    for j in range(D):
        row = S[j * M : (j + 1) * M]
        own = U[j * M : (j + 1) * M]
        for i in range(0, min(j + 1, blocks), 4):
            s0, s1, s2, s3 = four_dots(U, own, i * M, M, j // 8 * 8, M)
            row[i] = s0
            row[i + 1] = s1
            row[i + 2] = s2
            row[i + 3] = s3
        for i in range(blocks, j + 1):
            row[i] = dot(U[i * M : (i + 1) * M], own)
        for i in range(j + 1):
            row[i] *= step
        row[j] += 1.0 / d[j]
    # S = VΓV' from the last column upwards: γ_j is the pivot, v_ij = S_ij / γ_j, and V⁻¹ is
    # applied to U and t as it is found: row i loses v_ij times row j
    for j in range(D - 1, -1, -1):
        v = S[j * M : j * M + j]
        gamma = S[j * M + j]
        uj = U[j * M + j : (j + 1) * M]
        d[j] = 1.0 / gamma
        for i in range(j):
            c = v[i] / gamma
            add_scaled(S[i * M : i * M + i + 1], -c, v)
            add_scaled(U[i * M + j : (i + 1) * M], -c, uj)
            t[i] -= c * t[j]
