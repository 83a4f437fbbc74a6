"""Arms that share coefficients, compared by joint draws: mean rewards x'θ, one θ for all arms.

A decision shifts S quasi-random points by a digital shift of its own, takes one of them at random,
and the arm that is best under it. The share of its S points under which an arm is best is therefore
the arm's exact probability given the shift, whether it is asked for or not. A shifted point is
uniform, so that the share is Thompson sampling's probability on average over shifts, and no arm is
impossible (Owen 1995; L'Ecuyer and Lemieux 2002).

A point is kept by its cells: coordinate j is in [c/S, (c + 1)/S) for c = cells[j, s], and each j
has a point in each of the S cells. The shift takes c to c ⊕ h, and to a place f within that cell.
"""

import math

import numpy as np

from bayesbandit.kernels.algebra.dense import add_scaled
from bayesbandit.kernels.conjugate.families import seeded, uniform
from bayesbandit.kernels.row_layout import TABULATED, record, row_of
from bayesbandit.kernels.selection import below, is_short, normal
from bayesbandit.kernels.student import normal_cdf
from bayesbandit.kernels.uncounted_arrays import keep_alive, unmanaged
from bayesbandit.runtime.compiling import njit

EDGE_CELLS = 4  # cells at each end where a cubic errs; elsewhere by less than 1e-7 in Φ
POINT_BLOCK = 64  # points that are compared at a time
MAX_NORMAL = 9.0  # of normals: no point is beyond, as its cells are


@njit(cache=True)
def lower_quantile(u):
    """Return Φ⁻¹(u) for 0 < u < ½, by Newton's method for log Φ: it is concave, so that no step
    from below overshoots."""
    # Φ(z) < exp(−z²/2)/2 for z < 0, so that this is below the root
    z = -math.sqrt(-2.0 * math.log(u))
    for _ in range(50):
        # z ← z + (log u − log Φ(z)) Φ(z)/φ(z)
        p = normal_cdf(z)
        step = math.log(u / p) * p * math.sqrt(2.0 * math.pi) * math.exp(0.5 * z * z)
        z += step
        if abs(step) < 1e-9:
            break
    return z


@njit(cache=True)
def normal_in(cell, within, normals):
    """Return Φ⁻¹((cell + within)/S). normals (S, 4): a cubic in each cell, highest power first."""
    S = normals.shape[0]
    # Φ⁻¹ is too steep at 0 and 1 for a cubic; the upper end is the mirrored lower one
    if cell < EDGE_CELLS:
        return lower_quantile((cell + within) / S)
    if cell >= S - EDGE_CELLS:
        return -lower_quantile((S - 1 - cell + 1.0 - within) / S)
    # Horner's rule in the place within the cell
    z = normals[cell, 0]
    for power in range(1, 4):
        z = z * within + normals[cell, power]
    return z


@njit(cache=True)
def next_shift(state, S):
    """Return a coordinate's shift: a mask for cells, a place within them, and the next state."""
    u, state = uniform(state)
    u = min(u, 1.0 - 2.0**-53)  # rounding may bring it to 1
    # S is a power of 2: the first bits of u are the mask, and the others the place in a cell
    mask = int(u * S)
    return mask, u * S - mask, state


@njit(cache=True)
def width_at(z, log_width):
    """Return the width of a point whose last normal is z. log_width (4, N): a cubic in each of N
    steps from −MAX_NORMAL to MAX_NORMAL; (4, 0): 1."""
    N = log_width.shape[1]
    if N == 0:
        return 1.0
    # in which step of width 2 · 9/N the normal lies, and how far along
    along = (min(max(z, -MAX_NORMAL), MAX_NORMAL) + MAX_NORMAL) * (N / (2.0 * MAX_NORMAL))
    step = min(int(along), N - 1)
    value = log_width[0, step]
    for power in range(1, 4):
        value = value * (along - step) + log_width[power, step]
    return math.exp(min(value, 200.0))


@njit(cache=True)
def put_noise(seed, cells, first, normals, log_width, alpha, spread, noise):
    """Put points of cells (P + 1, S), from the first on, as normals into noise (P + 1, m), and α
    times their widths into spread (m,). The seed is that of the shift of all points."""
    P = noise.shape[0] - 1
    state = seeded(seed)
    for j in range(P + 1):
        # one shift for all points: cell c goes to c ⊕ mask, which keeps each cell's one point
        mask, within, state = next_shift(state, cells.shape[1])
        for s in range(spread.size):
            noise[j, s] = normal_in(cells[j, first + s] ^ mask, within, normals)
    for s in range(spread.size):
        # of Student's t, √(ν/χ²) is common to all coordinates of a point
        spread[s] = alpha * width_at(noise[P, s], log_width)


@njit(cache=True)
def put_theta(location, axes, noise, spread, theta):
    """Put location + spread · axes'ε into theta (d, m), for the ε of noise (P + 1, m)."""
    noise = unmanaged(noise)
    theta = unmanaged(theta)
    for i in range(theta.shape[0]):
        coordinate = theta[i]
        coordinate[:] = 0.0
        for j in range(axes.shape[0]):
            if axes[j, i] != 0.0:  # of a `Joint` most are 0
                add_scaled(coordinate, axes[j, i], noise[j])
        for s in range(spread.size):
            # θ_i = location_i + α width_s Σ_j axes_ji ε_js
            coordinate[s] = location[i] + spread[s] * coordinate[s]


@njit(cache=True)
def winner(scores, stream):
    """Return the arm with the largest score; a tie is broken evenly."""
    best = -np.inf
    ties = 0
    for k in range(scores.size):
        # how many arms have the largest score; the first pass needs no random number
        if scores[k] > best:
            best = scores[k]
            ties = 1
        elif scores[k] == best:
            ties += 1
    skip = below(ties, stream) if ties > 1 else 0
    for k in range(scores.size):
        if scores[k] == best:
            if skip == 0:
                return k
            skip -= 1
    return -1


@njit(cache=True)
def wins(x, theta):
    """Return the number of points θ, of theta (d, S), under which each arm of rows x (A, d) is
    best, (A,); a tie is split evenly."""
    x = unmanaged(x)
    theta = unmanaged(theta)
    A = x.shape[0]
    out = np.zeros(A)
    memory = np.empty((A, POINT_BLOCK)), np.empty(POINT_BLOCK), np.empty(POINT_BLOCK)
    # of each point of a block: all x'θ, the largest, and how many arms have it
    scores, best, ties = unmanaged(memory)
    for start in range(0, theta.shape[1], POINT_BLOCK):
        m = min(POINT_BLOCK, theta.shape[1] - start)
        best[:] = -np.inf
        ties[:] = 0.0
        for a in range(A):
            score = scores[a][:m]
            score[:] = 0.0
            for i in range(x.shape[1]):
                add_scaled(score, x[a, i], theta[i, start : start + m])
            for b in range(m):
                best[b] = max(best[b], score[b])
        for a in range(A):
            score = scores[a]
            for b in range(m):
                ties[b] += score[b] == best[b]
        for a in range(A):
            score = scores[a]
            for b in range(m):
                if score[b] == best[b]:
                    out[a] += 1.0 / ties[b]
    keep_alive(memory)
    return out


@njit(cache=True)
def choose_jointly(
    rows, start, D, K, needed, arms, x, location, axes, seeds, cells, normals, log_width, alpha,
    floor, stream,
):  # fmt: skip
    """Decide for rows (n, width) from `start` on among the arms of these numbers (A,), with rows x
    (n, A, d), until the stream runs short; return the next row to do.

    θ = location + α width · axes'ε, axes (P, d). needed: for how many arms the stream must have
    random numbers. cells (P + 1, S): of the points. normals, log_width: see `normal_in` and
    `width_at`. alpha and floor (n,). It fills seeds (n,).
    """
    rows = unmanaged(rows)
    x = unmanaged(x)
    stream = unmanaged(stream)
    A = arms.size
    P, d = axes.shape
    memory = np.empty(A), np.empty((P + 1, 1)), np.empty(1), np.empty((d, 1))
    scores, noise, spread, theta = unmanaged(memory)
    i = start
    while i < rows.shape[0] and not is_short(stream, needed):
        # by its seed the shift, and with it every arm's share of the points, can be computed again
        seeds[i] = normal(stream)
        # with probability Af any arm, (5); else the best under one shifted point
        if floor[i] > 0.0 and normal_cdf(normal(stream)) < A * floor[i]:
            k = below(A, stream)
        else:
            s = below(cells.shape[1], stream)
            put_noise(seeds[i], cells, s, normals, log_width, alpha[i], spread, noise)
            put_theta(location, axes, noise, spread, theta)
            for a in range(A):
                scores[a] = 0.0  # x'θ, in the order of `wins`
                for j in range(d):
                    scores[a] += x[i, a, j] * theta[j, 0]
            k = winner(scores, stream)
        record(row_of(rows[i], D, K), arms[k], TABULATED, alpha[i], floor[i])
        i += 1
    stream[-1] += i - start
    keep_alive(memory)
    return i
