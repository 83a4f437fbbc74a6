"""Gibbs sweeps over log densities that are sums of monomials times squares.

In δ (D,), real, and u (P,), the logarithms of positive variables,

    log p = Σ_i (a_i u_i + q_i u_i²) + Σ_t φ_t Q_t,    φ_t = c_t exp(Σ e u),

where Q_t is the square of an affine form of δ, a sum of such squares, or 1. Terms come in this
order: rows (each a square of a dense form), groups of rows with the same φ (as statistics), sparse
squares, and monomials (Q = 1). A sweep draws δ given u, which is Gaussian, each u_i given the rest,
which is of the kind of `log_scale`, and then steps along the moves of `orbits`.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesbandit.kernels.algebra.cholesky import add_gram, factor, room, solve_upper
from bayesbandit.kernels.gibbs import log_scale
from bayesbandit.runtime.compiling import njit

kernel = njit(cache=True, error_model="numpy", nogil=True)

Vector = NDArray[np.float64]
Index = NDArray[np.int64]
FURTHEST = 230.0  # |u| is kept below it: exp(u) within 1e±100


class Terms(NamedTuple):
    """The log density; indices are in compressed rows, `…_at` saying where each begins."""

    linear: Vector  # (P,) a
    square: Vector  # (P,) q
    low: Vector  # (P,) walls of u; where they meet, u is held
    high: Vector  # (P,)
    coef: Vector  # (T,) c
    element: Index  # of the elements in each term
    exponent: Vector
    element_at: Index  # (T + 1,)
    term: Index  # of the terms of each element, and which slot of its exponents they belong to
    slot: Index
    term_at: Index  # (P + 1,)
    slot_exponent: Vector
    slot_at: Index  # (P + 1,)
    rows: NDArray[np.float64]  # (n, room): the forms of rows, and behind them their offsets
    groups: NDArray[np.float64]  # (g, *room): Σ c FF', and behind it Σ c F offset
    group_rest: Vector  # (g,) Σ c offset²
    form: Index  # of the coordinates in each sparse square
    form_coef: Vector
    form_at: Index
    offset: Vector  # of sparse squares: Q = (form − offset)²


class MonomialState(NamedTuple):
    """Where a chain stands."""

    delta: Vector  # (D,)
    u: Vector  # (P,)


class Work(NamedTuple):
    """What a sweep keeps for itself."""

    phi: Vector  # (T,)
    Q: Vector  # (T,)
    rho: Vector  # (T,) the affine forms, of rows and sparse squares
    A: NDArray[np.float64]  # room(D): the precision, and the shift behind it
    W: NDArray[np.float64]
    scaled: NDArray[np.float64]  # as rows
    shift: Vector
    S: Vector
    slope: Vector  # (T,) of ρ along a lift
    first: Vector  # (T,) of Q/2
    second: Vector  # (T,) the curvature of Q/2
    direction: Vector  # (D,)


@kernel
def weigh(terms, u, phi):
    """Compute φ of all terms."""
    for t in range(phi.size):
        total = 0.0
        for k in range(terms.element_at[t], terms.element_at[t + 1]):
            total += terms.exponent[k] * u[terms.element[k]]
        phi[t] = terms.coef[t] * math.exp(total)


@kernel
def precision(terms, D, work):
    """Compute from φ the precision of δ given u, in A's upper triangle, and its shift."""
    A, phi = work.A, work.phi
    n, g = terms.rows.shape[0], terms.groups.shape[0]
    P = A.shape[0]
    A[:] = 0.0
    for k in range(g):
        c, G = -2.0 * phi[n + k], terms.groups[k]
        for i in range(D):
            target, source = A[i], G[i]
            for j in range(i, source.size):
                target[j] += c * source[j]
    base = n + g
    for t in range(terms.form_at.size - 1):
        c = -2.0 * phi[base + t]
        start, stop = terms.form_at[t], terms.form_at[t + 1]
        for k in range(start, stop):
            i, ck = terms.form[k], c * terms.form_coef[k]
            A[i, P] += ck * terms.offset[t]
            for m in range(start, stop):
                j = terms.form[m]
                if j >= i:
                    A[i, j] += ck * terms.form_coef[m]
    if n > 0:
        scaled = work.scaled
        for t in range(n):
            c, target, source = 2.0 * phi[t], scaled[t], terms.rows[t]
            for j in range(source.size):
                target[j] = c * source[j]
        add_gram(A, scaled, terms.rows, A)


@kernel
def draw_delta(terms, state, work, rng):
    """Draw δ given u."""
    D, P = state.delta.size, work.A.shape[0]
    precision(terms, D, work)
    factor(work.A, work.shift, work.W)
    for j in range(D):
        state.delta[j] = work.W[j, P] + rng.standard_normal()
    solve_upper(work.W, state.delta)


@kernel
def evaluate(terms, delta, work):
    """Compute ρ and Q of all terms."""
    n, g, P = terms.rows.shape[0], terms.groups.shape[0], work.A.shape[0]
    D = delta.size
    for t in range(n):
        row = terms.rows[t]
        r = -row[P]
        for j in range(D):
            r += row[j] * delta[j]
        work.rho[t], work.Q[t] = r, r * r
    for k in range(g):
        G, total = terms.groups[k], terms.group_rest[k]
        for i in range(D):
            half = 0.5 * G[i, i] * delta[i] - G[i, P]
            for j in range(i + 1, D):
                half += G[i, j] * delta[j]
            total += 2.0 * half * delta[i]
        work.Q[n + k] = total
    base = n + g
    for t in range(terms.offset.size):
        r = -terms.offset[t]
        for k in range(terms.form_at[t], terms.form_at[t + 1]):
            r += terms.form_coef[k] * delta[terms.form[k]]
        work.rho[base + t], work.Q[base + t] = r, r * r


@kernel
def draw_elements(terms, u, work, rng):
    """Draw each u given all else. Return the element whose density is improper, or −1."""
    phi, Q, S, term, term_at = work.phi, work.Q, work.S, terms.term, terms.term_at
    slot_at, slot, exponents = terms.slot_at, terms.slot, terms.slot_exponent
    for i in range(u.size):
        start, stop = slot_at[i], slot_at[i + 1]
        a, q = terms.linear[i] + 2.0 * terms.square[i] * u[i], terms.square[i]
        low, high = terms.low[i] - u[i], terms.high[i] - u[i]
        if high <= low:  # held
            continue
        if stop - start == 1:
            total = 0.0
            for k in range(term_at[i], term_at[i + 1]):
                total += phi[term[k]] * Q[term[k]]
            if log_scale.is_gamma(a, q, exponents[start], total, low, high):
                c = log_scale.gamma(a, exponents[start], total, rng)
                new = u[i] + math.log(c) / exponents[start]
                if abs(new) < FURTHEST:
                    u[i] = new
                    for k in range(term_at[i], term_at[i + 1]):
                        phi[term[k]] *= c
                    continue
        e, part = exponents[start:stop], S[: stop - start]
        part[:] = 0.0
        for k in range(term_at[i], term_at[i + 1]):
            part[slot[k]] += phi[term[k]] * Q[term[k]]
        s = log_scale.draw(a, q, e, part, low, high, rng)
        if not abs(s) < np.inf:
            return i
        new = min(max(u[i] + s, -FURTHEST), FURTHEST)
        s = new - u[i]
        u[i] = new
        for k in range(stop - start):
            part[k] = math.exp(e[k] * s)
        for k in range(term_at[i], term_at[i + 1]):
            phi[term[k]] *= part[slot[k]]
    return -1


def workspace(terms: Terms, D: int) -> Work:
    """Return room for a sweep over D coordinates."""
    T, (rows, columns) = terms.coef.size, room(D)
    shift = np.zeros(rows)
    shift[D:] = 1.0
    most = int(np.diff(terms.slot_at).max(initial=0))
    return Work(
        np.empty(T), np.ones(T), np.zeros(T), np.zeros((rows, columns)), np.zeros((rows, columns)),
        np.empty(terms.rows.shape), shift, np.empty(most), np.zeros(T), np.zeros(T), np.zeros(T),
        np.empty(D),
    )  # fmt: skip
