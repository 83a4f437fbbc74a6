"""Gibbs sweeps for negative binomial rewards of dispersion α, learned or known.

A sweep draws α, takes a Metropolis step of δ, and then sweeps as `augmentation` does. As a function
of α, with μ = e^η,

    log p(r | μ, α) = log Γ(r + α)/(Γ(α) α^r) − (r + α) log(1 + μ/α) + constant.

log α is drawn by a slice sampler (Neal 2003) given η, without the Pólya–Gamma variables. Given
ψ = η − log α instead it mixed 16 times worse (`benchmarks/README.md`).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesbandit.kernels.algebra.cholesky import add_gram, factor, solve_upper
from bayesbandit.kernels.algebra.dense import dot
from bayesbandit.kernels.gibbs import log_scale
from bayesbandit.kernels.gibbs.monomials import (
    FURTHEST,
    Vector,
    conditional,
    evaluate,
    precision,
    weigh,
)
from bayesbandit.kernels.glm import augmentation
from bayesbandit.kernels.glm.families import MOST, log_one_plus_exp, logistic
from bayesbandit.runtime.compiling import njit

kernel = njit(cache=True, error_model="numpy", nogil=True)

LARGE = 10.0  # from this α on, Stirling's series gives log Γ to 1e-13


class Counts(NamedTuple):
    """Rewards and their weights. often: the total weight of each distinct count."""

    reward: Vector  # (n,)
    weight: Vector  # (n,)
    distinct: Vector  # (m,)
    often: Vector  # (m,)


class Dispersion(NamedTuple):
    """A dispersion α, with log α = constant + power u, and the rows."""

    element: int  # of the variable u; −1: α is known, log α = constant
    constant: float
    power: float
    low: float  # bounds of u
    high: float
    positive: float  # total weight of counts above 0: as α → 0 the likelihood falls as α^positive
    counts: Counts
    offset: Vector  # (n,) η = A δ + offset
    prior: NDArray[np.float64]  # `Terms.groups[0]` of the prior alone
    shift: NDArray[np.float64]  # (D, 2); the last column of `Terms.groups[0]` is shift (1, α)'


def counted(reward: Vector, weight: Vector) -> Counts:
    """Return the counts of rewards and weights (n,)."""
    distinct, which = np.unique(reward, return_inverse=True)
    return Counts(reward.copy(), weight.copy(), distinct, np.bincount(which, weight, len(distinct)))


@kernel
def beyond_stirling(x):
    """Return log Γ(x) − (x − ½) log x + x − ½ log 2π, for x ≥ 10."""
    q = 1.0 / (x * x)
    return (1.0 / 12.0 - q * (1.0 / 360.0 - q * (1.0 / 1260.0 - q / 1680.0))) / x


@kernel
def rising(r, alpha):
    """Return log Γ(r + α)/Γ(α)α^r = Σ_{j < r} log(1 + j/α)."""
    if alpha < LARGE:
        return math.lgamma(r + alpha) - math.lgamma(alpha) - r * math.log(alpha)
    tails = beyond_stirling(r + alpha) - beyond_stirling(alpha)
    return (r + alpha - 0.5) * math.log1p(r / alpha) - r + tails


@kernel
def log_likelihood(log_alpha, mean, counts):
    """Return Σ w log p(r | μ, α) of rows with means μ (n,), up to what does not depend on α."""
    alpha, total = math.exp(log_alpha), 0.0
    for k in range(counts.distinct.size):
        total += counts.often[k] * rising(counts.distinct[k], alpha)
    for i in range(mean.size):
        trials = counts.weight[i] * (counts.reward[i] + alpha)
        total -= trials * math.log1p(mean[i] / alpha)
    return total


@kernel
def height(s, u, prior, learned, mean):
    """Return the log density at u + s. prior: (a, q, e, S) of `log_scale.height`, about u."""
    a, q, e, S = prior
    at = learned.constant + learned.power * (u + s)
    return log_scale.height(s, a, q, e, S) + log_likelihood(at, mean, learned.counts)


@kernel
def proper(prior, learned):
    """Return False if the density of u is proved to have no finite integral."""
    (a, q, e, S), tail = prior, learned.power * learned.positive
    for k in range(S.size):
        if S[k] > 0.0:
            return True
    up = log_scale.proper(a + min(tail, 0.0), q, e, S, 0.0, learned.high)
    return q > 0.0 or (up and log_scale.proper(a + max(tail, 0.0), q, e, S, learned.low, 0.0))


@kernel
def move(u, prior, learned, mean, rng):
    """Return the next u by slice sampling, with stepping out and shrinkage."""
    low, high = max(learned.low, -FURTHEST) - u, min(learned.high, FURTHEST) - u
    level = height(0.0, u, prior, learned, mean) - rng.standard_exponential()
    left = -rng.random()
    right = left + 1.0
    while left > low and height(left, u, prior, learned, mean) > level:
        left -= 1.0
    while right < high and height(right, u, prior, learned, mean) > level:
        right += 1.0
    left, right = max(left, low), min(right, high)
    while right - left > 1e-12:
        s = left + rng.random() * (right - left)
        if height(s, u, prior, learned, mean) > level:
            return u + s
        if s < 0.0:
            left = s
        else:
            right = s
    return u


@kernel
def log_density(rows, terms, learned, log_alpha, state, work):
    """Return the log density of δ given all else, up to a constant. It sets terms.groups[0]."""
    alpha, total, counts = math.exp(log_alpha), 0.0, learned.counts
    terms.groups[0] = learned.prior
    evaluate(terms, state.delta, work)
    for t in range(work.phi.size):
        total += work.phi[t] * work.Q[t]
    for k in range(counts.reward.size):
        eta = dot(rows[k, : state.delta.size], state.delta) + learned.offset[k]
        trials = counts.reward[k] + alpha
        each = counts.reward[k] * eta - trials * log_one_plus_exp(eta - log_alpha)
        total += counts.weight[k] * each
    return total


@kernel
def approximate(rows, scaled, terms, learned, log_alpha, state, work):
    """Factor into work.W the normal density of a step of Fisher's scoring from δ."""
    D, P, alpha, counts = state.delta.size, work.A.shape[0], math.exp(log_alpha), learned.counts
    for k in range(counts.reward.size):
        ahead = dot(rows[k, :D], state.delta)
        p = logistic(ahead + learned.offset[k] - log_alpha)
        curvature = counts.weight[k] * alpha * p
        slope = counts.weight[k] * (counts.reward[k] - (counts.reward[k] + alpha) * p)
        rows[k, P] = ahead + slope / curvature if curvature > 0.0 else 0.0
        for j in range(D):
            scaled[k, j] = 0.5 * curvature * rows[k, j]
    terms.groups[0] = learned.prior
    if counts.reward.size > 0:
        add_gram(learned.prior, scaled, rows, terms.groups[0])
    precision(terms, D, work)
    factor(work.A, work.shift, work.W)


@kernel
def leap(rows, scaled, terms, learned, log_alpha, state, work, rng):
    """Take a Metropolis step of δ, proposed by `approximate` (Gamerman 1997, Statistics and
    Computing 7, 57-68). Draws given ω alone hardly move where counts are large or rare."""
    delta, W, P, before = state.delta, work.W, work.A.shape[0], state.delta.copy()
    ratio = -log_density(rows, terms, learned, log_alpha, state, work)
    approximate(rows, scaled, terms, learned, log_alpha, state, work)
    for j in range(delta.size):
        z = rng.standard_normal()
        ratio -= math.log(W[j, j]) - 0.5 * z * z
        delta[j] = W[j, P] + z
    solve_upper(W, delta)
    ratio += log_density(rows, terms, learned, log_alpha, state, work)
    approximate(rows, scaled, terms, learned, log_alpha, state, work)
    for j in range(delta.size):
        z = -W[j, P]
        for k in range(j, delta.size):
            z += W[j, k] * before[k]
        ratio += math.log(W[j, j]) - 0.5 * z * z
    if not -rng.standard_exponential() < ratio:
        delta[:] = before


@kernel
def draw_alpha(rows, learned, terms, state, work, rng):
    """Draw u given δ and the other variables. Return whether its density is proper."""
    i, D, mean = learned.element, state.delta.size, np.empty(learned.offset.size)
    evaluate(terms, state.delta, work)
    a, q = conditional(terms, i, state.u, work)
    prior = a, q, terms.slot_exponent[i], work.S
    for k in range(mean.size):
        eta = dot(rows[k, :D], state.delta) + learned.offset[k]
        mean[k] = math.exp(min(eta, MOST))
    if not proper(prior, learned):
        return False
    state.u[i] = move(state.u[i], prior, learned, mean, rng)
    terms.low[i] = terms.high[i] = state.u[i]
    return True


@kernel
def sweep(rows, scaled, shape, base, learned, terms, moves, state, work, delta, u, kept, tune, rng):
    """Sweep as `augmentation.sweep`, with `draw_alpha` and `leap` before each. Return −1, or the
    element whose density is improper.

    rows, shape, base: what depends on α is filled in. Bounds in `terms` hold α elsewhere.
    """
    i, D, P = learned.element, state.delta.size, base.shape[0]
    n, counts, log_alpha = shape.size, learned.counts, learned.constant
    for s in range(-tune, delta.shape[0]):
        weigh(terms, state.u, work.phi)
        if i >= 0:
            if not draw_alpha(rows, learned, terms, state, work, rng):
                return i
            log_alpha = learned.constant + learned.power * state.u[i]
            weigh(terms, state.u, work.phi)
        alpha = math.exp(log_alpha)
        leap(rows, scaled, terms, learned, log_alpha, state, work, rng)
        for k in range(n):
            shape[k] = counts.weight[k] * (counts.reward[k] + alpha)
            rows[k, P] = log_alpha - learned.offset[k]
        for j in range(D):
            base[j, P] = learned.shift[j, 0] + alpha * learned.shift[j, 1]
        at = max(s, 0)
        one, logs = delta[at : at + 1], u[at : at + 1]
        wrong = augmentation.sweep(
            rows, scaled, shape, base, terms, moves, state, work, one, logs, kept, 0, rng
        )
        if wrong >= 0:
            return wrong
    return -1
