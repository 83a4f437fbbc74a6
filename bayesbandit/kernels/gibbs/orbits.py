"""Steps of a scale together with what it is the scale of, and whole sweeps.

A step adds s to one u_i, and multiplies by exp(r s) the forms ρ of the squares that are scaled by
it, so that the product of their φ and Q stays: δ ← δ + (exp(r s) − 1) w, where w has the forms ρ.
This is a group, along which s has the density of the orbit: Liu and Sabatti (2000), Generalised
Gibbs sampler and multigrid Monte Carlo. It is the step of the non-centred parametrisation, where
`monomials` takes that of the centred one (Yu and Meng 2011, To center or not to center).
"""

import math
from typing import NamedTuple

import numpy as np

from bayesbandit.kernels.algebra.dense import add_scaled, dot
from bayesbandit.kernels.gibbs.monomials import (
    MAX_ABS_LOG_SCALE,
    Index,
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

MAX_STEPS = 100  # of a slice, outwards and inwards


class Moves(NamedTuple):
    """M steps, each of at most k sparse squares."""

    element: Index  # (M,) i
    stretch: Vector  # (M,) r
    own: Index  # (M, k) the squares; −1 where there are fewer
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
def gain(terms, i, u, r, count, s, work):
    """Return by how much the log density of the orbit at s exceeds a constant."""
    phi, Q, first, second, rate = work.phi, work.Q, work.first, work.second, work.rate
    c = math.exp(r * s) - 1.0
    total = (r * count + terms.linear[i] + terms.square[i] * (2.0 * u + s)) * s
    for t in range(phi.size):
        term = phi[t] * (Q[t] + c * (2.0 * first[t] + c * second[t]))
        total += term if rate[t] == 0.0 else term * math.exp(rate[t] * s)
    return total


@kernel
def step(terms, moves, m, state, work, rng):
    """Take a step along move m, by a slice (Neal 2003)."""
    i, r = moves.element[m], moves.stretch[m]
    u = state.u[i]
    low, high = max(terms.low[i], -MAX_ABS_LOG_SCALE) - u, min(terms.high[i], MAX_ABS_LOG_SCALE) - u
    if not low < 0.0 < high:
        return
    count = aim(terms, moves, m, work)
    work.rate[:] = 0.0
    for k in range(terms.term_at[i], terms.term_at[i + 1]):
        work.rate[terms.term[k]] = terms.slot_exponent[terms.slot[k]]
    level = gain(terms, i, u, r, count, 0.0, work) - rng.standard_exponential()
    left = -rng.random()
    right = left + 1.0
    for _ in range(MAX_STEPS):
        if left <= low or not gain(terms, i, u, r, count, left, work) > level:
            break
        left -= 1.0
    for _ in range(MAX_STEPS):
        if right >= high or not gain(terms, i, u, r, count, right, work) > level:
            break
        right += 1.0
    left, right = max(left, low), min(right, high)
    for _ in range(MAX_STEPS):
        s = left + rng.random() * (right - left)
        if gain(terms, i, u, r, count, s, work) > level:
            state.u[i] = u + s
            add_scaled(state.delta, math.exp(r * s) - 1.0, work.direction)
            log_density(terms, state.delta, state.u, work)
            return
        if s < 0.0:
            left = s
        else:
            right = s


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
        for m in range(moves.element.size):
            step(terms, moves, m, state, work, rng)
        if s >= 0:
            delta[s] = state.delta
            for k in range(kept.size):
                u[s, k] = state.u[kept[k]]
    return -1
