"""One arm's weighted ridge regression, kept in one row of numbers (`kernels/ridge_state.py`).

B = X'WX + λI, θ = B⁻¹X'Wr, P = B⁻¹. How an update keeps its digits: `kernels/algebra/rank_one.py`.
Arguments are trusted: who calls these functions has checked them.
"""

import numpy as np

from bayesbandit.kernels.algebra.dense import (
    add_outer,
    add_scaled,
    copy_into,
    dot,
    factor_by,
    invert,
    solve,
)
from bayesbandit.kernels.algebra.rank_one import (
    rank_one,
    rank_one_anyway,
    rank_one_of_root,
    take_root,
)
from bayesbandit.kernels.origin import measured, measured_to_learn
from bayesbandit.kernels.penalised.folds import cross_validated
from bayesbandit.kernels.penalised.folds import scratch as fold_scratch
from bayesbandit.kernels.reward_moments import add_moments, kurtosis
from bayesbandit.kernels.ridge_state import (
    ABOUT_ORIGIN,
    D_,
    DF,
    DUE,
    EMPIRICAL_BAYES,
    EVEN_W,
    FLOOR,
    FOLDS,
    FORM,
    GRID,
    KNOWN_SIGMA2,
    LAM,
    LEFT,
    LOSS,
    NIG,
    NORMALIZE,
    NUMBER,
    PENALISED,
    PRIOR_W,
    RATE,
    RESIDUAL,
    ROOTED,
    RSS,
    RULE,
    SCALE0,
    SCHEDULE,
    SHAPE0,
    SHIFT,
    SIGMA2,
    SUM_W,
    SUM_WRR,
    W_BAR,
    WALK,
    WALKED,
    G_of,
    N,
    P_of,
    b_of,
    fold_of,
    has_prior,
    is_moving,
    is_rooted,
    is_shifted,
    matrix,
    stride,
    theta_of,
)
from bayesbandit.runtime.compiling import interpreted, njit

# λ may be chosen by cross-validation, θ have a prior of its own, rows fade or θ walk as time
# passes, and an intercept take up the shift of contexts and rewards (`compiling.without`)
FOLDED = PRIOR = MOVING = SHIFTED = True
ROUGH = 1e-9  # the least pivot, as a share of its diagonal, with which a factorisation is good


def unreached(settings: np.ndarray) -> tuple[str, ...]:
    """Return the constants that the kernels can be `without`, if they learn by these settings.

    No generator: Python 3.13 breaks where one gets no memory.
    """
    folded = () if settings[FOLDS] > 0 else ("FOLDED",)
    prior = () if interpreted(has_prior)(settings) else ("PRIOR",)
    moving = () if interpreted(is_moving)(settings) else ("MOVING",)
    shifted = () if interpreted(is_shifted)(settings) else ("SHIFTED",)
    return (*folded, *prior, *moving, *shifted)


@njit(cache=True)
def initialise(arm, settings):
    """Set the arm without data: θ = 0, P = I/λ (∞ for an unpenalised column), or m and Λ⁻¹."""
    D, penalised = int(settings[D_]), int(settings[PENALISED])
    arm[:] = 0.0
    arm[LAM] = settings[GRID]
    arm[W_BAR] = 1.0
    if has_prior(settings):
        work = np.empty(scratch(settings))
        factorise(arm, settings, work)
        invert_and_solve(arm, settings, work)
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
def rows_left(arm, settings):
    """Return how many rows an arm has, each by the share of it that has not faded."""
    if MOVING and settings[RATE] > 0.0:
        return arm[LEFT]
    return arm[N]


@njit(cache=True)
def set_noise(arm, settings):
    """Set the noise variance and degrees of freedom from the loss, by the variance rule."""
    D, penalised = int(settings[D_]), int(settings[PENALISED])
    rule, n = int(settings[RULE]), rows_left(arm, settings)
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
        penalty = arm[LAM]
        if MOVING and settings[WALK] > 0.0:  # of what θ is now, by the prior of its whole walk
            penalty = 1.0 / (1.0 / arm[LAM] + arm[WALKED])
        rss = max(arm[LOSS] - penalty * dot(theta[:penalised], theta[:penalised]), 0.0)
        if rule == EMPIRICAL_BAYES:
            arm[RESIDUAL] = rss  # for `pool_noise`, which has the last word
            arm[EVEN_W] = arm[SUM_W] / arm[W_BAR]
            arm[PRIOR_W] = settings[NUMBER] * (arm[SUM_W] / (arm[W_BAR] * n))
        arm[SIGMA2] = max(rss if rule == RSS else rss / n, settings[FLOOR])


@njit(cache=True)
def pool_noise(arms, settings):
    """Set every arm's noise variance where it depends on all arms: empirical Bayes.

    σ²_k = (RSS_k + ν κ u w̄_k s²) / n_k is its posterior mean under
    σ²_k ~ InverseGamma(1, ν κ u w̄_k s²/2). Here s² = Σ loss / Σ w over the rows of all arms (under
    the model E loss = n σ²), and w̄_k is the mean weight of arm k's rows: the prior's rows say as
    little as the arm's own. κ is the kurtosis of the rewards, and u = min(1, s²/v), with their
    variance v, the share of it that is not explained. So the prior stands for ν more surprises as
    large as rewards have brought: where they are 1 with a small probability p, else 0, κ s² is 1
    and not p. Rewards c·r have exactly c² σ². What depends on one arm alone is kept in its row,
    because divisions are the cost of this in every round.
    """
    if settings[RULE] != EMPIRICAL_BAYES:
        return
    loss, sum_w = 0.0, 0.0
    for k in range(arms.shape[0]):
        loss += arms[k, LOSS]
        sum_w += arms[k, EVEN_W]
    s2 = loss / sum_w if sum_w > 0.0 else 0.0
    rows, variance = kurtosis(arms)
    if s2 < variance:
        rows *= s2 / variance
    for k in range(arms.shape[0]):
        if arms[k, N] > 0.0:
            total = arms[k, RESIDUAL] + arms[k, PRIOR_W] * rows * s2
            arms[k, SIGMA2] = max(total / rows_left(arms[k], settings), settings[FLOOR])


@njit(cache=True)
def accumulate(arm, z, r, w, settings):
    """Add one weighted row to the statistics, and to its fold's (rows go to the folds in turn).

    z is measured from the arm's origin if it has one."""
    D, folds = int(settings[D_]), int(settings[FOLDS])
    if SHIFTED and arm[N] == 0.0 and is_shifted(settings):
        arm[SHIFT] = r
    if settings[RULE] == EMPIRICAL_BAYES:
        add_moments(arm, arm[SUM_W], w, r, 0.0, 0.0, 0.0)
    r -= arm[SHIFT]
    if FOLDED and folds > 0:
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
def settle_weights(arm, settings, work):
    """Update the weights' average and λ; set when this is due next."""
    n = arm[N]
    if settings[NORMALIZE] > 0 and arm[SUM_W] > 0:
        arm[W_BAR] = arm[SUM_W] / rows_left(arm, settings)
    if FOLDED and settings[FOLDS] > 0:
        arm[LAM] = cross_validated(arm, settings, work)
    schedule = settings[SCHEDULE]
    arm[DUE] = n + schedule if schedule > 0 else max(n + 1.0, np.ceil(n * (1.0 - schedule)))


@njit(cache=True)
def factorise(arm, settings, work):
    """Write X'Wr (D,) and the Cholesky factor of B = X'WX + λI into work, both with the prior.

    Weights W are divided by W_BAR. Return the smallest pivot: see `factor_by`.
    """
    D, penalised = int(settings[D_]), int(settings[PENALISED])
    b, diagonal, U = work[:D], work[D : 2 * D], work[2 * D : 2 * D + D * D].reshape(D, D)
    G, rhs = matrix(G_of(arm, D), D), b_of(arm, D)
    for i in range(D):
        b[i] = rhs[i] / arm[W_BAR]
        for j in range(D):
            U[i, j] = G[i, j] / arm[W_BAR]
    for j in range(penalised):
        U[j, j] += arm[LAM]
    if PRIOR and has_prior(settings):
        prior = settings[GRID + 1 :]
        for i in range(D):
            add_scaled(U[i], 1.0, prior[i * D : (i + 1) * D])
        add_scaled(b, 1.0, prior[D * D : D * D + D])
    return factor_by(U, diagonal)


@njit(cache=True)
def invert_and_solve(arm, settings, work):
    """Compute P, θ and the loss from what `factorise` left in work."""
    D = int(settings[D_])
    b, U = work[:D], work[2 * D : 2 * D + D * D].reshape(D, D)
    rr = arm[SUM_WRR] / arm[W_BAR]
    if has_prior(settings):
        rr += settings[GRID + 1 + D * D + D]
    invert(U, matrix(P_of(arm, D), D))
    arm[FORM] = ABOUT_ORIGIN if SHIFTED and is_shifted(settings) else 0.0
    theta = theta_of(arm, D)
    solve(U, b, theta)
    arm[LOSS] = max(rr - dot(theta, b), 0.0)
    if SHIFTED and is_shifted(settings):
        theta[D - 1] += arm[SHIFT]


@njit(cache=True)
def scratch(settings):
    """Return how many numbers of scratch `refactor` takes. They are allocated before anything
    changes, so that a machine without memory leaves all as it was."""
    D = int(settings[D_])
    size = 2 * D + D * D
    if FOLDED and settings[FOLDS] > 0:
        size = max(size, fold_scratch(settings))
    if SHIFTED and is_shifted(settings):
        size += D
    return size


@njit(cache=True)
def update(arm, z, r, w, settings, v):
    """Learn one observation (z, r) of weight w; v (stride,) is scratch."""
    if SHIFTED and is_shifted(settings):
        z = measured_to_learn(arm, z, np.empty(z.size))
    if arm[N] + 1.0 < arm[DUE] and rank_one(arm, z, r, w / arm[W_BAR], v):
        accumulate(arm, z, r, w, settings)
    else:
        settle(arm, z, r, w, settings, v, np.empty(scratch(settings)))
    set_noise(arm, settings)


@njit(cache=True)
def update_with(arm, z, r, w, settings, v, work):
    """Do as `update`, to the bit, without allocating: work (scratch,) is scratch."""
    if SHIFTED and is_shifted(settings):
        z = measured_to_learn(arm, z, work[work.size - z.size :])
    if arm[N] + 1.0 < arm[DUE] and rank_one(arm, z, r, w / arm[W_BAR], v):
        accumulate(arm, z, r, w, settings)
    else:
        settle(arm, z, r, w, settings, v, work)
    set_noise(arm, settings)


@njit(cache=True)
def settle(arm, z, r, w, settings, v, work):
    """Learn an observation by a factorisation or by the root of P; update whatever else is due."""
    accumulate(arm, z, r, w, settings)
    if MOVING and settings[WALK] > 0.0:
        rank_one_anyway(arm, z, r, w / arm[W_BAR], v)
        return
    D, kept = z.size, True  # λ, the weights' divisor and what was learned
    if arm[N] >= arm[DUE]:
        settle_weights(arm, settings, work)
        kept = settings[FOLDS] == 0 and settings[NORMALIZE] == 0
    if MOVING and settings[RATE] > 0.0:
        kept = False
    rough, weight = factorise(arm, settings, work) < ROUGH, w / arm[W_BAR]
    rooted = rough and kept
    if rooted and not is_rooted(arm):
        rooted = take_root(arm, z, weight, v, work[D : 2 * D])
    if rooted and rank_one_of_root(arm, z, r, weight, v):
        arm[DUE] = min(arm[DUE], 2.0 * arm[N])
    else:
        invert_and_solve(arm, settings, work)


@njit(cache=True)
def measured_rows(arm, z):
    """Return rows z (n, D) of an arm without data, measured from the first one."""
    out = np.empty(z.shape)
    for i in range(z.shape[0]):
        if i == 0:
            measured_to_learn(arm, z[i], out[i])
        else:
            measured(arm, z[i], out[i])
    return out


@njit(cache=True)
def replay(arm, z, r, w, settings):
    """Compute the root of P, θ and the loss from all rows, one by one. Return False, and do
    nothing, where a row is too steep."""
    D = z.shape[1]
    fresh, v, diagonal = np.empty(arm.size), np.empty(stride(D)), np.empty(D)
    initialise(fresh, settings)
    for i in range(r.size):
        weight = w[i] / arm[W_BAR]
        if i == 0 and not take_root(fresh, z[i], weight, v, diagonal):
            return False
        if not rank_one_of_root(fresh, z[i], r[i], weight, v):
            return False
    copy_into(theta_of(arm, D), theta_of(fresh, D))
    copy_into(P_of(arm, D), P_of(fresh, D))
    arm[LOSS] = fresh[LOSS]
    arm[FORM] += ROOTED
    return True


@njit(cache=True)
def rebuild(arm, z, r, w, settings):
    """Fit the arm to all of its rows: z (n, D), rewards r (n,), weights w (n,)."""
    work = np.empty(scratch(settings))
    initialise(arm, settings)
    if SHIFTED and is_shifted(settings):
        z = measured_rows(arm, z)
    for i in range(r.size):
        accumulate(arm, z[i], r[i], w[i], settings)
    if r.size > 0:
        settle_weights(arm, settings, work)
        rough = factorise(arm, settings, work) < ROUGH
        if not (rough and settings[FOLDS] == 0 and replay(arm, z, r, w, settings)):
            invert_and_solve(arm, settings, work)
    set_noise(arm, settings)
