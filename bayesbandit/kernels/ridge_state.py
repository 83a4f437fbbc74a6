"""What stands where in the row of numbers of one arm, and in the settings that all arms share.

A row holds, after a head of scalars, θ and b = X'Wr (D each), P and G = X'WX (D × D each), and for
cross-validation each fold's (n, Σwr², b, G). Where P's largest and smallest directions differ by
more than float64 can tell in one matrix, a root R of P = R'R stands in its place. Where there is an
unpenalised intercept, all is about an origin, which ends the row (`kernels/origin.py`).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayesbandit.runtime.compiling import interpreted, njit

# The head of an arm:
# - rows, Σw, Σwr², penalised loss min‖r − Xθ‖²_W + λ‖θ‖², noise variance, degrees of freedom, λ,
#   the divisor of the weights, the number of rows at which to factorise again;
# - the shift: with an unpenalised intercept, Σwr² and b are of rewards less the arm's first one,
#   because the squared residuals of large rewards drown in rounding (Welford's remedy);
# - for the empirical Bayes rule ‖r − Xθ‖²_W, Σw over the divisor, and ν w̄ of `pool_noise`;
# - the form of the posterior: whether R stands for P, and whether θ and P are about the origin;
# - where rows fade (`kernels/fading.py`), the rows that are left, each by its share, and the tick
#   at which all these numbers hold; where θ walks, the variance of its steps so far over σ² stands
#   in the place of the rows that are left;
# - for the empirical Bayes rule the moments of the rewards (`kernels/reward_moments.py`): their
#   mean m, M₂ = Σw (r − m)², and M₃ and M₄, the same sums of third and fourth powers, over M₂.
N, SUM_W, SUM_WRR, LOSS, SIGMA2, DF, LAM, W_BAR, DUE, SHIFT, RESIDUAL, EVEN_W, PRIOR_W, FORM = (
    range(14)
)
LEFT, CLOCK = 14, 15
WALKED = LEFT
MEAN, SPREAD, SKEW, TAIL = 16, 17, 18, 19
HEAD = 24  # a whole number of cache lines
ROOTED, ABOUT_ORIGIN = 1.0, 2.0  # a form is 0, one of them, or their sum

# The settings shared by all arms, which kernels read by position; `settings_of` has them by name.
# columns, and those that are penalised; variance: the rule of σ²; number: the known σ², or the rows
# that a prior of σ² stands for where rewards have kurtosis 1; floor: the least σ²; shape, scale: of
# the normal-inverse-gamma prior; normalize: whether weights get mean 1; schedule: m > 0, every m
# rows, or −g, at growth by g; folds; rate: rows fade by e^−rate a tick; slack: how much of that may
# wait, as an exponent; walk: the variance of each coefficient's step a tick; and the grid of λ,
# largest first. Where no column is penalised alike, but θ ~ N(m, σ²Λ⁻¹), the grid is one λ without
# meaning, then Λ, Λm and m'Λm.
SETTINGS = (
    *("columns", "penalised", "variance", "number", "floor", "shape", "scale"),
    *("normalize", "schedule", "folds", "rate", "slack", "walk"),
)
D_, PENALISED, RULE, NUMBER, FLOOR, SHAPE0, SCALE0, NORMALIZE, SCHEDULE, FOLDS = range(10)
RATE, SLACK, WALK = 10, 11, 12
GRID = len(SETTINGS)

RSS_N, RSS, NIG, KNOWN_SIGMA2, EMPIRICAL_BAYES = range(5)


def settings_of(grid: Sequence[float], **values: float) -> np.ndarray:
    """Return `SETTINGS` by name, and a grid of G λ, as the array (GRID + G,) that kernels take.

    A setting that is not given is 0. Raise ValueError for another name.
    """
    settings = np.zeros(1, [*((name, "f8") for name in SETTINGS), ("grid", "f8", len(grid))])
    for name, value in {**values, "grid": grid}.items():
        settings[name] = value
    return settings.view(np.float64)


@njit(cache=True)
def stride(D):
    """Return the length of a stored row: D, filled up with zeros to whole cache lines."""
    return (D + 7) // 8 * 8


def core_width(D: int) -> int:
    """Return how many numbers an arm's head, θ, b and P take: what `moments` reads, in front."""
    return HEAD + (2 + D) * int(interpreted(stride)(D))


def arm_width(D: int, folds: int, shifted: bool = False) -> int:
    """Return how many numbers one arm takes. shifted: whether it has an origin."""
    whole: Any = interpreted(stride)
    own = whole(core_width(D) + D * whole(D) + folds * (2 + D + D * D))
    return int(own + whole(D) * shifted)


@njit(cache=True)
def theta_of(arm, D):
    return arm[HEAD : HEAD + D]


@njit(cache=True)
def b_of(arm, D):
    start = HEAD + stride(D)
    return arm[start : start + D]


@njit(cache=True)
def P_of(arm, D):
    """Return P row after row, each filled up with zeros to the stride."""
    M = stride(D)
    start = HEAD + 2 * M
    return arm[start : start + D * M]


@njit(cache=True)
def G_of(arm, D):
    """Return G row after row, each filled up with zeros to the stride."""
    M = stride(D)
    start = HEAD + (2 + D) * M
    return arm[start : start + D * M]


@njit(cache=True)
def origin_of(arm, D):
    """Return the origin of the contexts (D,), which ends with 0: the end of the row, which may be
    shorter than that of an arm that learns."""
    start = arm.size - stride(D)
    return arm[start : start + D]


@njit(cache=True)
def is_rooted(arm):
    """Return whether a root R of P stands in its place."""
    return arm[FORM] == ROOTED or arm[FORM] == ROOTED + ABOUT_ORIGIN


@njit(cache=True)
def matrix(flat, D):
    """Return P or G as (D, stride)."""
    return flat.reshape(D, stride(D))


@njit(cache=True)
def fold_of(arm, D, f):
    """Return a fold's own statistics: [n, Σwr², b, G] as one slice."""
    size = 2 + D + D * D
    start = HEAD + (2 + 2 * D) * stride(D) + f * size
    return arm[start : start + size]


@njit(cache=True)
def folds_of(arm, D, K):
    """Return all K folds' statistics, one row for each."""
    size = 2 + D + D * D
    start = HEAD + (2 + 2 * D) * stride(D)
    return arm[start : start + K * size].reshape(K, size)


@njit(cache=True)
def has_prior(settings):
    """Return whether the settings end with Λ, Λm and m'Λm."""
    return settings[FOLDS] == 0 and settings.size > GRID + 1


@njit(cache=True)
def is_moving(settings):
    """Return whether rows fade, or coefficients walk, as time passes."""
    return settings[RATE] > 0.0 or settings[WALK] > 0.0


@njit(cache=True)
def is_shifted(settings):
    """Return whether there is an unpenalised intercept, which takes up any shift of the rewards."""
    return settings[PENALISED] == settings[D_] - 1 and not has_prior(settings)
