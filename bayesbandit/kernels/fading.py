"""What time does to an arm: its rows fade, or its coefficients walk (`kernels/arm.py`).

Rows fade by 2^(−ticks/half-life): X'WX, X'Wr, the folds and the noise scale shrink, the penalty λ
or the prior of θ stays. So an arm without new rewards returns to the prior (stabilised forgetting,
Kulhavý & Zarrop 1993, International Journal of Control 58, 905–924). Where θ takes a step of
variance q in each coordinate a tick, its covariance S = σ²B⁻¹ becomes S + qI: the Kalman filter.
"""

import numpy as np

from bayesbandit.kernels.arm import (
    arm_of,
    core_width,
    keeps_sums,
    named,
    stride,
    sums_of,
)
from bayesbandit.kernels.linear import factorise, initialise, pool_noise, scratch, set_noise
from bayesbandit.kernels.root import rotate_rows, walk
from bayesbandit.kernels.uncounted_arrays import keep_alive, unmanaged
from bayesbandit.runtime.compiling import njit

MIN_ROWS_LEFT = 1e-9  # rows; an arm with less than that is new


@njit(cache=True)
def pass_time(numbers, tick, settings, work):
    """Bring one arm to this tick; a tick of the past changes nothing."""
    setting = named(settings)
    arm = arm_of(numbers, int(setting.columns))
    head = arm.head
    passed = tick - arm.head.clock
    if head.n == 0.0:  # the prior is that of the first reward's tick
        head.clock = max(head.clock, tick)
    elif passed > 0.0 and setting.walk > 0.0:
        head.clock = tick
        # B⁻¹ is the covariance over σ²: without a σ² a step has no size in its units
        if 0.0 < head.sigma2 < np.inf:
            # S = σ²B⁻¹ ← S + qΔI, in units of σ²: B⁻¹ ← B⁻¹ + (qΔ/σ²) I
            step = setting.walk * passed / head.sigma2
            head.walked += step
            walk(arm, step, work)
            set_noise(arm, settings, work)
    elif passed > 0.0 and setting.rate * passed > setting.slack:
        head.clock = tick
        # 2^(−Δ/half-life), with rate = log 2 / half-life
        fade(numbers, np.exp(-setting.rate * passed), settings, work)


@njit(cache=True)
def fade(numbers, share, settings, work):
    """Leave this share of all rows; the prior stays whole.

    `skew` and `tail` are ratios, which do not change; `set_noise` makes what follows from the rest.
    """
    setting = named(settings)
    D = int(setting.columns)
    folds = int(setting.folds)
    arm = arm_of(numbers, D)
    head = arm.head
    # 1e-9 of a row says nothing beside a prior: the arm is as it was before its first reward
    if not head.n_left * share >= MIN_ROWS_LEFT:
        tick = head.clock
        initialise(numbers, settings)
        head.clock = tick
        return
    # M₂ = Σw (r − m)² shrinks as all weights do; m, M₃/M₂ and M₄/M₂ are averages and stay
    head.n_left *= share
    head.sum_w *= share
    head.m2 *= share
    if keeps_sums(setting):
        # X'WX, X'Wr, r'Wr and the folds' shrink; B is made from them
        sums = sums_of(arm, folds)
        head.sum_wrr *= share
        shrink(sums.b, share)
        shrink(sums.G, share)
        for f in range(folds):
            # the number of a fold's rows stays: it tells whether there are any
            shrink(sums.folds[f, 1:], share)
        factorise(arm, settings)
    else:
        # B ← γB + (1 − γ)Λ₀ by roots: D of U'DU shrinks, and the prior's rows are rotated in
        head.loss *= share
        shrink(arm.d, share)
        rotate_in_prior(arm, 1.0 - share, settings, work)
    set_noise(arm, settings, work)


@njit(cache=True)
def rotate_in_prior(arm, share, settings, work):
    """Add this share of the prior to an arm's root; work (scratch,) is scratch."""
    D = arm.d.size
    start = stride(D)
    numbers = work[start : start + core_width(D)]
    initialise(numbers, settings)
    prior = arm_of(numbers, D)
    # the loss is min over θ of γ loss(θ) + (1 − γ)(θ − m)'Λ₀(θ − m), m the mean of the prior
    arm.head.loss += rotate_rows(arm, prior.d, prior.t, prior.U, share, work)


@njit(cache=True)
def share_of(tick, head, settings):
    """Return the discount factor of a row observed at `tick`: above 1 while fading waits."""
    return np.exp(named(settings).rate * (tick - head.clock))


@njit(cache=True)
def shrink(v, share):
    """Multiply v by a share. It compiles sooner than a slice, which may broadcast."""
    for i in range(v.size):
        v[i] *= share


@njit(cache=True)
def advance(arms, tick, settings):
    """Bring all arms to this tick; those that are there, or past it, stay as they are."""
    arms = unmanaged(arms)
    settings = unmanaged(settings)
    work = np.empty(scratch(settings))
    for k in range(arms.shape[0]):
        pass_time(arms[k], tick, settings, unmanaged(work))
    keep_alive(work)
    pool_noise(arms, settings)
