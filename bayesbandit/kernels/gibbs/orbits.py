"""Joint steps of scales and of what they are the scales of, and whole sweeps.

A step adds s d to u, and multiplies by exp(r s) the forms ρ of the squares that are scaled by it,
so that the product of their φ and Q stays: δ ← δ + (exp(r s) − 1) w, where w has the forms ρ; or
r = 0, and δ stays. This is a group, along which s has the density of the orbit: Liu and Sabatti
(2000), Generalised Gibbs sampler and multigrid Monte Carlo. With δ it is the step of the
non-centred parametrisation, where `monomials` takes that of the centred one (Yu and Meng 2011, To
center or not to center).
"""

import math
from typing import NamedTuple

import numpy as np

from bayesbandit.kernels.algebra.dense import add_scaled, dot
from bayesbandit.kernels.gibbs import log_scale
from bayesbandit.kernels.gibbs.monomials import (
    MAX_ABS_LOG_SCALE,
    Index,
    Matrix,
    Vector,
    draw_delta,
    draw_elements,
    evaluate,
    log_density,
    multiply,
    sparse_form,
    weigh,
)
from bayesbandit.kernels.uncounted_arrays import unmanaged
from bayesbandit.runtime.compiling import njit

kernel = njit(cache=True, error_model="numpy", nogil=True)


class Moves(NamedTuple):
    """M steps of P elements, each of at most k sparse squares; T terms."""

    speed: Matrix  # (M, P) d
    stretch: Vector  # (M,) r
    # (M, T) where, in `exponent`, there are those of a term: of its φ, and this with r and 2 r; −1
    # for the squares that are scaled
    kind: Index
    exponent: Matrix
    own: Index  # (M, k) these squares; −1 where there are fewer
    spread: np.ndarray  # (M, k, D): w = Σ ρ spread


@kernel
def aim(terms, moves, m, work):
    """Compute the direction w of a move, and how Q(δ + t w) = Q + 2 first t + second t² changes.
    Return how many squares are its own."""
    n, g = terms.rows.shape[0], terms.groups.shape[0]
    w, rho, first, second = work.direction, work.rho, work.first, work.second
    w[:] = 0.0
    count = 0
    for k in range(moves.own.shape[1]):
        if moves.own[m, k] >= 0:
            add_scaled(w, rho[n + g + moves.own[m, k]], moves.spread[m, k])
            count += 1
    for t in range(n):
        slope = dot(w, terms.rows[t])
        first[t], second[t] = rho[t] * slope, slope * slope
    for k in range(g):
        change = work.change
        change[:] = 0.0
        multiply(terms.groups[k], w, change)
        first[n + k], second[n + k] = dot(w, work.image[k]), dot(w, change)
    for t in range(n + g, n + g + terms.offset.size):
        slope = sparse_form(terms, t - n - g, w)
        first[t], second[t] = rho[t] * slope, slope * slope
    return count


@kernel
def step(terms, moves, m, state, work, rng):
    """Take a step along move m, by a slice of the log density a s + q s² + Σ S exp(e s)."""
    u, d, r, e = state.u, moves.speed[m], moves.stretch[m], moves.exponent[m]
    a = q = 0.0
    low, high = -np.inf, np.inf
    for i in range(u.size):
        if d[i] != 0.0:
            a += d[i] * (terms.linear[i] + 2.0 * terms.square[i] * u[i])
            q += d[i] * d[i] * terms.square[i]
            one = (max(terms.low[i], -MAX_ABS_LOG_SCALE) - u[i]) / d[i]
            other = (min(terms.high[i], MAX_ABS_LOG_SCALE) - u[i]) / d[i]
            low, high = max(low, min(one, other)), min(high, max(one, other))
    if not low < 0.0 < high:
        return
    S = np.zeros(e.size)
    if r != 0.0:
        a += r * aim(terms, moves, m, work)
    for t in range(work.phi.size):
        k, phi, Q = moves.kind[m, t], work.phi[t], work.Q[t]
        if k >= 0 and r == 0.0:
            S[k] += phi * Q
        elif k >= 0:  # Q(δ + (c − 1) w) is a polynomial of degree 2 in c = exp(r s)
            b, c = work.first[t], work.second[t]
            S[k] += phi * (Q - 2.0 * b + c)
            S[k + 1] += 2.0 * phi * (b - c)
            S[k + 2] += phi * c
    s = log_scale.slice_from(a, q, e, S, low, high, rng)
    add_scaled(u, s, d)
    if r == 0.0:
        weigh(terms, u, work.phi)
    else:
        add_scaled(state.delta, math.exp(r * s) - 1.0, work.direction)
        log_density(terms, state.delta, u, work)


@kernel
def sweep(terms, moves, state, work, delta, u, kept, tune, rng):
    """Sweep `tune` times, then once for each row of delta (S, D) and u (S, kept), which are filled.
    Return the element that is improper given all else, or −1."""
    terms, moves, state, work = (
        unmanaged(terms),
        unmanaged(moves),
        unmanaged(state),
        unmanaged(work),
    )
    delta, u, kept = unmanaged(delta), unmanaged(u), unmanaged(kept)
    for s in range(-tune, delta.shape[0]):
        weigh(terms, state.u, work.phi)
        draw_delta(terms, state, work, rng)
        evaluate(terms, state.delta, work)
        wrong = draw_elements(terms, state.u, work, rng)
        if wrong >= 0:
            return wrong
        for m in range(moves.stretch.size):
            step(terms, moves, m, state, work, rng)
        if s >= 0:
            delta[s] = state.delta
            for k in range(kept.size):
                u[s, k] = state.u[kept[k]]
    return -1
