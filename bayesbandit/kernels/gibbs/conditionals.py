"""Gibbs sweeps over log densities that are sums of monomials times squares.

In δ (D,), real, and u (P,), the logarithms of positive variables,

    log p = Σ_i (a_i u_i + q_i u_i²) + Σ_t φ_t Q_t,    φ_t = c_t exp(Σ e u),

where Q_t is the square of an affine form ρ_t of δ, a sum of such squares, or 1. Terms come in this
order: rows (each a square of a dense form), groups of rows with the same φ (as statistics), sparse
squares, and monomials (Q = 1). A sweep draws δ given u, which is Gaussian, each u_i given the rest,
which is of the kind of `log_scale`, and then takes the steps of `sweeps`. A u by which all squares
of some δ are scaled alike, as by the noise of a LASSO, is drawn together with these.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesbandit.kernels.algebra.cholesky import factor, multiply, room, solve_upper, subtract_gram
from bayesbandit.kernels.algebra.dense import add_scaled, copy_into
from bayesbandit.kernels.gibbs import log_scale
from bayesbandit.runtime.compiling import njit

compiled = njit(cache=True, error_model="numpy", nogil=True)

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Index = NDArray[np.int64]
MAX_ABS_LOG_SCALE = 230.0  # |u| is kept below it: exp(u) within 1e±100


class Terms(NamedTuple):
    """The log density of n rows, g groups, m sparse squares and the monomials, T terms in all."""

    linear: Vector  # (P,) a
    square: Vector  # (P,) q
    low: Vector  # (P,) walls of u; where they meet, u is held
    high: Vector  # (P,)
    coef: Vector  # (T,) c
    element_at: Index  # (T + 1,)
    element: Index  # the elements of u in each term, those of term t from element_at[t] on
    exponent: Vector  # their exponents
    term_at: Index  # (P + 1,)
    term: Index  # the terms of each element, those of element i from term_at[i] on
    slot: Index  # which of `slot_exponent` the element has in the term
    slot_exponent: Vector  # (E,) the distinct exponents
    rows: Matrix  # (n, room): the forms of rows, and behind them their offsets
    groups: NDArray[np.float64]  # (g, *room): Σ c FF', and behind it Σ c F offset
    group_rest: Vector  # (g,) Σ c offset²
    form_at: Index  # (m + 1,)
    form_index: Index  # the coordinates in each sparse square, those of square k from form_at[k] on
    form_coef: Vector  # their coefficients
    offset: Vector  # (m,) of sparse squares: Q = (form − offset)²
    common: int  # the element of u that scales all squares of δ[:scaled] alike
    scaled: int  # 0: there is none


class MonomialState(NamedTuple):
    """Where a chain stands."""

    delta: Vector  # (D,)
    u: Vector  # (P,)


class Work(NamedTuple):
    """What a sweep keeps for itself."""

    phi: Vector  # (T,)
    Q: Vector  # (T,)
    rho: Vector  # (T,) the affine forms, of rows and sparse squares
    image: Matrix  # (g, P) half the gradients of the groups' Q: Gδ − F'offset
    A: Matrix  # room(D): the precision, and the shift behind it
    W: Matrix
    scaled: Matrix  # as rows
    diagonal: Vector  # 1 where rows of A are padding
    S: Vector
    extended: Vector  # (columns of A,) δ, and behind it zeros, or −1 for the offsets
    direction: Vector  # (columns of A,) in which a move stretches δ, and zeros
    change: Matrix  # (g, P) what it adds to `image`
    slope: Vector  # (T,) and to ρ
    first: Vector  # (T,) of Q/2 along it
    second: Vector  # (T,) the curvature of Q/2


@compiled
def weigh(terms, u, phi):
    """Compute φ of all terms."""
    for t in range(phi.size):
        total = 0.0
        for k in range(terms.element_at[t], terms.element_at[t + 1]):
            total += terms.exponent[k] * u[terms.element[k]]
        phi[t] = terms.coef[t] * math.exp(total)


@compiled
def precision(terms, D, work):
    """Compute from φ the precision Λ of δ given u, in A's upper triangle, and η behind it.

    φ < 0 for squares: Λ = −2 Σ φ aa', η = −2 Σ φ o a, of squares (a'δ − o)².
    """
    A = work.A
    phi = work.phi
    n = terms.rows.shape[0]
    g = terms.groups.shape[0]
    P = A.shape[0]
    if g == 0:
        A[:] = 0.0
    for k in range(g):
        # groups of rows: G and its right-hand side were summed once
        c = -2.0 * phi[n + k]
        for i in range(D):
            row = A[i, i:]
            own = terms.groups[k, i, i:]
            if k > 0:
                add_scaled(row, c, own)
            else:
                for j in range(row.size):
                    row[j] = c * own[j]
    for t in range(terms.offset.size):
        c = -2.0 * phi[n + g + t]
        for k in range(terms.form_at[t], terms.form_at[t + 1]):
            i = terms.form_index[k]
            # (a'δ − o)² of few coordinates: the entries i, j of −2φ aa'
            one = c * terms.form_coef[k]
            A[i, P] += one * terms.offset[t]
            for j in range(k, terms.form_at[t + 1]):
                A[i, terms.form_index[j]] += one * terms.form_coef[j]
    if n > 0:
        scaled = work.scaled
        for t in range(n):
            # rows, each with a φ of its own: A ← A − X' diag(2φ) X, and so their right-hand sides
            c = 2.0 * phi[t]
            target = scaled[t]
            source = terms.rows[t]
            for j in range(source.size):
                target[j] = c * source[j]
        subtract_gram(A, scaled, terms.rows, A)


@compiled
def sparse_form(terms, t, v):
    """Return the form of sparse square t at v, without its offset."""
    total = 0.0
    for k in range(terms.form_at[t], terms.form_at[t + 1]):
        total += terms.form_coef[k] * v[terms.form_index[k]]
    return total


@compiled
def evaluate(terms, delta, work):
    """Compute ρ and Q of all terms."""
    n = terms.rows.shape[0]
    g = terms.groups.shape[0]
    P = work.A.shape[0]
    rho = work.rho
    Q = work.Q
    # offsets stand behind forms: a'δ − o = [a o]'[δ −1]
    copy_into(work.extended[: delta.size], delta)
    work.extended[P] = -1.0
    multiply(terms.rows, work.extended, rho)
    for t in range(n):
        Q[t] = rho[t] * rho[t]
    for k in range(g):
        G = terms.groups[k]
        image = work.image[k]
        total = terms.group_rest[k]
        multiply(G, work.extended, image)
        for j in range(delta.size):
            # δ'Gδ − 2 δ'F'o + Σ c o²
            total += delta[j] * (image[j] - G[j, P])
        # Σ c (f'δ − o)², c ≤ 0, but for rounding: above 0 the density would grow without end
        Q[n + k] = min(total, 0.0)
    for k in range(terms.offset.size):
        t = n + g + k
        rho[t] = sparse_form(terms, k, delta) - terms.offset[k]
        Q[t] = rho[t] * rho[t]


@compiled
def log_density(terms, delta, u, work):
    """Compute φ, ρ and Q of all terms; return the log density of δ and u."""
    weigh(terms, u, work.phi)
    evaluate(terms, delta, work)
    total = 0.0
    for t in range(work.phi.size):
        total += work.phi[t] * work.Q[t]
    for i in range(u.size):
        total += (terms.linear[i] + terms.square[i] * u[i]) * u[i]
    return total


@compiled
def conditional(terms, i, u, work):
    """Return a and q of the log density of u_i + s, as `log_scale` has it; S goes into `work`."""
    S = work.S
    for k in range(S.size):
        S[k] = 0.0
    for k in range(terms.term_at[i], terms.term_at[i + 1]):
        t = terms.term[k]
        # terms with the same exponent of u_i are one exponential in s
        S[terms.slot[k]] += work.phi[t] * work.Q[t]
    # α (u + s) + β (u + s)² = (α + 2 β u) s + β s² and what s does not change
    return terms.linear[i] + 2.0 * terms.square[i] * u[i], terms.square[i]


@compiled
def move_element(terms, i, s, u, work):
    """Add s to u_i, which is kept within its limits, and follow with φ. Return what was added."""
    S = work.S
    # what u moves by once it is bounded: φ must follow the same step
    s = min(max(u[i] + s, -MAX_ABS_LOG_SCALE), MAX_ABS_LOG_SCALE) - u[i]
    u[i] += s
    for k in range(S.size):
        # φ ← φ exp(e s): one exponential for each distinct e
        S[k] = math.exp(terms.slot_exponent[k] * s)
    for k in range(terms.term_at[i], terms.term_at[i + 1]):
        work.phi[terms.term[k]] *= S[terms.slot[k]]
    return s


@compiled
def draw_common(terms, state, work, rng):
    """Draw the u that scales squares of δ₁ = δ[:scaled] alike, with δ₁ integrated out. Return the
    factor by which it scales standard deviations of δ₁.

    δ₁ stands at its mean given the rest, where these squares are smallest. With e the exponent of
    u, J coordinates in δ₁ and the sum over its squares, in steps s of u,

        ∫ exp(e^{es} Σ φ Q) dδ₁ ∝ exp(−½ e J s + e^{es} max Σ φ Q).
    """
    i = terms.common
    low = terms.low[i] - state.u[i]
    high = terms.high[i] - state.u[i]
    if high <= low:  # held
        return 1.0
    evaluate(terms, state.delta, work)
    a, q = conditional(terms, i, state.u, work)
    # rows are the first terms of u, and have its exponent in all squares of δ₁
    e = terms.slot_exponent[terms.slot[terms.term_at[i]]]
    a -= 0.5 * e * terms.scaled
    s = log_scale.draw(a, q, terms.slot_exponent, work.S, low, high, rng)
    if not abs(s) < np.inf:
        return 1.0
    return math.exp(-0.5 * e * move_element(terms, i, s, state.u, work))


@compiled
def draw_delta(terms, state, work, rng):
    """Draw δ ~ N(Λ⁻¹η, Λ⁻¹) given u: with Λ = U'U it is U⁻¹(U'⁻¹η + z), z ~ N(0, I).

    A common scale of δ₁ is drawn in between.
    """
    delta = state.delta
    mean = work.extended
    z = work.direction
    J = terms.scaled
    precision(terms, delta.size, work)
    # from [Λ η] it leaves [U U'⁻¹η]: the mean Λ⁻¹η is U⁻¹ times the last column
    P = work.A.shape[0]
    factor(work.A, work.diagonal, work.W)
    mean[P] = 0.0
    for j in range(delta.size):
        # factor left U'⁻¹η in column P
        mean[j] = work.W[j, P]
        z[j] = rng.standard_normal()
        if j >= J:
            mean[j] += z[j]
            z[j] = 0.0
    solve_upper(work.W, mean, delta.size)
    copy_into(delta, mean)
    if J > 0:
        sd = draw_common(terms, state, work, rng)
        solve_upper(work.W, z, delta.size)
        # z is of δ₁ alone, and so is U⁻¹z
        add_scaled(delta, sd, z)


@compiled
def draw_elements(terms, u, work, rng):
    """Draw each u given all else. An element whose density is improper keeps its value. Return the
    last such element, or −1."""
    wrong = -1
    for i in range(u.size):
        low = terms.low[i] - u[i]
        high = terms.high[i] - u[i]
        if high <= low:  # held
            continue
        a, q = conditional(terms, i, u, work)
        s = log_scale.draw(a, q, terms.slot_exponent, work.S, low, high, rng)
        if abs(s) < np.inf:
            move_element(terms, i, s, u, work)
        else:
            wrong = i
    return wrong


def workspace(terms: Terms, D: int) -> Work:
    """Return room for a sweep over D coordinates."""
    T = terms.coef.size
    g = len(terms.groups)
    shape = room(D)
    diagonal = np.zeros(shape[0])
    diagonal[D:] = 1.0
    return Work(
        phi=np.empty(T),
        # monomials have Q = 1, which no sweep changes
        Q=np.ones(T),
        rho=np.zeros(T),
        image=np.zeros((g, shape[0])),
        A=np.zeros(shape),
        W=np.zeros(shape),
        scaled=np.empty(terms.rows.shape),
        diagonal=diagonal,
        S=np.empty(terms.slot_exponent.size),
        extended=np.zeros(shape[1]),
        direction=np.zeros(shape[1]),
        change=np.empty((g, shape[0])),
        slope=np.zeros(T),
        first=np.zeros(T),
        second=np.zeros(T),
    )
