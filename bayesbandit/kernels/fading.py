"""What time does to an arm: its rows fade, or its coefficients walk (`kernels/ridge_state.py`).

Rows fade by 2^(−ticks/half-life): X'WX, X'Wr, the folds and the noise scale shrink, the penalty λ
or the prior of θ stays. So an arm without new rewards returns to the prior (stabilised forgetting,
Kulhavý & Zarrop 1993, International Journal of Control 58, 905–924). Where θ takes a step of
variance q in each coordinate a tick, its covariance S = σ²P becomes S + qI: the Kalman filter.
"""

import numpy as np

from bayesbandit.kernels.linear import (
    factorise,
    initialise,
    invert_and_solve,
    pool_noise,
    scratch,
    set_noise,
)
from bayesbandit.kernels.origin import recentre
from bayesbandit.kernels.ridge_state import (
    CLOCK,
    D_,
    FOLDS,
    LEFT,
    RATE,
    SIGMA2,
    SLACK,
    SPREAD,
    SUM_W,
    SUM_WRR,
    WALK,
    WALKED,
    G_of,
    N,
    P_of,
    b_of,
    folds_of,
    is_shifted,
    matrix,
)
from bayesbandit.kernels.uncounted_arrays import borrowed, held
from bayesbandit.runtime.compiling import njit

FORGOTTEN = 1e-9  # rows; an arm with less than that is new


@njit(cache=True)
def pass_time(arm, tick, settings, work):
    """Bring one arm to this tick; a tick of the past changes nothing."""
    passed = tick - arm[CLOCK]
    if arm[N] == 0.0:  # the prior is that of the first reward's tick
        arm[CLOCK] = max(arm[CLOCK], tick)
    elif passed > 0.0 and settings[WALK] > 0.0:
        arm[CLOCK] = tick
        if 0.0 < arm[SIGMA2] < np.inf:
            P = matrix(P_of(arm, int(settings[D_])), int(settings[D_]))
            step = settings[WALK] * passed / arm[SIGMA2]
            arm[WALKED] += step
            for j in range(P.shape[0]):
                P[j, j] += step
            set_noise(arm, settings)
    elif passed > 0.0 and settings[RATE] * passed > settings[SLACK]:
        arm[CLOCK] = tick
        fade(arm, np.exp(-settings[RATE] * passed), settings, work)


@njit(cache=True)
def fade(arm, share, settings, work):
    """Leave this share of all rows, and factorise again: B = X'WX + λI is exact."""
    D, tick = int(settings[D_]), arm[CLOCK]
    if not arm[LEFT] * share >= FORGOTTEN:
        initialise(arm, settings)
        arm[CLOCK] = tick
        return
    arm[LEFT] *= share
    arm[SUM_W] *= share
    arm[SUM_WRR] *= share
    arm[SPREAD] *= share
    shrink(b_of(arm, D), share)
    shrink(G_of(arm, D), share)
    folds = folds_of(arm, D, int(settings[FOLDS]))
    for f in range(folds.shape[0]):
        shrink(folds[f, 1:], share)
    if is_shifted(settings):
        recentre(arm, settings)
    factorise(arm, settings, work)
    invert_and_solve(arm, settings, work)
    set_noise(arm, settings)


@njit(cache=True)
def share_of(tick, arm, settings):
    """Return what is left, at the arm's tick, of a row of this tick: above 1 while fading waits."""
    return np.exp(settings[RATE] * (tick - arm[CLOCK]))


@njit(cache=True)
def shrink(v, share):
    """Multiply v by a share. It compiles sooner than a slice, which may broadcast."""
    for i in range(v.size):
        v[i] *= share


@njit(cache=True)
def advance(arms, tick, settings):
    """Bring all arms to this tick; those that are there, or past it, stay as they are."""
    arms, settings = borrowed(arms), borrowed(settings)
    work = np.empty(scratch(settings))
    for k in range(arms.shape[0]):
        pass_time(arms[k], tick, settings, borrowed(work))
    held(work)
    pool_noise(arms, settings)
