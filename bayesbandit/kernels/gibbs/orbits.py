"""Joint steps along one-parameter groups, and whole sweeps, for the densities of `monomials`.

A move shifts some u by s d. Where it stretches, too, the affine forms ρ of its own squares become
ρ c with c = exp(r s), by δ ← δ + (c − 1) w, where the forms of w are ρ; r is such that the product
of their φ and Q stays. These are one-parameter groups, along which s has the density of the orbit:
Liu and Sabatti (2000), Generalised Gibbs sampler and multigrid Monte Carlo. With a stretch it is
the step of the non-centred parametrisation (Yu and Meng 2011, To center or not to center).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesbandit.kernels.algebra.dense import add_scaled, dot
from bayesbandit.kernels.gibbs import log_scale
from bayesbandit.kernels.gibbs.monomials import (
    FURTHEST,
    Index,
    Matrix,
    Vector,
    draw_delta,
    draw_elements,
    evaluate,
    multiply,
    sparse_form,
    weigh,
)
from bayesbandit.kernels.uncounted_arrays import unmanaged
from bayesbandit.runtime.compiling import njit

kernel = njit(cache=True, error_model="numpy", nogil=True)

FRESH = 20  # sweeps after which φ, which every draw multiplies, is computed again


class Moves(NamedTuple):
    """M steps along one-parameter groups, of T terms."""

    speed: Matrix  # (M, P) d
    kind: NDArray[np.int8]  # (M, T) the place of each term in `rate`
    rate: Matrix  # (M, K) how fast log φ of terms of a kind grows
    slot: Index  # (M, K, 3) the places in `exponent` of rate, rate + r and rate + 2r
    exponent: Matrix  # (M, E)
    stretch: Vector  # (M,) r, 0 where δ stays
    jacobian: Vector  # (M,) of the step: its logarithm is jacobian · s
    coordinate: Index  # (M, m) of w that takes a sparse square's ρ; −1 where it is not the move's
    inverse: Matrix  # (M, m) 1 / the coefficient of this coordinate in the square's form


@kernel
def aim(terms, moves, m, work):
    """Compute the direction w of a stretch, and how Q(δ + t w) = Q + 2 first t + second t² changes.

    A group's half gradient is `image` + t `change`.
    """
    n, g = terms.rows.shape[0], terms.groups.shape[0]
    w, rho, slope = work.direction, work.rho, work.slope
    first, second = work.first, work.second
    w[:] = 0.0
    for k in range(terms.offset.size):
        if moves.coordinate[m, k] >= 0:
            w[moves.coordinate[m, k]] = moves.inverse[m, k] * rho[n + g + k]
    for t in range(n):
        slope[t] = dot(w, terms.rows[t])
    for k in range(terms.offset.size):
        slope[n + g + k] = sparse_form(terms, k, w)
    for t in range(n + g + terms.offset.size):
        first[t] = rho[t] * slope[t]
        second[t] = slope[t] * slope[t]
    for k in range(g):
        change = work.change[k]
        change[:] = 0.0
        multiply(terms.groups[k], w, change)
        first[n + k], second[n + k] = dot(w, work.image[k]), dot(w, change)


@kernel
def take(moves, m, s, state, work, factor):
    """Take a step s along move m; factor is scratch."""
    u, phi, Q, rho = state.u, work.phi, work.Q, work.rho
    for i in range(u.size):
        u[i] += moves.speed[m, i] * s
    for k in range(moves.rate.shape[1]):
        factor[k] = math.exp(moves.rate[m, k] * s)
    for t in range(phi.size):
        phi[t] *= factor[moves.kind[m, t]]
    if moves.stretch[m] != 0.0:
        c = math.exp(moves.stretch[m] * s) - 1.0
        add_scaled(state.delta, c, work.direction)
        for k in range(work.image.shape[0]):
            add_scaled(work.image[k], c, work.change[k])
        for t in range(phi.size):
            Q[t] += c * (2.0 * work.first[t] + c * work.second[t])
            rho[t] += c * work.slope[t]


@kernel
def step(terms, moves, m, state, work, S, rng):
    """Draw along move m; S is scratch. Return whether the density is proper."""
    u, phi, Q, first, second = state.u, work.phi, work.Q, work.first, work.second
    e = moves.exponent[m]
    S[:] = 0.0
    if moves.stretch[m] != 0.0:
        aim(terms, moves, m, work)
        for t in range(phi.size):
            # Q(δ + (c − 1) w) is a polynomial of degree 2 in c = exp(r s)
            slot = moves.slot[m, moves.kind[m, t]]
            b = first[t]
            d = second[t]
            S[slot[0]] += phi[t] * (Q[t] - 2.0 * b + d)
            S[slot[1]] += 2.0 * phi[t] * (b - d)
            S[slot[2]] += phi[t] * d
    else:
        for t in range(phi.size):
            S[moves.slot[m, moves.kind[m, t], 0]] += phi[t] * Q[t]
    for k in range(e.size):
        if e[k] == 0.0:
            S[k] = 0.0
    a = moves.jacobian[m]
    q = 0.0
    low = -np.inf
    high = np.inf
    for i in range(u.size):
        d = moves.speed[m, i]
        if d != 0.0:
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
    take(moves, m, s, state, work, S)
    return True


@kernel
def sweep(terms, moves, state, work, delta, u, kept, tune, rng):
    """Sweep `tune` times, then once for each row of delta (S, D) and u (S, kept), which are filled.
    Return −1, or what is improper: an element, or P + a move."""
    terms, moves, state, work = (
        unmanaged(terms),
        unmanaged(moves),
        unmanaged(state),
        unmanaged(work),
    )
    delta, u, kept = unmanaged(delta), unmanaged(u), unmanaged(kept)
    P = state.u.size
    S = np.empty(max(moves.exponent.shape[1], moves.rate.shape[1]))
    for s in range(-tune, delta.shape[0]):
        if (s + tune) % FRESH == 0:
            weigh(terms, state.u, work.phi)
        draw_delta(terms, state, work, rng)
        evaluate(terms, state.delta, work)
        wrong = draw_elements(terms, state.u, work, rng)
        if wrong >= 0:
            return wrong
        for m in range(moves.jacobian.size):
            if not step(terms, moves, m, state, work, S, rng):
                return P + m
        if s >= 0:
            delta[s] = state.delta
            for k in range(kept.size):
                u[s, k] = state.u[kept[k]]
    return -1
