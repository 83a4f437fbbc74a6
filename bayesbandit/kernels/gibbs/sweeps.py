"""Joint steps of scales and of what they are the scales of, and whole sweeps.

A step moves u by s d. Where d is a scale of the prior of δ, it stretches δ, too, so that φ Q of
those prior squares stays: their forms ρ are multiplied by exp(r s), as δ ← δ + (exp(r s) − 1) w,
where w has the forms ρ. Else r = 0, and δ stays. Such steps form a group, and s is drawn from the
density along its orbit: Liu and Sabatti (2000), Generalised Gibbs sampler and multigrid Monte
Carlo. With δ it is the step of the non-centred parametrisation, where `monomials` takes that of the
centred one (Yu and Meng 2011, To center or not to center).
"""

import math
from typing import NamedTuple

import numpy as np

from bayesbandit.kernels.algebra.cholesky import multiply
from bayesbandit.kernels.algebra.dense import add_scaled, copy_into, dot
from bayesbandit.kernels.gibbs import log_scale
from bayesbandit.kernels.gibbs.conditionals import (
    MAX_ABS_LOG_SCALE,
    Index,
    Matrix,
    Vector,
    draw_delta,
    draw_elements,
    evaluate,
    sparse_form,
    weigh,
)
from bayesbandit.kernels.uncounted_arrays import unmanaged
from bayesbandit.runtime.compiling import njit

compiled = njit(cache=True, error_model="numpy", nogil=True)

SWEEPS_TO_WEIGH = 8  # φ is a running product; after so many sweeps it is computed from u again


class Moves(NamedTuple):
    """M steps of P elements; T terms."""

    speed: Matrix  # (M, P) d
    rate: Vector  # (M,) r
    jacobian: Vector  # (M,) r, times the number of squares that are scaled
    term_at: Index  # (M + 1,)
    term: Index  # the terms that a move changes, those of move m from term_at[m] on
    exponent_of: Index  # where each one's exponent is in `exponent`; −1: a square that is scaled
    exponent: Matrix  # (M, E)
    # w_j of move m is a sum of shares in ρ of sparse squares, from square_at[m D + j] on
    square_at: Index
    square: Index
    share: Vector


@compiled
def set_direction(terms, moves, m, D, work):
    """Compute the direction w of a move, and how Q(δ + t w) = Q + 2 first t + second t² changes,
    by its slope in ρ."""
    n = terms.rows.shape[0]
    g = terms.groups.shape[0]
    w = work.direction
    rho = work.rho
    slope = work.slope
    for j in range(D):
        w[j] = 0.0
        for k in range(moves.square_at[m * D + j], moves.square_at[m * D + j + 1]):
            # the δ whose prior forms are ρ: by it all of them are stretched alike
            w[j] += moves.share[k] * rho[n + g + moves.square[k]]
    multiply(terms.rows, w, slope)
    for t in range(terms.offset.size):
        slope[n + g + t] = sparse_form(terms, t, w)
    for t in range(n + g + terms.offset.size):
        # (ρ + t slope)² = ρ² + 2 t ρ slope + t² slope²
        work.first[t] = rho[t] * slope[t]
        work.second[t] = slope[t] * slope[t]
    for k in range(g):
        change = work.change[k]
        multiply(terms.groups[k], w, change)
        # of δ'Gδ − 2 δ'F'o: half the derivative along w is w'(Gδ − F'o), and the curvature w'Gw
        work.first[n + k] = dot(work.image[k], w)
        work.second[n + k] = dot(change, w)


@compiled
def stretch(c, n, delta, work):
    """Add c w to δ, and what it changes; n: rows, before their groups."""
    add_scaled(delta, c, work.direction)
    for t in range(work.Q.size):
        work.Q[t] += c * (2.0 * work.first[t] + c * work.second[t])
        work.rho[t] += c * work.slope[t]
    for k in range(work.image.shape[0]):
        add_scaled(work.image[k], c, work.change[k])
        # as in `evaluate`
        work.Q[n + k] = min(work.Q[n + k], 0.0)


@compiled
def step(terms, moves, m, state, work, rng):
    """Take a step along move m, by a slice of the log density

        a s + q s² + Σ (S + 2 first c + second c²) exp(e s),    c = exp(r s) − 1.

    In powers of exp(r s), S would drown where means lie many sds of the noise from prior means.
    """
    u = state.u
    d = moves.speed[m]
    r = moves.rate[m]
    e = moves.exponent[m]
    a = q = 0.0
    low = -np.inf
    high = np.inf
    for i in range(u.size):
        if d[i] != 0.0:
            # the terms α u + β u² at u + s d, and the walls of each u in units of s
            a += d[i] * (terms.linear[i] + 2.0 * terms.square[i] * u[i])
            q += d[i] * d[i] * terms.square[i]
            one = (max(terms.low[i], -MAX_ABS_LOG_SCALE) - u[i]) / d[i]
            other = (min(terms.high[i], MAX_ABS_LOG_SCALE) - u[i]) / d[i]
            low = max(low, min(one, other))
            high = min(high, max(one, other))
    # at a wall no step is tried
    if not low < 0.0 < high:
        return
    S, first, second = np.zeros((3, e.size))
    if r != 0.0:
        # of δ ← δ + (e^{rs} − 1) w: stretching J coordinates by e^{rs} has the Jacobian e^{rsJ}
        a += moves.jacobian[m]
        set_direction(terms, moves, m, state.delta.size, work)
    for j in range(moves.term_at[m], moves.term_at[m + 1]):
        t = moves.term[j]
        k = moves.exponent_of[j]
        phi = work.phi[t]
        # a square that is stretched with its scale (k < 0) stays as it is
        if k >= 0:
            # terms with one exponent e along the move are one exponential in s
            S[k] += phi * work.Q[t]
            if r != 0.0:
                first[k] += phi * work.first[t]
                second[k] += phi * work.second[t]
    # s = 0 is where the chain stands: the slice leaves the density along the orbit as it is
    s = log_scale.slice_from(a, q, e, S, r, first, second, low, high, rng)
    add_scaled(u, s, d)
    for k in range(e.size):
        S[k] = math.exp(e[k] * s)
    # φ Q of a stretched square is constant, and Q grows by e^{2rs}
    scaled = math.exp(-2.0 * r * s)
    for j in range(moves.term_at[m], moves.term_at[m + 1]):
        k = moves.exponent_of[j]
        work.phi[moves.term[j]] *= S[k] if k >= 0 else scaled
    if r != 0.0:
        stretch(math.expm1(r * s), terms.rows.shape[0], state.delta, work)


@compiled
def draw_rest(terms, moves, state, work, rng):
    """Draw each u given δ, and take the moves. Return an element that is improper given all else,
    or −1."""
    evaluate(terms, state.delta, work)
    wrong = draw_elements(terms, state.u, work, rng)
    for m in range(moves.rate.size):
        step(terms, moves, m, state, work, rng)
    return wrong


@compiled
def keep(s, state, delta, u, kept):
    """Write the state into row s of the draws; none is kept before the first."""
    if s >= 0:
        copy_into(delta[s], state.delta)
        for k in range(kept.size):
            u[s, k] = state.u[kept[k]]


@compiled
def sweep(terms, moves, state, work, delta, u, kept, tune, rng):
    """Sweep `tune` times, then once for each row of delta (S, D) and u (S, kept), which are filled.
    Return an element that is improper given all else at a draw, or −1.

    During the first `tune` sweeps an improper element is no error. A chain that begins far from the
    posterior may take a scale so close to 0 that what it scales is rounded to 0. The moves bring
    the scale back.
    """
    terms = unmanaged(terms)
    moves = unmanaged(moves)
    state = unmanaged(state)
    work = unmanaged(work)
    delta = unmanaged(delta)
    u = unmanaged(u)
    kept = unmanaged(kept)
    for s in range(-tune, delta.shape[0]):
        if (s + tune) % SWEEPS_TO_WEIGH == 0:
            weigh(terms, state.u, work.phi)
        draw_delta(terms, state, work, rng)
        wrong = draw_rest(terms, moves, state, work, rng)
        if wrong >= 0 and s >= 0:
            return wrong
        keep(s, state, delta, u, kept)
    return -1
