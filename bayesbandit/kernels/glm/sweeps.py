"""Compiled Gibbs sweeps of generalised linear models, by the normals that their likelihoods mix.

η = A θ + b with θ ~ N(Λ⁻¹ s, Λ⁻¹). A likelihood of powers of e^η/(1 + e^η) is normal in η given
Pólya–Gamma variables; a probit one is that of rewards 1(y > 0) of latent y ~ N(η, 1) (Albert and
Chib 1993, J. Amer. Statist. Assoc. 88, 669-679).
"""

import math

import numpy as np

from bayesbandit.kernels.algebra.cholesky import add_gram, factor, solve_lower, solve_upper
from bayesbandit.kernels.algebra.dense import dot
from bayesbandit.kernels.glm.polya_gamma import draw
from bayesbandit.kernels.uncounted_arrays import borrowed, held
from bayesbandit.runtime.compiling import njit

ROUNDING = 1e-14  # of a sum of squares, relative

kernel = njit(cache=True, error_model="numpy", nogil=True)


@kernel
def draw_theta(W, P, theta, rng):
    """Draw θ ~ N(Λ⁻¹η, Λ⁻¹) by what `factor` has made of [Λ η]."""
    for j in range(theta.size):
        theta[j] = W[j, P] + rng.standard_normal()
    solve_upper(W, theta)


@kernel
def polya_gamma(A, shape, prior, padding, theta, draws, rng):
    """Fill draws (S, D) with θ, one a sweep; the chain begins and ends at theta (D,).

    A (n, M): rows as wide as `prior`, with −b behind its D columns, where η = A θ + b. shape (n,):
    b of e^{aη}/(1 + e^η)^b. prior: [Λ s + A'(a − b/2)] as `factor` takes it, and padding (rows,) 1
    where its rows are that, 0 elsewhere.
    """
    n, D, P = shape.size, theta.size, prior.shape[0]
    memory = np.zeros(A.shape), np.empty(prior.shape)
    scaled, W = borrowed(memory)
    A, prior, draws = borrowed(A), borrowed(prior), borrowed(draws)
    for s in range(draws.shape[0]):
        for i in range(n):
            row, left = A[i], scaled[i]
            omega = draw(shape[i], dot(row[:D], theta) - row[P], rng)
            for j in range(D):
                left[j] = -omega * row[j]
        if n > 0:
            add_gram(prior, scaled, A, W)
        factor(W if n > 0 else prior, padding, W)
        draw_theta(W, P, theta, rng)
        for j in range(D):
            draws[s, j] = theta[j]
    held(memory)


@kernel
def above(a, rng):
    """Return a standard normal draw given that it is > a (Robert 1995, Stat. Comput. 5, 121)."""
    if a < 0.45:
        while True:
            z = rng.standard_normal()
            if z > a:
                return z
    rate = 0.5 * (a + math.sqrt(a * a + 4.0))
    while True:
        z = a + rng.standard_exponential() / rate
        if rng.random() <= math.exp(-0.5 * (z - rate) * (z - rate)):
            return z


@kernel
def albert_chib(A, offset, sign, count, U, precision, prior_shift, expands, theta, draws, rng):
    """Draw as `polya_gamma` for probit rewards.

    sign (n,): 1 or −1. count (n,): how often each was seen. U: the factor of Λ + A'diag(count)A,
    which is the same in every sweep. precision, prior_shift: Λ (D, D), s (D,). expands: whether
    each sweep stretches all latent variables by one factor, with θ integrated out (parameter
    expansion: Liu and Wu 1999, J. Amer. Statist. Assoc. 94, 1264–1274). This needs offsets and s of
    0.

    All is counted from where θ stands, e = y − Aθ − b and δ = θ̂ − θ, so that no digits cancel:
    with g = A'e + s − Λθ = U'Uδ, the minimum of Σ(y − Aθ)² + θ'Λθ is Σe² + θ'Λθ − δ'g.
    """
    n, D, rows = offset.size, theta.size, 0.0
    for i in range(n):
        rows += count[i]
    memory = np.empty(D), np.empty(D)
    v, prior = borrowed(memory)
    A, U, precision, draws = borrowed(A), borrowed(U), borrowed(precision), borrowed(draws)
    for s in range(draws.shape[0]):
        for j in range(D):
            prior[j] = dot(precision[j], theta)
            v[j] = prior_shift[j] - prior[j]
        rest = dot(prior, theta)
        for i in range(n):
            row, total = A[i], 0.0
            level = sign[i] * (dot(row[:D], theta) + offset[i])
            for _ in range(int(count[i])):
                e = above(-level, rng)
                total += e
                rest += e * e
            for j in range(D):
                v[j] += sign[i] * total * row[j]
        solve_lower(U, v)
        factor = 1.0
        if expands and rows > 0.0:
            rest = max(rest - dot(v, v), ROUNDING * rest)
            factor = math.sqrt(2.0 * rng.standard_gamma(0.5 * rows) / rest)
        for j in range(D):
            v[j] = factor * v[j] + rng.standard_normal()
        solve_upper(U, v)
        for j in range(D):
            theta[j] = factor * theta[j] + v[j]
            draws[s, j] = theta[j]
    held(memory)
