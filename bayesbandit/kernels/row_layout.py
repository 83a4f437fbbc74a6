"""The numbers of one logged round, by name: no other file knows where they stand.

A row holds the context with its constant column (D), each arm's mean, scale and last number at the
moment of decision (K each), then the scalars of LOG. The last number is the degrees of freedom of a
regression; under the rules BETA and GAMMA, a, and b stands for the scale; under TABULATED, the
arm's probability. So look at the row's rule first. An arm that may not be chosen has mean −∞ and
scale 0. An arm without a reward is new: its last number is negative.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from bayesbandit.kernels.arm import record_type, record_view
from bayesbandit.runtime.compiling import njit

SCALARS = "arm", "rule", "number", "min_probability", "propensity", "reward", "weight"
LOG = record_type(*SCALARS)
TAIL = len(SCALARS)
ARM, KIND, PARAM, FLOOR, PROPENSITY, REWARD, WEIGHT = range(TAIL)  # from the end: `row[ARM - TAIL]`

log_of = record_view(LOG)  # of a row's scalars

# The rule that decided; BETA and GAMMA: Thompson sampling from such posteriors.
KINDS = range(6)
THOMPSON, UCB, EPSILON_GREEDY, TABULATED, BETA, GAMMA = KINDS
DRAWN = BETA, GAMMA
ANY, NEW, OLD = np.arange(3)  # among which arms; for a Python int numba compiles again
INFINITE_SD = 1e100  # stands for an infinite standard deviation, so that α = 0 leaves the mean


class Row(NamedTuple):
    """Views of a row's numbers. x (D,); mean, scale and last (K,); log: a record of LOG; propensity
    (1,), as an array."""

    x: Any
    mean: Any
    scale: Any
    last: Any
    log: Any
    propensity: Any


@njit(cache=True, inline="always")
def row_of(numbers, D, K):
    """Return the named views of a row's numbers (width,)."""
    scale = D + K
    last = D + 2 * K
    log = D + 3 * K
    return Row(
        numbers[:D],
        numbers[D:scale],
        numbers[scale:last],
        numbers[last:log],
        log_of(numbers[log : log + TAIL]),
        numbers[log + PROPENSITY : log + PROPENSITY + 1],
    )


@njit(cache=True, inline="always")
def record(row, arm, kind, param, floor):
    """Put the arm, and the rule that chose it, into a row."""
    log = row.log
    log.arm = arm
    log.rule = kind
    log.number = param
    log.min_probability = floor
    log.propensity = log.reward = log.weight = np.nan


@njit(cache=True)
def row_width(D, K):
    """Return how many numbers one logged round takes."""
    return D + 3 * K + TAIL


@cache
def row_type(D: int, K: int) -> np.dtype:
    """Return the type of a row as a record: x (D,), mean, scale and last (K,), and the scalars."""
    moments = [(name, "f8", (K,)) for name in ("mean", "scale", "last")]
    return np.dtype([("x", "f8", (D,)), *moments, *((name, "f8") for name in SCALARS)])


@njit(cache=True, error_model="numpy")
def spread_of(scale, df):
    """Return the standard deviation of a location-scale normal (df = ∞) or Student-t; a new arm's
    df is < 0."""
    df = abs(df)
    # Var t = ν/(ν − 2), which is infinite for ν ≤ 2
    if df <= 2.0:
        return np.inf if scale > 0.0 else 0.0
    return scale / np.sqrt(1.0 - 2.0 / df)


@njit(cache=True)
def is_among(row, k, which):
    """Return whether an arm may be chosen and is one of these: any, a new or an old one."""
    if row.mean[k] == -np.inf:
        return False
    return which == ANY or (row.last[k] < 0.0) == (which == NEW)


@njit(cache=True)
def count_among(row, which):
    """Return how many arms may be chosen and are one of these."""
    count = 0
    for k in range(row.mean.size):
        count += is_among(row, k, which)
    return count
