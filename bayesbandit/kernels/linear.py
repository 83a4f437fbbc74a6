"""One arm's weighted ridge regression, kept in one row of numbers (`kernels/arm.py`).

B = X'WX + λI, θ = B⁻¹X'Wr, (1) of mathematics.md: each row is rotated into the root of B
(`kernels/root.py`). Where λ or the divisor of the weights changes, X'WX and X'Wr are kept, and B is
made and factorised on a schedule. Arguments are trusted: who calls these functions has checked
them.
"""

import numpy as np

from bayesbandit.checks import Array
from bayesbandit.kernels.algebra.dense import add_outer, add_scaled, copy_into
from bayesbandit.kernels.arm import (
    EMPIRICAL_BAYES,
    GRID,
    KNOWN_SIGMA2,
    NIG,
    RSS,
    arm_of,
    core_width,
    has_prior,
    head_of,
    is_moving,
    is_shifted,
    keeps_sums,
    named,
    stride,
    sums_of,
)
from bayesbandit.kernels.cross_validation import ALL_ROWS, cross_validated, put_system
from bayesbandit.kernels.cross_validation import scratch as fold_scratch
from bayesbandit.kernels.reward_moments import add_moments, kurtosis
from bayesbandit.kernels.root import MIN_PRECISION, coefficients, factor, rotate_in
from bayesbandit.kernels.student import MIN_DF
from bayesbandit.runtime.compiling import interpreted, njit

# Sums may be kept, and rows fade or θ walk as time passes (`compiling.without`)
SUMS = MOVING = True


def unreached(settings: Array) -> tuple[str, ...]:
    """Return the constants that the kernels can be `without`, if they learn by these settings."""
    # no generator: Python 3.13 breaks where one gets no memory
    sums = () if interpreted(keeps_sums)(named(settings)) else ("SUMS",)
    moving = () if interpreted(is_moving)(settings) else ("MOVING",)
    return (*sums, *moving)


@njit(cache=True)
def initialise(numbers, settings):
    """Set the arm without data: B = λI (0 for an unpenalised column), or the prior's root."""
    setting = named(settings)
    D = int(setting.columns)
    penalised = int(setting.penalised)
    M = stride(D)
    arm = arm_of(numbers, D)
    numbers[:] = 0.0
    arm.head.lam = settings[GRID]
    arm.head.weight_divisor = 1.0
    if has_prior(settings):
        root = settings[GRID + 1 :]
        copy_into(arm.d, root)
        copy_into(arm.t, root[D:])
        for i in range(D):
            copy_into(arm.U[i * M : i * M + D], root[(2 + i) * D :])
    else:
        for i in range(D):
            # λI is U'DU with U = I and d = λ. An unpenalised column has a d too small to count:
            # with d = 0 its variance would be 1/0
            arm.d[i] = settings[GRID] if i < penalised else MIN_PRECISION
            arm.U[i * M + i] = 1.0
    begin_noise(arm.head, setting)


@njit(cache=True)
def begin_noise(head, setting):
    """Set the noise variance and degrees of freedom of an arm without data."""
    head.df = np.inf
    if setting.variance == KNOWN_SIGMA2:
        head.sigma2 = setting.noise_parameter
    elif setting.variance == NIG:
        # InverseGamma(a, b) is b/a over χ²/ν with ν = 2a: a Student-t's squared scale, and its ν
        head.df = 2.0 * setting.prior_shape
        head.sigma2 = 2.0 * setting.prior_scale / head.df
    else:
        # the other rules have no value at n = 0: such an arm may be anything
        head.sigma2 = np.inf


@njit(cache=True)
def rows_left(head, setting):
    """Return how many rows an arm has, each by the share of it that has not faded."""
    if MOVING and setting.rate > 0.0:
        return head.n_left
    return head.n


@njit(cache=True)
def set_noise(arm, settings, work):
    """Set the noise variance and degrees of freedom from the loss, by the variance rule."""
    head = arm.head
    setting = named(settings)
    rule = int(setting.variance)
    n = rows_left(arm.head, setting)
    if n == 0.0 or rule == KNOWN_SIGMA2:
        begin_noise(head, setting)
        return
    # σ² given all rows is InverseGamma(a + n/2, b + loss/2): Student-t with 2a + n degrees of
    # freedom and this scale, where loss = min over θ of Σ w (r − x'θ)² + λ|θ|²
    if rule == NIG:
        df = 2.0 * setting.prior_shape + n
        head.sigma2 = (2.0 * setting.prior_scale + head.loss) / df
        # under a vague prior next to nothing may be left of n: draws would be ±∞, and ties
        head.df = max(df, MIN_DF)
        return
    penalty = head.lam
    square = 0.0
    if MOVING and setting.walk > 0.0:  # of what θ is now, by the prior of its whole walk
        # without rewards θ is now N(0, σ²(1/λ + Σ steps) I)
        penalty = 1.0 / (1.0 / head.lam + head.walked)
    # RSS = loss − λ|θ̂|²: what the penalty adds to the residual sum of squares is taken off
    theta = coefficients(arm, work[: stride(arm.d.size)])
    for j in range(int(setting.penalised)):
        square += theta[j] * theta[j]
    rss = max(head.loss - penalty * square, 0.0)
    if rule == EMPIRICAL_BAYES:
        head.residual = rss  # for `pool_noise`, which has the last word
        # the loss has weights divided by `weight_divisor`: so must what it is divided by
        head.scaled_sum_w = head.sum_w / head.weight_divisor
        head.prior_w = setting.noise_parameter * (head.sum_w / (head.weight_divisor * n))
    # Appendix A's identity holds for RSS/n; RSS is the pseudocode's, which n does not divide
    head.sigma2 = max(rss if rule == RSS else rss / n, setting.min_variance)


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
    setting = named(settings)
    if setting.variance != EMPIRICAL_BAYES:
        return
    loss = 0.0
    sum_w = 0.0
    for k in range(arms.shape[0]):
        head = head_of(arms[k])
        loss += head.loss
        sum_w += head.scaled_sum_w
    # θ ~ N(0, σ²/λ) makes it r'(I + XX'/λ)⁻¹r ~ σ²χ²_n: no degrees of freedom go to θ
    s2 = loss / sum_w if sum_w > 0.0 else 0.0
    kappa, variance = kurtosis(arms)
    if s2 < variance:
        kappa *= s2 / variance  # κ u
    for k in range(arms.shape[0]):
        head = head_of(arms[k])
        if head.n > 0.0:
            # InverseGamma(a + n/2, b + RSS/2) has the mean (2b + RSS)/(2a − 2 + n), here with a = 1
            total = head.residual + head.prior_w * kappa * s2
            head.sigma2 = max(total / rows_left(head, setting), setting.min_variance)


@njit(cache=True)
def add_to_sums(arm, x, y, w, setting):
    """Add one weighted row to the sums, and to its fold's: rows go to the folds in turn."""
    D = arm.d.size
    folds = int(setting.folds)
    sums = sums_of(arm, folds)
    if folds > 0:
        # of a fold: n, Σ w r², Σ w r x, Σ w x x'
        fold = sums.folds[int(arm.head.n) % folds]
        fold[0] += 1.0
        fold[1] += w * y * y
        add_scaled(fold[2 : 2 + D], w * y, x)
        add_outer(fold[2 + D :], D, w, x[:D])
    arm.head.sum_wrr += w * y * y
    # X'Wr and X'WX of all rows
    add_scaled(sums.b, w * y, x)
    add_outer(sums.G, x.size, w, x)


@njit(cache=True)
def refactorise(arm, settings, work):
    """Update the weights' divisor and λ, factorise, and set when this is due next."""
    head = arm.head
    setting = named(settings)
    n = head.n
    schedule = setting.schedule
    if setting.normalize > 0.0 and head.sum_w > 0.0:
        # weights over their average have the average 1: beside them λ keeps its strength
        head.weight_divisor = head.sum_w / n
    if setting.folds > 0.0:
        head.lam = cross_validated(arm, settings, work)
    # after `schedule` rows, or, where it is negative, when rows have grown by that share
    head.due = n + schedule if schedule > 0.0 else max(n + 1.0, np.ceil(n * (1.0 - schedule)))
    factorise(arm, settings)


@njit(cache=True)
def factorise(arm, settings):
    """Make B = X'WX + λI and b = X'Wr from the sums, with W over its divisor, and their root."""
    put_system(arm, settings, ALL_ROWS, 0.0 if has_prior(settings) else arm.head.lam, arm)
    # loss = min over θ of Σ w (r − x'θ)² + (θ − m)'Λ(θ − m) = r'Wr + m'Λm − b'B⁻¹b,
    # b = X'Wr + Λm
    rr = arm.head.sum_wrr / arm.head.weight_divisor
    if has_prior(settings):
        rr += add_prior(arm, settings[GRID + 1 :])
    arm.head.loss = factor(arm, rr)


@njit(cache=True)
def add_prior(arm, root):
    """Add Λ and Λm, from their root, to what `factorise` has; return m'Λm."""
    D = arm.d.size
    square = 0.0
    M = stride(D)
    for k in range(D):
        d = root[k]
        t = root[D + k]
        u = root[(2 + k) * D : (3 + k) * D]
        # Λ = Σ_k d_k u_k u_k', Λm = Σ_k d_k t_k u_k, m'Λm = Σ_k d_k t_k²
        square += d * t * t
        for i in range(k, D):
            arm.t[i] += d * t * u[i]
            add_scaled(arm.U[i * M + i : i * M + D], d * u[i], u[i:])
    return square


@njit(cache=True)
def scratch(settings):
    """Return how many numbers of scratch these functions take. They are allocated before anything
    changes, so that a machine without memory leaves all as it was."""
    setting = named(settings)
    D = int(setting.columns)
    size = stride(D)
    if MOVING and is_moving(settings):
        size += core_width(D)
    if SUMS and setting.folds > 0.0:
        size = max(size, fold_scratch(settings))
    return size


@njit(cache=True)
def update(numbers, z, r, w, settings, work):
    """Learn one observation (z, r) of weight w; work (scratch,) is scratch."""
    D = z.size
    setting = named(settings)
    arm = arm_of(numbers, D)
    x = work[: stride(D)]
    count_row(arm, z, r, w, settings, x)
    # the root is made from the sums when that is due; until then each row is rotated in
    if SUMS and keeps_sums(setting) and arm.head.n >= arm.head.due:
        refactorise(arm, settings, work)
    else:
        y = r - arm.head.shift
        # B and X'Wr are over the divisor of the weights, and so is a row that comes between
        arm.head.loss += rotate_in(arm, x, y, w / arm.head.weight_divisor, 0)
    set_noise(arm, settings, work)


@njit(cache=True)
def count_row(arm, z, r, w, settings, x):
    """Count a row, and add it to the sums; fill x (stride,) with z less the arm's origin, which is
    the first row where an intercept takes up any shift."""
    head = arm.head
    origin = arm.origin
    D = z.size
    setting = named(settings)
    # an intercept takes up any shift, so that large common values cost no digits
    if head.n == 0.0 and is_shifted(settings):
        copy_into(origin[: D - 1], z)
        head.shift = r
    for i in range(D):
        # z'β + c = (z − o)'β + (c + o'β): the slopes are the same about any origin o
        x[i] = z[i] - origin[i]
    for i in range(D, x.size):
        x[i] = 0.0
    if setting.variance == EMPIRICAL_BAYES:
        add_moments(head, head.sum_w, w, r, 0.0, 0.0, 0.0)
    if SUMS and keeps_sums(setting):
        add_to_sums(arm, x, r - head.shift, w, setting)
    head.n += 1.0
    head.sum_w += w


@njit(cache=True)
def rebuild(numbers, z, r, w, settings):
    """Fit the arm to all of its rows: z (n, D), rewards r (n,), weights w (n,)."""
    work = np.empty(scratch(settings))
    initialise(numbers, settings)
    arm = arm_of(numbers, z.shape[1])
    x = work[: stride(z.shape[1])]
    sums = SUMS and keeps_sums(named(settings))
    for i in range(r.size):
        count_row(arm, z[i], r[i], w[i], settings, x)
        if not sums:
            arm.head.loss += rotate_in(arm, x, r[i] - arm.head.shift, w[i], 0)
    if sums and r.size > 0:
        refactorise(arm, settings, work)
    set_noise(arm, settings, work)
