"""Sweeps of `gibbs.sweeps` with new normal observations of rewards before each.

A reward is a normal observation of its linear predictor η = A δ + offset, given an auxiliary
variable: a Pólya–Gamma one where its likelihood is of powers of e^η/(1 + e^η). A probit reward is
1(y > 0) of a latent y ~ N(η, 1) (Albert and Chib 1993, J. Amer. Statist. Assoc. 88, 669-679). The
density's one group of rows holds these observations.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesbandit.kernels.algebra.cholesky import factor, solve_upper, subtract_gram
from bayesbandit.kernels.algebra.dense import add_scaled, copy_into, copy_rows, dot
from bayesbandit.kernels.gibbs import log_scale, sweeps
from bayesbandit.kernels.gibbs.conditionals import (
    Vector,
    draw_delta,
    log_density,
    precision,
    weigh,
)
from bayesbandit.kernels.glm.families import NEGATIVE_BINOMIAL, PROBIT, compiled, totals
from bayesbandit.kernels.glm.newton import predict, pseudo_rows
from bayesbandit.kernels.glm.polya_gamma import draw
from bayesbandit.kernels.uncounted_arrays import unmanaged
from bayesbandit.runtime.compiling import njit

# a function for all that call it: LLVM takes six times as long where the sweep takes all of it in
called = njit(cache=True, error_model="numpy", nogil=True, forceinline=False)

Matrix = NDArray[np.float64]
LEAP_EVERY = 8  # sweeps, where draws given the auxiliary variables move by themselves
MAX_STEPS = 100  # of Newton's method
MAX_HALVINGS = 40  # of a step
LAST_GAIN = 1e-3  # of a log density, by the last step
UNLIKELY_LOG_DENSITY = 20.0  # a log density below the mode's, beside D: draws hardly ever are there
EXPONENTIAL_FROM = 0.45  # sds, from which on a truncated normal is drawn by an exponential proposal


class Rewards(NamedTuple):
    """Rewards (n,) of a family, and what their observations need."""

    kind: int
    number: float
    A: Matrix  # (n, D)
    offset: Vector
    reward: Vector
    weight: Vector
    shape: Vector  # of ω ~ PG(shape, ψ), ψ = A δ + psi_offset
    psi_offset: Vector
    prior: Matrix  # `Terms.groups[0]` of the prior alone
    base: Matrix  # the same, with what observations add in every sweep


@called
def log_posterior(rewards, terms, state, work, eta):
    """Return the log density of δ given all else, up to a constant. It fills eta (n,)."""
    copy_rows(terms.groups[0], rewards.prior)
    # observations are dropped: the posterior has the likelihood of the rewards themselves
    prior = log_density(terms, state.delta, state.u, work)
    predict(rewards.A, rewards.offset, state.delta, eta)
    return prior + totals(rewards.kind, rewards.number, eta, rewards.reward, rewards.weight)


@called
def approximate(rows, scaled, rewards, terms, state, work, eta):
    """Factor into work.W the normal density of a Newton step from δ, where η is eta (n,)."""
    D = state.delta.size
    P = work.A.shape[0]
    n = eta.size
    y = np.empty(n)
    v = np.empty(n)
    pseudo_rows(eta, rewards.kind, rewards.number, rewards.reward, rewards.weight, y, v)
    for i in range(n):
        # an observation y of η with precision v adds −v (a'δ + offset − y)²/2 to the log density
        rows[i, P] = y[i] - rewards.offset[i]
        for j in range(D):
            scaled[i, j] = 0.5 * v[i] * rows[i, j]
    copy_rows(terms.groups[0], rewards.prior)
    if n > 0:
        subtract_gram(rewards.prior, scaled, rows, terms.groups[0])
    precision(terms, D, work)
    factor(work.A, work.diagonal, work.W)


@compiled
def climb(rows, scaled, rewards, terms, state, work):
    """Move δ to its mode given the scales, if it is much likelier there: chains hardly move from
    afar. By Newton steps, halved until the log density does not fall."""
    delta = state.delta
    P = work.A.shape[0]
    end = work.direction
    first = delta.copy()
    eta = np.empty(rewards.reward.size)
    weigh(terms, state.u, work.phi)
    here = begin = log_posterior(rewards, terms, state, work, eta)
    for _ in range(MAX_STEPS):
        last = delta.copy()
        approximate(rows, scaled, rewards, terms, state, work, eta)
        for j in range(delta.size):
            # Newton's step ends at the mode of the quadratic, U⁻¹(U'⁻¹η)
            end[j] = work.W[j, P]
        solve_upper(work.W, end, delta.size)
        copy_into(delta, end)
        there = log_posterior(rewards, terms, state, work, eta)
        # halve the step until the log density does not fall
        for _ in range(MAX_HALVINGS):
            if there >= here:
                break
            for j in range(delta.size):
                delta[j] = 0.5 * (delta[j] + last[j])
            there = log_posterior(rewards, terms, state, work, eta)
        if not there > here + LAST_GAIN:
            break
        here = there
    if not here > begin + delta.size + UNLIKELY_LOG_DENSITY:
        copy_into(delta, first)


@compiled
def leap(rows, scaled, rewards, terms, state, work, rng):
    """Take a Metropolis step of δ, proposed by `approximate` (Gamerman 1997, Statistics and
    Computing 7, 57-68). Draws given the auxiliary variables alone hardly move where counts are
    large or rare, or where contexts are so large that rewards are certain."""
    delta = state.delta
    W = work.W
    P = work.A.shape[0]
    proposed = work.direction
    before = state.delta.copy()
    eta = np.empty(rewards.reward.size)
    # accepted with min(1, p(δ')q(δ | δ') / p(δ)q(δ' | δ)); `ratio` is the log of the fraction
    ratio = -log_posterior(rewards, terms, state, work, eta)
    approximate(rows, scaled, rewards, terms, state, work, eta)
    for j in range(delta.size):
        z = rng.standard_normal()
        # less the log density of the proposal: log |U| − z'z/2
        ratio -= math.log(W[j, j]) - 0.5 * z * z
        # δ' = U⁻¹(U'⁻¹η + z), by the approximation at δ
        proposed[j] = W[j, P] + z
    solve_upper(W, proposed, delta.size)
    copy_into(delta, proposed)
    ratio += log_posterior(rewards, terms, state, work, eta)
    approximate(rows, scaled, rewards, terms, state, work, eta)
    for j in range(delta.size):
        # and that of the way back: z = U before − U'⁻¹η, by the approximation at the new δ
        z = -W[j, P]
        for k in range(j, delta.size):
            z += W[j, k] * before[k]
        ratio += math.log(W[j, j]) - 0.5 * z * z
    if not -rng.standard_exponential() < ratio:
        copy_into(delta, before)


@compiled
def above(a, rng):
    """Return a standard normal draw given that it is > a (Robert 1995, Stat. Comput. 5, 121)."""
    if a < EXPONENTIAL_FROM:
        while True:
            z = rng.standard_normal()
            if z > a:
                return z
    # the exponential proposal whose acceptance is largest
    rate = 0.5 * (a + math.sqrt(a * a + 4.0))
    while True:
        z = a + rng.standard_exponential() / rate
        if rng.random() <= math.exp(-0.5 * (z - rate) * (z - rate)):
            return z


@called
def draw_by_signs(rows, rewards, terms, state, work, rng):
    """Draw a latent y of each probit reward given δ, and δ given these.

    Between the two all y are stretched by one factor g, which leaves their signs: it is drawn with
    δ integrated out (Liu and Wu 1999, J. Amer. Statist. Assoc. 94, 1264-1274).
    """
    delta = state.delta
    D = delta.size
    group = terms.groups[0]
    P = group.shape[0]
    A = work.A
    W = work.W
    # all is counted from where δ stands, so that no digits cancel: y = X δ + left. The prior has
    # the precision Λ₀ and the shift h₀
    copy_rows(group, rewards.prior)
    precision(terms, D, work)
    shift = work.direction
    shift[:] = 0.0
    for i in range(D):
        # of Λ₀, A has the upper triangle
        shift[i] -= A[i, i] * delta[i]
        for j in range(i + 1, D):
            shift[i] -= A[i, j] * delta[j]
            shift[j] -= A[i, j] * delta[i]
    square = -dot(delta, shift)
    first = 0.0
    for i in range(D):
        first += delta[i] * A[i, P]
    count = 0.0
    for i in range(rewards.reward.size):
        row = rows[i]
        offset = rewards.offset[i]
        sign = 1.0 if rewards.reward[i] > 0.5 else -1.0
        below = -sign * (dot(row[:D], delta) + offset)
        total = 0.0
        # a reward of whole weight w is w rewards, each with a y of its own; their sum is enough, as
        # they share a row
        for _ in range(int(rewards.weight[i])):
            left = sign * above(below, rng) + offset
            total += left
            square += left * left
            count += 1.0
        first += total * offset
        add_scaled(shift[:D], total, row)
    # b = X'left − Λ₀δ goes into a column of its own: the one before has h = h₀ − X'offset
    copy_rows(group, rewards.base)
    for j in range(D):
        group[j, P + 1] = -0.5 * shift[j]
    precision(terms, D, work)
    factor(A, work.diagonal, W)
    g = 1.0
    if count > 0.0:
        # with Λ = U'U and v = U'⁻¹b, up to a constant, log p(gy) is
        # −½ g² (left'left + δ'Λ₀δ − v'v) + g (left'offset + δ'h₀ + v'U'⁻¹h)
        for j in range(D):
            square -= W[j, P + 1] * W[j, P + 1]
            first += W[j, P + 1] * W[j, P]
        # of s = log g; N of them are stretched, by the Jacobian e^{Ns}
        S = np.array([-0.5 * square, first])
        g = math.exp(log_scale.draw(count, 0.0, np.array([2.0, 1.0]), S, -np.inf, np.inf, rng))
    for j in range(D):
        # given gy, δ has the shift h + gX'y = gΛδ + h + g b
        shift[j] = W[j, P] + g * W[j, P + 1] + rng.standard_normal()
    solve_upper(W, shift, D)
    for j in range(D):
        delta[j] = g * delta[j] + shift[j]


@called
def observe(rows, scaled, rewards, delta, group, rng):
    """Draw observations given δ, and fill in the group of their statistics."""
    n = rewards.reward.size
    D = delta.size
    P = group.shape[0]
    copy_rows(group, rewards.base)
    for i in range(n):
        row = rows[i]
        left = scaled[i]
        # (10): given ω, r is a normal observation of ψ with precision ω; `base` has what is linear
        # in ψ
        row[P] = -rewards.psi_offset[i]
        omega = draw(rewards.shape[i], dot(row[:D], delta) - row[P], rng)
        for j in range(D):
            # base − X' diag(ω/2) X: the group's Σ c FF' with c = −ω/2
            left[j] = 0.5 * omega * row[j]
    if n > 0:
        subtract_gram(rewards.base, scaled, rows, group)
    # the upper triangle was filled
    for i in range(D):
        for j in range(i):
            group[i, j] = group[j, i]


@compiled
def sweep(rows, scaled, rewards, terms, moves, state, work, delta, u, kept, tune, rng):
    """Climb, and sweep as `sweeps.sweep`, of terms whose one group is of observations of rewards.

    rows, scaled (n, M): A in as many columns as a group has, and room.
    """
    rows = unmanaged(rows)
    scaled = unmanaged(scaled)
    rewards = unmanaged(rewards)
    terms = unmanaged(terms)
    moves = unmanaged(moves)
    state = unmanaged(state)
    work = unmanaged(work)
    delta = unmanaged(delta)
    u = unmanaged(u)
    kept = unmanaged(kept)
    climb(rows, scaled, rewards, terms, state, work)
    for s in range(-tune, delta.shape[0]):
        weigh(terms, state.u, work.phi)
        if rewards.kind == NEGATIVE_BINOMIAL or s % LEAP_EVERY == 0:
            leap(rows, scaled, rewards, terms, state, work, rng)
        if rewards.kind == PROBIT:
            draw_by_signs(rows, rewards, terms, state, work, rng)
        else:
            observe(rows, scaled, rewards, state.delta, terms.groups[0], rng)
            draw_delta(terms, state, work, rng)
        wrong = sweeps.draw_rest(terms, moves, state, work, rng)
        if wrong >= 0 and s >= 0:
            return wrong
        sweeps.keep(s, state, delta, u, kept)
    return -1
