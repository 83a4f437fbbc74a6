"""Many arms that share coefficients: mean rewards x'θ of rows x of features, with one θ for all.

The draws of θ are the shifted points of `joint.py`. A decision takes one of them and scores all
arms. An arm's probability is the share of the draws under which it is best.
"""

import numpy as np

from bayesbandit.kernels.algebra.dense import add_scaled, copy_into, dot
from bayesbandit.kernels.prob_best.joint import put_point, width_at, winner
from bayesbandit.kernels.row_layout import TABULATED, record, row_of
from bayesbandit.kernels.selection import below, is_short, normal
from bayesbandit.kernels.student import normal_cdf
from bayesbandit.kernels.uncounted_arrays import borrowed, held
from bayesbandit.runtime.compiling import njit


@njit(cache=True)
def take_in(x, location, theta, own, level, length, scores):
    """Copy rows x (K, d) into `own`; put x'location, |x| and x'theta into the others (K,)."""
    for k in range(x.shape[0]):
        row = own[k]
        copy_into(row, x[k])
        level[k] = dot(row, location)
        length[k] = np.sqrt(dot(row, row))
        scores[k] = dot(row, theta)


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
    for j in range(axes.shape[0]):
        add_scaled(theta, noise[j], axes[j])
    for i in range(theta.size):
        theta[i] = location[i] + spread * theta[i]


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
    rows, x, own, stream = borrowed(rows), borrowed(x), borrowed(own), borrowed(stream)
    A, (P, d) = arms.size, axes.shape
    memory = np.empty(K + d + P + 1)
    scores, theta = borrowed(memory)[:K], borrowed(memory)[K : K + d]
    noise = borrowed(memory)[K + d :]
    i = start
    while i < rows.shape[0] and not is_short(stream, 1):
        seeds[i] = normal(stream)
        at_random = floor[i] > 0.0 and normal_cdf(normal(stream)) < A * floor[i]
        if at_random:
            k = below(A, stream)
        else:
            put_point(seeds[i], below(cells.shape[1], stream), cells, normals, noise)
            put_theta(location, axes, noise, alpha[i] * width_at(noise[P], log_width), theta)
        take_in(x[i], location, theta, own[i], level[i], length[i], scores)
        if not at_random:
            for a in range(A):  # arms are in order
                scores[a] = scores[arms[a]]
            k = winner(scores[:A], stream)
        record(row_of(rows[i], D, K), arms[k], TABULATED, alpha[i], floor[i])
        i += 1
    stream[-1] += i - start
    held(memory)
    return i


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
