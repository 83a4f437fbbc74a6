"""Compiled sweeps of the Gibbs sampler in `mixture.py`: σ² and θ given the scales, from d × d
statistics or, for n < d, from the rows themselves.

A sweep takes from the generator: what `scales.draw_scales` takes; a gamma for σ², where θ is
integrated out; d normals; from rows n more; a gamma for σ², where it is drawn given θ.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesbandit.kernels.algebra import dense
from bayesbandit.kernels.algebra.cholesky import add_gram, factor, solve_lower, solve_upper
from bayesbandit.kernels.gibbs.scales import Vector, bounded, draw_scales, fill_normal
from bayesbandit.kernels.uncounted_arrays import borrowed, held
from bayesbandit.runtime.compiling import njit

Matrix = NDArray[np.float64]
ROUNDING = 1e-15  # a residual sum of squares below this share of rr is rounding
WIDE, MOST_WEAK = 1e6, 7  # prior variances of x_jθ_j over σ² beyond this are weak, so many at most

kernel = njit(cache=True, error_model="numpy", nogil=True)


class Statistics(NamedTuple):
    """What the data say in d × d; `gibbs.statistics` makes it."""

    A: Matrix  # of shape room(d): X'WX, and behind it X'Wr
    rr: float  # r'Wr
    n: float  # rows


class Rows(NamedTuple):
    """The data themselves, for n < d; `gibbs.rows` makes it."""

    xt: Matrix  # (d, padded(n)): √w X, transposed
    r: Vector  # (n,): √w r
    rr: float  # r'Wr


class Draws(NamedTuple):
    """S kept sweeps."""

    theta: Matrix  # (S, d)
    inv_tau2: Matrix  # (S, d)
    lambda2: Vector  # (S,)
    sigma2: Vector  # (S,)


class RowsWork(NamedTuple):
    """Workspace of `draw_from_rows`; P = padded(n), and M columns hold r and the weak columns too.

    A weak column has no prior, or one so wide that XDX' would drown the others' digits.
    """

    weak: NDArray[np.int64]  # (F,) room for the f ≤ F weak columns
    ratio: Vector  # (d,) ‖x_j‖²/shift_j
    squares: Vector  # (d,) ‖x_j‖²
    D: Vector  # (d,) 1/shift_j, 0 for weak columns
    base: Matrix  # (P, M): nothing, and behind it the weak columns and r
    W: Matrix  # (P, M)
    scaled_xt: Matrix  # (d, M)
    ones: Vector  # (P,)
    shift: Vector  # (d,)
    u: Vector  # (d,)
    e: Vector  # (P,)


@kernel
def draw_sigma2(prior, state, half_count, loss, rr, rng):
    """Draw σ² ~ InverseGamma(a0 + half_count, b0 + loss/2)."""
    scale = prior.noise_scale + 0.5 * max(loss, ROUNDING * rr)
    state.sigma2[0] = bounded(scale / rng.standard_gamma(prior.noise_shape + half_count))


@kernel
def fill_shift(prior, state, shift):
    """Fill in shift_j = σ²/(s_j τ_j²). Return how many columns are flat, scaled by σ², and
    informative otherwise."""
    flat, scaled, other = 0, 0, 0
    sigma2 = state.sigma2[0]
    for j in range(state.theta.size):
        k = state.inv_tau2[j]
        shift[j] = k if prior.scaled[j] else k * sigma2
        flat += k == 0.0
        scaled += k > 0.0 and prior.scaled[j]
        other += k > 0.0 and not prior.scaled[j]
    return flat, scaled, other


@kernel
def draw_from_statistics(data, prior, state, shift, W, z, v, rng):
    """Draw σ² and θ given the scales; shift (rows of A, 1 behind d), W (as A), z, v (d,) are
    workspace.

    With A + diag(shift) = U'U and y = U'⁻¹b: θ = U⁻¹(y + σz). RSS + θ'diag(shift)θ is rr − y'y at
    its minimum, and σ²z'z more at θ.
    """
    theta, P = state.theta, W.shape[0]
    flat, scaled, other = fill_shift(prior, state, shift)
    factor(data.A, shift, W)
    loss = data.rr
    for j in range(theta.size):
        v[j] = W[j, P]
        loss -= v[j] * v[j]
    if not prior.noise_known and other == 0:
        draw_sigma2(prior, state, 0.5 * (data.n - flat), loss, data.rr, rng)
    sigma = math.sqrt(state.sigma2[0])
    fill_normal(rng, z)
    for j in range(theta.size):
        c = sigma * z[j]
        v[j] += c
        loss += c * c
    solve_upper(W, v)
    for j in range(theta.size):
        theta[j] = v[j]
    if not prior.noise_known and other > 0:
        for j in range(theta.size):
            if not prior.scaled[j]:
                loss -= shift[j] * theta[j] * theta[j]
        draw_sigma2(prior, state, 0.5 * (data.n + scaled), loss, data.rr, rng)


@kernel
def rows_work(data, state):
    """Return workspace for the rows of `data` and the columns that are flat in `state`."""
    d, P = state.theta.size, data.xt.shape[1]
    most = MOST_WEAK
    squares = np.empty(d)
    for j in range(d):
        most += state.inv_tau2[j] == 0.0
        squares[j] = dense.dot(data.xt[j], data.xt[j])
    M = (P + most + 8) // 8 * 8
    return RowsWork(
        np.empty(most, np.int64), np.empty(d), squares, np.empty(d), np.zeros((P, M)),
        np.zeros((P, M)), np.zeros((d, M)), np.ones(P), np.empty(d), np.empty(d), np.empty(P),
    )  # fmt: skip


@kernel
def set_apart(data, work):
    """Fill in D, the weak columns, the widest first, and `base`; how many they are."""
    shift, ratio, D = work.shift, work.ratio, work.D
    f, P, n = 0, work.base.shape[0], data.r.size
    for j in range(D.size):
        ratio[j] = work.squares[j] / shift[j] if shift[j] > 0.0 else np.inf
        D[j] = 1.0 / shift[j] if shift[j] > 0.0 else 0.0
    while f < work.weak.size:
        widest, j = WIDE, -1
        for k in range(D.size):
            if ratio[k] > widest:
                widest, j = ratio[k], k
        if j < 0:
            break
        work.weak[f], ratio[j], D[j] = j, 0.0, 0.0
        for i in range(n):
            work.base[i, P + f] = data.xt[j, i]
        f += 1
    for i in range(n):
        work.base[i, P + f] = data.r[i]
    return f


@kernel
def project_weak(work, f):
    """Return (U, g, loss): V'V + diag(shift) = U'U, g = U'⁻¹V'y, loss = y'y − g'g.

    V (P, f) and y are what `factor` has made of the weak columns and r, in W's last columns.
    """
    W, P = work.W, work.W.shape[0]
    U, g, loss = np.zeros((f, f)), np.zeros(f), 0.0
    for a in range(f):
        U[a, a] = work.shift[work.weak[a]]
    for i in range(P):
        y = W[i, P + f]
        loss += y * y
        for a in range(f):
            g[a] += W[i, P + a] * y
            for c in range(a, f):
                U[a, c] += W[i, P + a] * W[i, P + c]
    dense.factor(U)
    solve_lower(U, g)
    for a in range(f):
        loss -= g[a] * g[a]
    return U, g, loss


@kernel
def draw_from_rows(data, prior, state, work, rng):
    """Draw σ² and θ given the scales, in n × n: Bhattacharya, Chakraborty and Mallick (2016).

    With D = diag(shift)⁻¹ and M = XDX' + I: u ~ N(0, σ²D), e = r − Xu − σδ, θ = u + DX'M⁻¹e. Weak
    columns F come first, from r ~ N(X_F θ_F, σ²M), and are then taken out of r.
    """
    theta, xt, r = state.theta, data.xt, data.r
    u, e, D, W = work.u, work.e, work.D, work.W
    d, n, P = theta.size, r.size, W.shape[0]
    flat, scaled, other = fill_shift(prior, state, work.shift)
    f = set_apart(data, work)
    for j in range(d):
        x, scaled_x = xt[j], work.scaled_xt[j]
        for i in range(P):
            scaled_x[i] = -D[j] * x[i]
    add_gram(work.base, xt, work.scaled_xt, W)
    factor(W, work.ones, W)
    U, g, loss = project_weak(work, f)
    if not prior.noise_known and other == 0:
        draw_sigma2(prior, state, 0.5 * (n - flat), loss, data.rr, rng)
    sigma = math.sqrt(state.sigma2[0])
    fill_normal(rng, u)
    fill_normal(rng, e[:n])
    for a in range(f):
        g[a] += sigma * u[work.weak[a]]
    solve_upper(U, g)
    for j in range(d):
        u[j] *= sigma * math.sqrt(D[j])
    for a in range(f):
        u[work.weak[a]] = g[a]
    for i in range(P):
        e[i] = r[i] - sigma * e[i] if i < n else 0.0
    for j in range(d):
        dense.add_scaled(e, -u[j], xt[j])
    solve_lower(W, e)
    solve_upper(W, e)
    for j in range(d):
        theta[j] = u[j] + D[j] * dense.dot(xt[j], e)
    if not prior.noise_known and other > 0:
        for i in range(n):
            e[i] = r[i]
        for j in range(d):
            dense.add_scaled(e, -theta[j], xt[j])
        loss = dense.dot(e, e)
        for j in range(d):
            if prior.scaled[j]:
                loss += work.shift[j] * theta[j] * theta[j]
        draw_sigma2(prior, state, 0.5 * (n + scaled), loss, data.rr, rng)


@kernel
def keep(state, draws, s):
    """Store the state as the s-th draw."""
    theta, inv_tau2 = draws.theta[s], draws.inv_tau2[s]
    for j in range(theta.size):
        theta[j] = state.theta[j]
        inv_tau2[j] = state.inv_tau2[j]
    draws.lambda2[s] = state.lambda2[0]
    draws.sigma2[s] = state.sigma2[0]


@kernel
def sweep_statistics(data, prior, state, draws, thin, rng):
    """Fill `draws`, one of every `thin` sweeps."""
    data, prior, state, draws = borrowed(data), borrowed(prior), borrowed(state), borrowed(draws)
    d, P = state.theta.size, data.A.shape[0]
    memory = np.ones(P), np.zeros(data.A.shape), np.empty(d), np.empty(d)
    shift, W, first, second = borrowed(memory)
    for s in range(draws.theta.shape[0]):
        for _ in range(thin):
            draw_scales(prior, state, first, second, rng)
            draw_from_statistics(data, prior, state, shift, W, first, second, rng)
        keep(state, draws, s)
    held(memory)


@kernel
def sweep_rows(data, prior, state, draws, thin, rng):
    """Do as `sweep_statistics`, from rows."""
    data, prior, state, draws = borrowed(data), borrowed(prior), borrowed(state), borrowed(draws)
    d, memory = state.theta.size, rows_work(data, state)
    work, pair = borrowed(memory), (np.empty(d), np.empty(d))
    first, second = borrowed(pair)
    for s in range(draws.theta.shape[0]):
        for _ in range(thin):
            draw_scales(prior, state, first, second, rng)
            draw_from_rows(data, prior, state, work, rng)
        keep(state, draws, s)
    held(memory), held(pair)
