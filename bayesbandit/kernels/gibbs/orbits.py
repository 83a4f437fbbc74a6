"""Joint steps along one-parameter groups, and whole sweeps, for the densities of `monomials`.

A move shifts some u by s d and, where it lifts, stretches the affine forms ρ of its own squares to
ρ exp(r s), so that the product of their φ and Q stays: δ ← δ + (exp(r s) − 1) Rρ with R a right
inverse of the forms. These are one-parameter groups, along which s has the density of the orbit:
Liu and Sabatti (2000), Generalised Gibbs sampler and multigrid Monte Carlo; with a lift, the step
of the non-centred parametrisation (Yu and Meng 2011, To center or not to center).
"""

import math
from typing import NamedTuple

import numpy as np

from bayesbandit.kernels.gibbs import log_scale
from bayesbandit.kernels.gibbs.monomials import (
    FURTHEST,
    Index,
    Vector,
    draw_delta,
    draw_elements,
    evaluate,
    weigh,
)
from bayesbandit.kernels.uncounted_arrays import borrowed
from bayesbandit.runtime.compiling import njit

kernel = njit(cache=True, error_model="numpy", nogil=True)

FRESH = 20  # sweeps after which φ, which every draw multiplies, is computed again


class Moves(NamedTuple):
    """Steps along one-parameter groups; compressed rows again."""

    shifted: Index  # elements, and how fast they move
    speed: Vector
    shifted_at: Index
    term: Index  # touched terms, with their exponents along the move
    along: Vector
    slot: Index  # of each touched term: of its exponent, of that + r, of that + 2r (t, 3)
    term_at: Index
    slot_exponent: Vector
    slot_at: Index
    linear: Vector  # (M,) the coefficient of s in the Jacobian
    stretch: Vector  # (M,) r, 0 where δ stays
    own: Index  # own squares, as numbers of sparse ones
    own_at: Index
    lifted: Index  # R of each move: the coordinates of δ in each own square's column
    lift: Vector
    lift_at: Index


@kernel
def aim(terms, moves, m, delta, work):
    """Compute the direction of a lift, and how every touched term's Q changes along it."""
    n, g, P = terms.rows.shape[0], terms.groups.shape[0], work.A.shape[0]
    direction, first, second, D = work.direction, work.first, work.second, delta.size
    direction[:] = 0.0
    for k in range(moves.own_at[m], moves.own_at[m + 1]):
        rho = work.rho[n + g + moves.own[k]]
        for i in range(moves.lift_at[k], moves.lift_at[k + 1]):
            direction[moves.lifted[i]] += moves.lift[i] * rho
    for k in range(moves.term_at[m], moves.term_at[m + 1]):
        t = moves.term[k]
        first[t], second[t], work.slope[t] = 0.0, 0.0, 0.0
        if t < n or n + g <= t < n + g + terms.offset.size:
            slope = 0.0
            if t < n:
                row = terms.rows[t]
                for j in range(D):
                    slope += row[j] * direction[j]
            else:
                for j in range(terms.form_at[t - n - g], terms.form_at[t - n - g + 1]):
                    slope += terms.form_coef[j] * direction[terms.form[j]]
            first[t], second[t] = work.rho[t] * slope, slope * slope
            work.slope[t] = slope
        elif t < n + g:
            G = terms.groups[t - n]
            for i in range(D):
                slope, change = -G[i, P], 0.0
                for j in range(D):
                    slope += G[i, j] * delta[j]
                    change += G[i, j] * direction[j]
                first[t] += slope * direction[i]
                second[t] += change * direction[i]


@kernel
def take(terms, moves, m, s, state, work):
    """Take a step s along move m."""
    n, g = terms.rows.shape[0], terms.groups.shape[0]
    u, phi, Q, rho = state.u, work.phi, work.Q, work.rho
    for k in range(moves.shifted_at[m], moves.shifted_at[m + 1]):
        u[moves.shifted[k]] += moves.speed[k] * s
    c = math.exp(moves.stretch[m] * s)
    for k in range(moves.term_at[m], moves.term_at[m + 1]):
        t = moves.term[k]
        if moves.along[k] != 0.0:
            phi[t] *= math.exp(moves.along[k] * s)
        if moves.stretch[m] != 0.0:
            Q[t] += (c - 1.0) * (2.0 * work.first[t] + (c - 1.0) * work.second[t])
            rho[t] += (c - 1.0) * work.slope[t]
    if moves.stretch[m] != 0.0:
        for j in range(state.delta.size):
            state.delta[j] += (c - 1.0) * work.direction[j]
        for k in range(moves.own_at[m], moves.own_at[m + 1]):
            t = n + g + moves.own[k]
            rho[t] *= c
            Q[t] *= c * c
            phi[t] /= c * c


@kernel
def step(terms, moves, m, state, work, rng):
    """Draw along move m. Return whether the density is proper."""
    u, phi, Q = state.u, work.phi, work.Q
    start, stop = moves.slot_at[m], moves.slot_at[m + 1]
    e, S = moves.slot_exponent[start:stop], np.zeros(stop - start)
    lifts = moves.stretch[m] != 0.0
    if lifts:
        aim(terms, moves, m, state.delta, work)
    for k in range(moves.term_at[m], moves.term_at[m + 1]):
        t = moves.term[k]
        if lifts:
            b, d = work.first[t], work.second[t]
            S[moves.slot[k, 0]] += phi[t] * (Q[t] - 2.0 * b + d)
            S[moves.slot[k, 1]] += 2.0 * phi[t] * (b - d)
            S[moves.slot[k, 2]] += phi[t] * d
        else:
            S[moves.slot[k, 0]] += phi[t] * Q[t]
    for k in range(stop - start):
        if e[k] == 0.0:
            S[k] = 0.0
    a, q, low, high = moves.linear[m], 0.0, -np.inf, np.inf
    for k in range(moves.shifted_at[m], moves.shifted_at[m + 1]):
        i, d = moves.shifted[k], moves.speed[k]
        a += d * (terms.linear[i] + 2.0 * terms.square[i] * u[i])
        q += d * d * terms.square[i]
        down = (max(terms.low[i], -FURTHEST) - u[i]) / d
        up = (min(terms.high[i], FURTHEST) - u[i]) / d
        low, high = max(low, min(down, up)), min(high, max(down, up))
    if not low < 0.0 < high:
        return True
    s = log_scale.draw(a, q, e, S, low, high, rng)
    if not abs(s) < np.inf:
        return False
    take(terms, moves, m, s, state, work)
    return True


@kernel
def sweep(terms, moves, state, work, delta, u, kept, tune, rng):
    """Sweep `tune` times, then once for each row of delta (S, D) and u (S, kept), which are filled.
    Return −1, or what is improper: an element, or P + a move."""
    terms, moves, state, work = borrowed(terms), borrowed(moves), borrowed(state), borrowed(work)
    delta, u, kept = borrowed(delta), borrowed(u), borrowed(kept)
    P = state.u.size
    for s in range(-tune, delta.shape[0]):
        if (s + tune) % FRESH == 0:
            weigh(terms, state.u, work.phi)
        draw_delta(terms, state, work, rng)
        evaluate(terms, state.delta, work)
        wrong = draw_elements(terms, state.u, work, rng)
        if wrong >= 0:
            return wrong
        for m in range(moves.linear.size):
            if not step(terms, moves, m, state, work, rng):
                return P + m
        if s >= 0:
            delta[s] = state.delta
            for k in range(kept.size):
                u[s, k] = state.u[kept[k]]
    return -1
