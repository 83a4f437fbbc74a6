"""Many arms that share coefficients: mean rewards x'θ of rows x of features, with one θ for all.

The draws of θ are the shifted points of `joint.py`. A decision takes one of them and scores all
arms. An arm's probability is the share of the draws under which it is best.
"""

import numpy as np

from bayesbandit.kernels.algebra.dense import add_scaled, dot
from bayesbandit.kernels.prob_best.joint import (
    best_in,
    nth,
    put_choice,
    put_point,
    put_points,
    width_at,
)
from bayesbandit.kernels.selection import below, is_short, normal
from bayesbandit.kernels.student import normal_cdf
from bayesbandit.kernels.uncounted_arrays import borrowed, held
from bayesbandit.runtime.compiling import njit


@njit(cache=True)
def take_in(x, location, theta, own, level, length, scores):
    """Copy rows x (K, d) into `own`; put x'location, |x| and x'theta into the others (K,).

    Each is a sum as `dot` computes it, and the row is read once.
    """
    d = x.shape[1]
    blocks = d - d % 4
    for k in range(x.shape[0]):
        row, copy = x[k], own[k]
        a0, a1, a2, a3 = 0.0, 0.0, 0.0, 0.0
        b0, b1, b2, b3 = 0.0, 0.0, 0.0, 0.0
        c0, c1, c2, c3 = 0.0, 0.0, 0.0, 0.0
        for i in range(0, blocks, 4):
            x0, x1, x2, x3 = row[i], row[i + 1], row[i + 2], row[i + 3]
            copy[i], copy[i + 1], copy[i + 2], copy[i + 3] = x0, x1, x2, x3
            a0 += x0 * location[i]
            a1 += x1 * location[i + 1]
            a2 += x2 * location[i + 2]
            a3 += x3 * location[i + 3]
            b0 += x0 * x0
            b1 += x1 * x1
            b2 += x2 * x2
            b3 += x3 * x3
            c0 += x0 * theta[i]
            c1 += x1 * theta[i + 1]
            c2 += x2 * theta[i + 2]
            c3 += x3 * theta[i + 3]
        for i in range(blocks, d):
            copy[i] = row[i]
            a0 += row[i] * location[i]
            b0 += row[i] * row[i]
            c0 += row[i] * theta[i]
        level[k] = (a0 + a1) + (a2 + a3)
        length[k] = np.sqrt((b0 + b1) + (b2 + b3))
        scores[k] = (c0 + c1) + (c2 + c3)


@njit(cache=True)
def take_all_in(x, location, own, level, length):
    """`take_in` of all contexts, x (n, K, d), without a draw."""
    nothing, scores = np.zeros(location.size), np.empty(x.shape[1])
    x, own = borrowed(x), borrowed(own)
    for i in range(x.shape[0]):
        take_in(x[i], location, nothing, own[i], level[i], length[i], scores)


@njit(cache=True)
def put_theta(location, axes, noise, spread, theta):
    """Put location + spread · axes'ε into theta (d,); ε are the first of noise, axes (P, d)."""
    theta[:] = 0.0
    P = axes.shape[0]
    blocks = P - P % 4
    for j in range(0, blocks, 4):
        e0, e1, e2, e3 = noise[j], noise[j + 1], noise[j + 2], noise[j + 3]
        a0, a1, a2, a3 = axes[j], axes[j + 1], axes[j + 2], axes[j + 3]
        for i in range(theta.size):
            theta[i] += (e0 * a0[i] + e1 * a1[i]) + (e2 * a2[i] + e3 * a3[i])
    for j in range(blocks, P):
        add_scaled(theta, noise[j], axes[j])
    for i in range(theta.size):
        theta[i] = location[i] + spread * theta[i]


@njit(cache=True)
def put_noise(seed, cells, normals, log_width, alpha, spread, noise):
    """Put all points of a decision into noise (P + 1, S), and their α · width into spread (S,)."""
    put_points(seed, cells, normals, np.empty(spread.size), noise)
    for s in range(spread.size):
        spread[s] = alpha * width_at(noise[-1, s], log_width)


@njit(cache=True)
def put_thetas(noise, spread, location, axes, theta):
    """Put the θ of noise (P, S) and spread (S,) into theta (S, d)."""
    axes, theta, own = borrowed(axes), borrowed(theta), np.empty(noise.shape[0])
    for s in range(spread.size):
        for j in range(own.size):
            own[j] = noise[j, s]
        put_theta(location, axes, borrowed(own), spread[s], theta[s])
    held(own)


@njit(cache=True)
def put_scores(x, arms, theta, out):
    """Put x'θ of the rows of these numbers (A,) into out (A,)."""
    for a in range(arms.size):
        out[a] = dot(x[arms[a]], theta)


@njit(cache=True)
def choose_by_rows(
    rows, start, D, K, arms, x, location, axes, seeds, cells, normals, log_width, alpha, floor,
    stream, own, level, length,
):  # fmt: skip
    """Decide as `joint.choose_jointly`, for rows x (n, K, d) of features and axes (P, d) of θ, and
    take them in: each row is read once."""
    rows, x, own, stream, A = (
        borrowed(rows),
        borrowed(x),
        borrowed(own),
        borrowed(stream),
        arms.size,
    )
    scores, theta, noise = np.empty(K), np.empty(axes.shape[1]), np.empty(axes.shape[0] + 1)
    for i in range(start, rows.shape[0]):
        if is_short(stream, 1):
            stream[-1] += i - start
            held((scores, theta, noise))
            return i
        seeds[i], place = normal(stream), -1
        if floor[i] > 0.0 and normal_cdf(normal(stream)) < A * floor[i]:
            place = below(A, stream)
        else:
            put_point(seeds[i], below(cells.shape[1], stream), cells, normals, borrowed(noise))
            spread = alpha[i] * width_at(noise[-1], log_width)
            put_theta(location, axes, borrowed(noise), spread, borrowed(theta))
        take_in(x[i], location, borrowed(theta), own[i], level[i], length[i], borrowed(scores))
        if place < 0:
            for a in range(A):  # arms are in order
                scores[a] = scores[arms[a]]
            best, ties = best_in(scores[:A])
            place = nth(scores[:A], best, below(ties, stream) if ties > 1 else 0)
        put_choice(rows[i], arms[place], D, K, alpha[i], floor[i])
    stream[-1] += rows.shape[0] - start
    held((scores, theta, noise))
    return rows.shape[0]


@njit(cache=True)
def share_of(x, arms, theta, own):
    """The number of draws theta (S, d) under which no row of these arms is better than own (S,).

    A tie is split evenly; whatever has the score own is among the arms.
    """
    x, ties, total = borrowed(x), np.zeros(own.size, np.int64), 0.0
    for a in range(arms.size):
        row = x[arms[a]]
        for s in range(own.size):
            if ties[s] >= 0:
                score = dot(row, theta[s])
                ties[s] = -1 if score > own[s] else ties[s] + (score == own[s])
    for s in range(own.size):
        total += 1.0 / ties[s] if ties[s] > 0 else 0.0
    return total


@njit(cache=True)
def put_shares(x, arms, theta, out):
    """Put the number of draws under which each of these arms is best into out (A,)."""
    x, S = borrowed(x), theta.shape[0]
    best, winner, ties = np.full(S, -np.inf), np.zeros(S, np.int64), np.zeros(S, np.int64)
    for a in range(arms.size):
        row = x[arms[a]]
        for s in range(S):
            score = dot(row, theta[s])
            if score > best[s]:
                best[s], winner[s], ties[s] = score, a, 1
            elif score == best[s]:
                ties[s] += 1
    out[:] = 0.0
    for s in range(S):
        if ties[s] == 1:
            out[winner[s]] += 1.0
        else:
            for a in range(arms.size):
                if dot(x[arms[a]], theta[s]) == best[s]:
                    out[a] += 1.0 / ties[s]
