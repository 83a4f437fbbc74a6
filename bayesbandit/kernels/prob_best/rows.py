"""Many arms that share coefficients: mean rewards x'θ of rows x of features, with one θ for all.

The draws of θ are the shifted points of `joint.py`. A decision takes one of them and scores all
arms. An arm's probability is the share of the draws under which it is best.
"""

import math

import numpy as np

from bayesbandit.kernels.algebra.dense import add_scaled, dot
from bayesbandit.kernels.prob_best.joint import put_point, width_at, winner
from bayesbandit.kernels.row_layout import TABULATED, record, row_of
from bayesbandit.kernels.selection import below, is_short, normal
from bayesbandit.kernels.student import normal_cdf
from bayesbandit.kernels.uncounted_arrays import keep_alive, unmanaged
from bayesbandit.runtime.compiling import njit


@njit(cache=True)
def put_means(x, location, out):
    """Put x'location of rows x (n, K, d) into out (n, K)."""
    x, location = unmanaged(x), unmanaged(location)
    for i in range(out.shape[0]):
        for k in range(out.shape[1]):
            out[i, k] = dot(x[i, k], location)


@njit(cache=True)
def put_lengths(x, unit, direction, part, length):
    """Put the part of each row of x / unit (K, d) along a direction, and its length, into the
    others (K,)."""
    x, direction, row = unmanaged(x), unmanaged(direction), np.empty(direction.size)
    scaled = unmanaged(row)
    inverse = 1.0 / unit
    for k in range(part.size):
        for i in range(scaled.size):
            scaled[i] = x[k, i] * inverse
        part[k] = dot(scaled, direction)
        length[k] = math.sqrt(dot(scaled, scaled))
    keep_alive(row)


@njit(cache=True)
def put_theta(location, axes, noise, spread, theta):
    """Put location + spread · axes'ε into theta (d,); ε are the first of noise, axes (P, d)."""
    theta[:] = 0.0
    for j in range(axes.shape[0]):
        add_scaled(theta, noise[j], axes[j])
    for i in range(theta.size):
        theta[i] = location[i] + spread * theta[i]


@njit(cache=True)
def put_thetas(noise, spread, location, axes, theta):
    """Put the θ of noise (P, S) and spread (S,) into theta (S, d)."""
    axes = unmanaged(axes)
    theta = unmanaged(theta)
    own = np.empty(noise.shape[0])
    for s in range(spread.size):
        for j in range(own.size):
            own[j] = noise[j, s]
        put_theta(location, axes, unmanaged(own), spread[s], theta[s])
    keep_alive(own)


@njit(cache=True)
def choose_by_rows(
    rows, start, D, K, arms, x, location, axes, seeds, cells, normals, log_width, alpha, floor,
    stream,
):  # fmt: skip
    """Decide as `joint.choose_jointly`, for rows x (n, K, d) of features and axes (P, d) of θ."""
    rows, x, stream = unmanaged(rows), unmanaged(x), unmanaged(stream)
    A, (P, d) = arms.size, axes.shape
    memory = np.empty(A + d + P + 1)
    scores = unmanaged(memory)[:A]
    theta = unmanaged(memory)[A : A + d]
    noise = unmanaged(memory)[A + d :]
    i = start
    while i < rows.shape[0] and not is_short(stream, 1):
        seeds[i] = normal(stream)
        if floor[i] > 0.0 and normal_cdf(normal(stream)) < A * floor[i]:
            k = below(A, stream)
        else:
            put_point(seeds[i], below(cells.shape[1], stream), cells, normals, noise)
            put_theta(location, axes, noise, alpha[i] * width_at(noise[P], log_width), theta)
            for a in range(A):
                scores[a] = dot(x[i, arms[a]], theta)
            k = winner(scores, stream)
        record(row_of(rows[i], D, K), arms[k], TABULATED, alpha[i], floor[i])
        i += 1
    stream[-1] += i - start
    keep_alive(memory)
    return i


@njit(cache=True)
def put_wins(x, theta, out):
    """Put the number of draws theta (S, d) under which each row of x (A, d) is best into out (A,);
    a tie is split evenly."""
    x = unmanaged(x)
    S = theta.shape[0]
    best = np.full(S, -np.inf)
    winner = np.zeros(S, np.int64)
    ties = np.zeros(S, np.int64)
    for a in range(out.size):
        for s in range(S):
            score = dot(x[a], theta[s])
            if score > best[s]:
                best[s], winner[s], ties[s] = score, a, 1
            elif score == best[s]:
                ties[s] += 1
    out[:] = 0.0
    for s in range(S):
        if ties[s] == 1:
            out[winner[s]] += 1.0
        else:
            for a in range(out.size):
                if dot(x[a], theta[s]) == best[s]:
                    out[a] += 1.0 / ties[s]
