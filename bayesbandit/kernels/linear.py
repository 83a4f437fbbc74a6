"""One arm's weighted ridge regression, kept in one row of numbers.

B = X'WX + λI, θ = B⁻¹X'Wr, P = B⁻¹. A row holds, after a head of scalars, θ and b = X'Wr (D each),
P and G = X'WX (D × D each), and for cross-validation each fold's (n, Σwr², b, G). Arguments are
trusted: they were checked at the door.
"""

import numpy as np
from numba import njit

from bayesbandit.kernels.dense import (
    add_outer,
    add_scaled,
    dot,
    factor_by,
    invert,
    solve,
    symmetric_times,
)

# The head of an arm: rows, Σw, Σwr², penalised loss min‖r − Xθ‖²_W + λ‖θ‖², noise variance, degrees
# of freedom, λ, the divisor of the weights, the number of rows at which to factorise anew, the
# shift: with an unpenalised intercept, Σwr² and b are of rewards less the arm's first one, because
# the squared residuals of large rewards drown in rounding (Welford's remedy); and by the empirical
# Bayes rule ‖r − Xθ‖²_W.
N, SUM_W, SUM_WRR, LOSS, SIGMA2, DF, LAM, W_BAR, DUE, SHIFT, RESIDUAL = range(11)
HEAD = 16  # a whole number of cache lines

# The settings shared by all arms, one array: columns, penalised columns, variance rule, its number
# (the known σ², or the rows that a prior of σ² stands for), floor, normal-inverse-gamma shape and
# scale, normalise weights to mean 1 (0 or 1), schedule (m > 0: every m rows; −g: at growth by g),
# number of folds, then the λ grid, largest first. Where no column is penalised alike, but
# θ ~ N(m, σ²Λ⁻¹): one λ, without meaning, then Λ, Λm and m'Λm.
D_, PENALISED, RULE, NUMBER, FLOOR, SHAPE0, SCALE0, NORMALIZE, SCHEDULE, FOLDS = range(10)
GRID = 10

RSS_N, RSS, NIG, KNOWN_SIGMA2, EMPIRICAL_BAYES = range(5)

STEEP = 1e4  # the factor s of a rank-one update from which on a factorisation takes its place


@njit(cache=True)
def stride(D):
    """Length of a stored row: D filled up to whole cache lines with zeros."""
    return (D + 7) // 8 * 8


def core_width(D: int) -> int:
    """Numbers that an arm's head, θ, b and P take: what `moments` reads, at the front."""
    return HEAD + (2 + D) * stride(D)


def arm_width(D: int, folds: int) -> int:
    """Numbers that one arm takes."""
    return stride(core_width(D) + D * stride(D) + folds * (2 + D + D * D))


@njit(cache=True)
def theta_of(arm, D):
    return arm[HEAD : HEAD + D]


@njit(cache=True)
def b_of(arm, D):
    start = HEAD + stride(D)
    return arm[start : start + D]


@njit(cache=True)
def P_of(arm, D):
    """P row after row, each filled up with zeros to the stride."""
    M = stride(D)
    start = HEAD + 2 * M
    return arm[start : start + D * M]


@njit(cache=True)
def G_of(arm, D):
    """G row after row, each filled up with zeros to the stride."""
    M = stride(D)
    start = HEAD + (2 + D) * M
    return arm[start : start + D * M]


@njit(cache=True)
def matrix(flat, D):
    """P or G as (D, stride)."""
    return flat.reshape(D, stride(D))


@njit(cache=True)
def fold_of(arm, D, f):
    """A fold's own statistics: [n, Σwr², b, G] as one slice."""
    size = 2 + D + D * D
    start = HEAD + (2 + 2 * D) * stride(D) + f * size
    return arm[start : start + size]


@njit(cache=True)
def has_prior(settings):
    """Whether the settings end with Λ, Λm and m'Λm."""
    return settings[FOLDS] == 0 and settings.size > GRID + 1


@njit(cache=True)
def initialise(arm, settings):
    """The arm before any data: θ = 0, P = I/λ (∞ for an unpenalised column), or m and Λ⁻¹."""
    D, penalised = int(settings[D_]), int(settings[PENALISED])
    arm[:] = 0.0
    arm[LAM] = settings[GRID]
    arm[W_BAR] = 1.0
    if has_prior(settings):
        factorise(arm, settings, np.empty(scratch(settings)))
        arm[LOSS], arm[DUE] = 0.0, settings[SCHEDULE] if settings[NORMALIZE] == 0 else 1.0
        set_noise(arm, settings)
        return
    P = matrix(P_of(arm, D), D)
    for j in range(D):
        P[j, j] = 1.0 / arm[LAM] if j < penalised else np.inf
    refactored = settings.size > GRID + 1 or settings[NORMALIZE] > 0 or penalised < D
    arm[DUE] = 1.0 if refactored else settings[SCHEDULE]
    set_noise(arm, settings)


@njit(cache=True)
def set_noise(arm, settings):
    """Noise variance and degrees of freedom from the loss, by the variance rule."""
    D, penalised = int(settings[D_]), int(settings[PENALISED])
    rule, n = int(settings[RULE]), arm[N]
    arm[DF] = np.inf
    if rule == KNOWN_SIGMA2:
        arm[SIGMA2] = settings[NUMBER]
    elif rule == NIG:
        arm[DF] = 2.0 * settings[SHAPE0] + n
        arm[SIGMA2] = (2.0 * settings[SCALE0] + arm[LOSS]) / arm[DF]
    elif n == 0:
        arm[SIGMA2] = np.inf
    else:
        theta = theta_of(arm, D)
        rss = max(arm[LOSS] - arm[LAM] * dot(theta[:penalised], theta[:penalised]), 0.0)
        if rule == EMPIRICAL_BAYES:
            arm[RESIDUAL] = rss  # for `pool_noise`, which has the last word
        arm[SIGMA2] = max(rss if rule == RSS else rss / n, settings[FLOOR])


@njit(cache=True)
def pool_noise(arms, settings):
    """Every arm's noise variance where it depends on all arms: empirical Bayes.

    σ²_k = (RSS_k + ν w̄_k s²) / n_k is the posterior mean of σ² ~ InverseGamma(1, ν w̄_k s²/2), where
    s² = Σ loss / Σ w is over the rows of all arms (under the model E loss = n σ²) and w̄_k is the
    mean weight of arm k's: rows that say as little as the arm's own. c·r has c² σ², exactly.
    """
    if settings[RULE] != EMPIRICAL_BAYES:
        return
    loss, sum_w = 0.0, 0.0
    for k in range(arms.shape[0]):
        loss += arms[k, LOSS]
        sum_w += arms[k, SUM_W] / arms[k, W_BAR]
    for k in range(arms.shape[0]):
        n = arms[k, N]
        if n > 0.0:
            prior = settings[NUMBER] * (arms[k, SUM_W] / (arms[k, W_BAR] * n)) * (loss / sum_w)
            arms[k, SIGMA2] = max((arms[k, RESIDUAL] + prior) / n, settings[FLOOR])


@njit(cache=True)
def is_shifted(settings):
    """Whether there is an unpenalised intercept, which takes up any shift of the rewards."""
    return settings[PENALISED] == settings[D_] - 1 and not has_prior(settings)


@njit(cache=True)
def accumulate(arm, z, r, w, settings):
    """Add one weighted row to the statistics, and to its fold's (rows go to the folds in turn)."""
    D, folds = int(settings[D_]), int(settings[FOLDS])
    if arm[N] == 0.0 and is_shifted(settings):
        arm[SHIFT] = r
    r -= arm[SHIFT]
    if folds > 0:
        fold = fold_of(arm, D, int(arm[N]) % folds)
        fold[0] += 1.0
        fold[1] += w * r * r
        add_scaled(fold[2 : 2 + D], w * r, z)
        add_outer(fold[2 + D :], D, w, z)
    arm[N] += 1.0
    arm[SUM_W] += w
    arm[SUM_WRR] += w * r * r
    add_scaled(b_of(arm, D), w * r, z)
    add_outer(G_of(arm, D), stride(D), w, z)


@njit(cache=True)
def rank_one(arm, z, r, w, v):
    """Sherman–Morrison update of P, θ and the loss by a row of weight w; v (stride,) is scratch.

    False, and nothing is done, where the update would lose more than 4 of the 16 digits: it loses
    as many as s = 1 + w z'Pz has, and s is large when a large context shows a new direction.
    """
    D = z.size
    theta, P = theta_of(arm, D), P_of(arm, D)
    symmetric_times(P, z, v)
    error = r - dot(z, theta)
    s = 1.0 + w * dot(z, v)
    if not 0.5 < s < STEEP:
        return False
    arm[LOSS] += w * error * error / s
    add_scaled(theta, w * error / s, v)
    add_outer(P, v.size, -w / s, v)
    return True


@njit(cache=True)
def cross_validated(arm, settings, work):
    """The λ of the grid with the smallest K-fold squared error, exactly, from fold statistics.

    A fold's error at θ is Σwr² − 2θ'b_f + θ'G_fθ, and the other folds' statistics are the totals
    minus its own. A tie, as near as rounding lets one tell, goes to the larger λ.
    """
    D, penalised, folds = int(settings[D_]), int(settings[PENALISED]), int(settings[FOLDS])
    grid, free = settings[GRID:], 4 * D + settings.size
    b, theta, Gt, diagonal = work[:D], work[D : 2 * D], work[2 * D : 3 * D], work[3 * D : 4 * D]
    error = work[4 * D : 4 * D + grid.size]
    others = work[free : free + D * D].reshape(D, D)
    U = work[free + D * D : free + 2 * D * D].reshape(D, D)
    error[:] = 0.0
    G_all, b_all = matrix(G_of(arm, D), D), b_of(arm, D)
    for f in range(folds):
        fold = fold_of(arm, D, f)
        if fold[0] == 0.0 or fold[0] == arm[N]:
            continue  # nothing to test, or nothing to train on: no λ is better than another
        G_f, b_f = fold[2 + D :].reshape(D, D), fold[2 : 2 + D]
        for i in range(D):
            b[i] = (b_all[i] - b_f[i]) / arm[W_BAR]
            for j in range(D):
                others[i, j] = (G_all[i, j] - G_f[i, j]) / arm[W_BAR]
        for k in range(grid.size):
            U[:] = others
            for j in range(penalised):
                U[j, j] += grid[k]
            factor_by(U, diagonal)
            solve(U, b, theta)
            symmetric_times(fold[2 + D :], theta, Gt)
            error[k] += fold[1] - 2.0 * dot(theta, b_f) + dot(theta, Gt)
    best, rounding = 0, 1e-12 * arm[SUM_WRR]
    for k in range(1, grid.size):
        if error[k] < error[best] - rounding:
            best = k
    return grid[best]


@njit(cache=True)
def refactor(arm, settings, work):
    """Settle the weights' divisor and λ, then factorise; set when this is next due."""
    n = arm[N]
    if settings[NORMALIZE] > 0 and arm[SUM_W] > 0:
        arm[W_BAR] = arm[SUM_W] / n
    if settings[FOLDS] > 0:
        arm[LAM] = cross_validated(arm, settings, work)
    factorise(arm, settings, work)
    schedule = settings[SCHEDULE]
    arm[DUE] = n + schedule if schedule > 0 else max(n + 1.0, np.ceil(n * (1.0 - schedule)))


@njit(cache=True)
def factorise(arm, settings, work):
    """P, θ and the loss afresh from the statistics, given λ."""
    D, penalised = int(settings[D_]), int(settings[PENALISED])
    b, diagonal, U = work[:D], work[D : 2 * D], work[2 * D : 2 * D + D * D].reshape(D, D)
    G, rhs, rr = matrix(G_of(arm, D), D), b_of(arm, D), arm[SUM_WRR] / arm[W_BAR]
    for i in range(D):
        b[i] = rhs[i] / arm[W_BAR]
        for j in range(D):
            U[i, j] = G[i, j] / arm[W_BAR]
    for j in range(penalised):
        U[j, j] += arm[LAM]
    if has_prior(settings):
        prior = settings[GRID + 1 :]
        U += prior[: D * D].reshape(D, D)
        b += prior[D * D : D * D + D]
        rr += prior[D * D + D]
    factor_by(U, diagonal)
    invert(U, matrix(P_of(arm, D), D))
    theta = theta_of(arm, D)
    solve(U, b, theta)
    arm[LOSS] = max(rr - dot(theta, b), 0.0)
    if is_shifted(settings):
        theta[D - 1] += arm[SHIFT]


@njit(cache=True)
def scratch(settings):
    """How many numbers of scratch `refactor` takes. They are allocated before anything changes, so
    that a machine without memory leaves all as it was."""
    D = int(settings[D_])
    return 4 * D + settings.size + 2 * D * D if settings[FOLDS] > 0 else 2 * D + D * D


@njit(cache=True)
def update(arm, z, r, w, settings, v):
    """One observation (z, r) of weight w; v (stride,) is scratch."""
    if arm[N] + 1.0 < arm[DUE] and rank_one(arm, z, r, w / arm[W_BAR], v):
        accumulate(arm, z, r, w, settings)
    else:
        settle(arm, z, r, w, settings, np.empty(scratch(settings)))
    set_noise(arm, settings)


@njit(cache=True)
def update_with(arm, z, r, w, settings, v, work):
    """`update`, to the bit, that allocates nothing: work (scratch,) is scratch."""
    if arm[N] + 1.0 < arm[DUE] and rank_one(arm, z, r, w / arm[W_BAR], v):
        accumulate(arm, z, r, w, settings)
    else:
        settle(arm, z, r, w, settings, work)
    set_noise(arm, settings)


@njit(cache=True)
def settle(arm, z, r, w, settings, work):
    """An observation by a factorisation, and whatever else is due."""
    accumulate(arm, z, r, w, settings)
    if arm[N] >= arm[DUE]:
        refactor(arm, settings, work)
    else:
        factorise(arm, settings, work)


@njit(cache=True)
def rebuild(arm, z, r, w, settings):
    """The arm from all of its rows: z (n, D), rewards r (n,), weights w (n,)."""
    work = np.empty(scratch(settings))
    initialise(arm, settings)
    for i in range(r.size):
        accumulate(arm, z[i], r[i], w[i], settings)
    if r.size > 0:
        refactor(arm, settings, work)
    set_noise(arm, settings)
