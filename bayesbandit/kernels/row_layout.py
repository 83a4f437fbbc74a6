"""What stands where in the row of numbers of one logged round.

A row holds the context with its constant column (D), each arm's mean, scale and degrees of freedom
at the moment of decision (K each), then the scalars below. Under the rules BETA and GAMMA, b stands
for the scale and a for the degrees of freedom. An arm that may not be chosen has mean −∞ and scale
0. An arm without a reward is new: its degrees of freedom, or its a, are negative.
"""

from functools import cache

import numpy as np

from bayesbandit.runtime.compiling import njit

# The scalars of a row, which kernels count from `tail_at`; `row_type` has them by name.
SCALARS = "arm", "rule", "number", "min_probability", "propensity", "reward", "weight"
TAIL = len(SCALARS)
ARM, KIND, PARAM, FLOOR, PROPENSITY, REWARD, WEIGHT = range(TAIL)

# The rule that decided; BETA and GAMMA: Thompson sampling from such posteriors.
KINDS = range(6)
THOMPSON, UCB, EPSILON_GREEDY, TABULATED, BETA, GAMMA = KINDS
DRAWN = BETA, GAMMA
ANY, NEW, OLD = np.arange(3)  # among which arms; for a Python int numba compiles again
HUGE = 1e100  # stands for an infinite standard deviation, so that α = 0 leaves the mean


@njit(cache=True)
def scale_at(D, K):
    """Return where the scales begin in a row, and the means end."""
    return D + K


@njit(cache=True)
def df_at(D, K):
    """Return where the degrees of freedom begin. Under the rule TABULATED the arms' probabilities
    stand there, and a under BETA and GAMMA.

    A belief whose arms depend on each other, or which is known by draws, has no degrees of freedom.
    Its probabilities take their place. Look at the row's KIND before you read these numbers.
    """
    return D + 2 * K


@njit(cache=True)
def tail_at(D, K):
    """Return where the scalars begin, ARM to WEIGHT."""
    return D + 3 * K


@njit(cache=True)
def moments_in(row, D, K):
    """Return the means, scales and degrees of freedom (K,) of a row (width,)."""
    at, df, tail = scale_at(D, K), df_at(D, K), tail_at(D, K)
    return row[D:at], row[at:df], row[df:tail]


@njit(cache=True)
def row_width(D, K):
    """Return how many numbers one logged round takes."""
    return tail_at(D, K) + TAIL


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
    if df <= 2.0:
        return np.inf if scale > 0.0 else 0.0
    return scale / np.sqrt(max(1.0 - 2.0 / df, 1e-300))


@njit(cache=True)
def available_in(row, D, K):
    """Return how many arms may be chosen."""
    count = 0
    for k in range(K):
        count += row[D + k] > -np.inf
    return count


@njit(cache=True)
def new_in(row, D, K):
    """Return how many arms are new."""
    new = 0
    for k in range(K):
        new += row[df_at(D, K) + k] < 0.0
    return new


@njit(cache=True)
def is_among(row, k, D, K, which):
    """Return whether an arm may be chosen and is one of these: any, a new or an old one."""
    if row[D + k] == -np.inf:
        return False
    return which == ANY or (row[df_at(D, K) + k] < 0.0) == (which == NEW)
