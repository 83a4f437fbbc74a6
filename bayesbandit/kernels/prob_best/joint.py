"""Arms that share coefficients, compared by joint draws: mean rewards m + a ε'F, one ε for all.

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

from bayesbandit.kernels.conjugate.families import seeded, uniform
from bayesbandit.kernels.row_layout import TABULATED, record, row_of
from bayesbandit.kernels.selection import below, is_short, normal
from bayesbandit.kernels.student import normal_cdf
from bayesbandit.kernels.uncounted_arrays import keep_alive, unmanaged
from bayesbandit.runtime.compiling import njit

EDGE_CELLS = 4  # cells at each end where a cubic errs; elsewhere by less than 1e-7 in Φ
POINT_BLOCK = 256  # points that are compared at a time
MAX_NORMAL = 9.0  # of normals: no point is beyond, as its cells are


@njit(cache=True)
def lower_quantile(u):
    """Return Φ⁻¹(u) for 0 < u < ½, by Newton's method for log Φ: it is concave, so that no step
    from below overshoots."""
    z = -math.sqrt(-2.0 * math.log(u))
    for _ in range(50):
        p = normal_cdf(z)
        step = math.log(u / p) * p * math.sqrt(2.0 * math.pi) * math.exp(0.5 * z * z)
        z += step
        if abs(step) < 1e-9:
            break
    return z


@njit(cache=True)
def normal_in(cell, within, normals):
    """Return Φ⁻¹((cell + within)/S). normals (4, S): a cubic in each cell, highest power first."""
    S = normals.shape[1]
    if cell < EDGE_CELLS:
        return lower_quantile((cell + within) / S)
    if cell >= S - EDGE_CELLS:
        return -lower_quantile((S - 1 - cell + 1.0 - within) / S)
    z = normals[0, cell]
    for power in range(1, 4):
        z = z * within + normals[power, cell]
    return z


@njit(cache=True)
def next_shift(state, S):
    """Return a coordinate's shift: a mask for cells, a place within them, and the next state."""
    u, state = uniform(state)
    u = min(u, 1.0 - 2.0**-53)  # rounding may bring it to 1
    mask = int(u * S)
    return mask, u * S - mask, state


@njit(cache=True)
def width_at(z, log_width):
    """Return the width of a point whose last normal is z. log_width (4, N): a cubic in each of N
    steps from −MAX_NORMAL to MAX_NORMAL; (4, 0): 1."""
    N = log_width.shape[1]
    if N == 0:
        return 1.0
    along = (min(max(z, -MAX_NORMAL), MAX_NORMAL) + MAX_NORMAL) * (N / (2.0 * MAX_NORMAL))
    step = min(int(along), N - 1)
    value = log_width[0, step]
    for power in range(1, 4):
        value = value * (along - step) + log_width[power, step]
    return math.exp(min(value, 200.0))


@njit(cache=True)
def put_noise(seed, cells, normals, log_width, alpha, spread, noise):
    """Put the points of cells (P + 1, S), shifted by this seed, as normals into noise (P + 1, S),
    and α times their widths into spread (S,), which is scratch before."""
    P, S = noise.shape
    state = seeded(seed)
    for j in range(P):
        mask, within, state = next_shift(state, S)
        for c in range(S):
            spread[c] = normal_in(c, within, normals)
        for s in range(S):
            noise[j, s] = spread[cells[j, s] ^ mask]
    for s in range(S):
        spread[s] = alpha * width_at(noise[P - 1, s], log_width)


@njit(cache=True)
def put_point(seed, s, cells, normals, noise):
    """Put point s alone into noise (P + 1,), as `put_noise` does."""
    state = seeded(seed)
    for j in range(noise.size):
        mask, within, state = next_shift(state, cells.shape[1])
        noise[j] = normal_in(cells[j, s] ^ mask, within, normals)


@njit(cache=True)
def product(a, b, out):
    """Fill out (n, P) with a (n, D) times b (D, P), each row by the same operations."""
    for i in range(a.shape[0]):
        out[i] = 0.0
        for j in range(a.shape[1]):
            for p in range(b.shape[1]):
                out[i, p] += a[i, j] * b[j, p]


@njit(cache=True)
def put_scores(mean, factor, noise, a, out):
    """Fill out (A,) with the mean rewards of arms with means (A,) and factors (P, A) under one draw
    ε (P,)."""
    out[:] = 0.0
    for j in range(factor.shape[0]):
        for k in range(out.size):
            out[k] += noise[j] * factor[j, k]
    for k in range(out.size):
        out[k] = mean[k] + a * out[k]


@njit(cache=True)
def winner(scores, stream):
    """Return the arm with the largest score; a tie is broken evenly."""
    best = -np.inf
    ties = 0
    for k in range(scores.size):
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
def add_shares(mean, factor, noise, spread, start, scores, best, ties, out):
    """Add to out (A,) the number of points under which each arm is best; a tie is split evenly.

    They are POINT_BLOCK points of noise (P + 1, S) with these spreads (S,), from `start` on. scores
    (A, POINT_BLOCK), best and ties (POINT_BLOCK,): workspace.
    """
    noise, spread, scores = unmanaged(noise), unmanaged(spread), unmanaged(scores)
    wide = spread[start : start + POINT_BLOCK]
    best[:], ties[:] = -np.inf, 0
    for k in range(mean.size):
        score = scores[k]
        score[:] = 0.0
        for j in range(factor.shape[0]):
            along = noise[j, start : start + POINT_BLOCK]
            f = factor[j, k]
            for b in range(POINT_BLOCK):
                score[b] += along[b] * f
        for b in range(POINT_BLOCK):
            score[b] = mean[k] + wide[b] * score[b]
            best[b] = max(best[b], score[b])
    for k in range(mean.size):
        score = scores[k]
        count = 0
        for b in range(POINT_BLOCK):
            ties[b] += score[b] == best[b]
            count += score[b] == best[b]
        out[k] += count
    for b in range(POINT_BLOCK):
        if ties[b] > 1:
            for k in range(mean.size):
                if scores[k, b] == best[b]:
                    out[k] -= 1.0 - 1.0 / ties[b]


@njit(cache=True)
def shares_of(mean, factor, seeds, cells, normals, log_width, alpha, floor, out):
    """Fill out (n, A) with probabilities for means (n, A), factors (n, P, A), seeds (n,) of the
    shifts, factors α of the sds and minimum probabilities, (n,) or (1,) each.

    cells (P + 1, S): of the points. normals, log_width: see `normal_in` and `width_at`.
    """
    n, P, A = factor.shape
    S = cells.shape[1]
    noise = np.empty((P + 1, S))
    spread = np.empty(S)
    scores, best, ties = (
        np.empty((A, POINT_BLOCK)),
        np.empty(POINT_BLOCK),
        np.empty(POINT_BLOCK, np.int64),
    )
    for i in range(n):
        at = i if alpha.size > 1 else 0
        put_noise(seeds[i], cells, normals, log_width, alpha[at], spread, noise)
        out[i] = 0.0
        for start in range(0, S, POINT_BLOCK):
            add_shares(mean[i], factor[i], noise, spread, start, scores, best, ties, out[i])
        for k in range(A):
            share = min(out[i, k] / S, 1.0)
            out[i, k] = floor[at] + (1.0 - A * floor[at]) * share


@njit(cache=True)
def choose_jointly(
    rows, start, D, K, arms, mean, factor, seeds, cells, normals, log_width, alpha, floor, stream
):
    """Decide for rows (n, width) from `start` on among the arms of these numbers (A,), until the
    stream runs short; the next row to do. It fills `seeds`; else see `shares_of`."""
    rows = unmanaged(rows)
    stream = unmanaged(stream)
    A = arms.size
    P = factor.shape[1]
    memory = np.empty(A + P + 1)
    scores = unmanaged(memory)[:A]
    noise = unmanaged(memory)[A:]
    i = start
    while i < rows.shape[0] and not is_short(stream, K):
        at, seeds[i] = i if alpha.size > 1 else 0, normal(stream)
        if floor[at] > 0.0 and normal_cdf(normal(stream)) < A * floor[at]:
            k = below(A, stream)
        else:
            put_point(seeds[i], below(cells.shape[1], stream), cells, normals, noise)
            put_scores(mean[i], factor[i], noise, alpha[at] * width_at(noise[P], log_width), scores)
            k = winner(scores, stream)
        record(row_of(rows[i], D, K), arms[k], TABULATED, alpha[at], floor[at])
        i += 1
    stream[-1] += i - start
    keep_alive(memory)
    return i
