"""How an arm is picked from the moments of a row; `kernels/propensities.py` says how likely.

Random numbers come from a block of standard normals, behind a count of those that are used, and
before the number of contexts decided so far: one array, so that a compiled decision changes both or
neither. A draw of a beta or gamma number takes an unknown number of random numbers: one normal of
the block seeds all of them (`kernels/conjugate/families.py`).
"""

import numpy as np

from bayesbandit.kernels.conjugate.families import log_odds, log_rate, seeded
from bayesbandit.kernels.row_layout import (
    ANY,
    BETA,
    DRAWN,
    EPSILON_GREEDY,
    INFINITE_SD,
    NEW,
    OLD,
    TABULATED,
    THOMPSON,
    count_among,
    is_among,
    spread_of,
)
from bayesbandit.kernels.student import normal_cdf
from bayesbandit.runtime.compiling import njit

# Whether arms are regressions; `without` it they are probabilities or rates, and rules may draw
# from beta and gamma posteriors.
LINEAR = True


@njit(cache=True)
def normal(stream):
    """Return the next standard normal of a block; stream[0] counts those that are used."""
    stream[0] += 1.0
    return stream[int(stream[0])]


@njit(cache=True)
def below(count, stream):
    """Return a uniform integer in [0, count)."""
    # Φ(z) is uniform in (0, 1), and 1 by rounding from z = 8.3 on
    return min(int(normal_cdf(normal(stream)) * count), count - 1)


@njit(cache=True)
def is_short(stream, K):
    """Return whether the block may run out within a round (2 normals for each arm and 1 for its
    tie, and 3 to explore), or is held (stream[0] < 0)."""
    return stream[0] < 0.0 or stream[0] + 3 * K + 3 >= stream.size


@njit(cache=True)
def draw(mean, scale, df, stream):
    """Return one draw of an arm's mean reward.

    Student-t comes from two normals by Bailey's polar method (Math. Comp. 62, 1994), in the form t
    = z₁ √(ν (e^{R²/ν} − 1)) / R with R² = z₁² + z₂²: exact for every ν > 0, and z₁ as ν → ∞.
    """
    z = normal(stream)
    if df != np.inf:
        other = normal(stream)
        R2 = z * z + other * other
        if R2 > 0.0:
            # e^(−R²/2) is uniform, and z₁/R the cosine of a uniform angle, independent of it
            z *= np.sqrt(df * np.expm1(R2 / df) / R2)
    # 0 · ∞ would be NaN
    return mean + scale * z if scale > 0.0 else mean


@njit(cache=True)
def ucb_score(row, k, alpha):
    """Return the mean of an arm and α of its standard deviations."""
    # 0 · ∞ is NaN, and 0 · 1e100 the mean alone
    return row.mean[k] + alpha * min(spread_of(row.scale[k], row.last[k]), INFINITE_SD)


@njit(cache=True)
def uniformly(row, which, count, stream):
    """Return one of `count` arms, all equally likely."""
    skip = below(count, stream)
    for k in range(row.mean.size):
        if is_among(row, k, which):
            # the arm that has `skip` others before it
            if skip == 0:
                return k
            skip -= 1
    return -1


@njit(cache=True)
def pick(probabilities, stream):
    """Return an arm, each with its probability; rounding never picks one of probability 0."""
    total = 0.0
    last = 0
    for p in probabilities:
        total += p
    # Φ(z) is uniform: the arm in whose part of [0, total) it falls
    rest = normal_cdf(normal(stream)) * total
    for k in range(probabilities.size):
        if probabilities[k] > 0.0:
            last = k
            rest -= probabilities[k]
            if rest < 0.0:
                break
    return last


@njit(cache=True)
def explored(row, count, new, floor, stream):
    """Return an arm that is chosen at random before the rule is asked; −1 if the rule decides.

    With probability floor · count it is any of the `count` arms that may be chosen. Else it is one
    of the `new` new arms with probability new/count, and the rule decides among the others.
    """
    # (5): γ + (1 − Kγ) p is a mixture of 1/K with weight Kγ, and p
    if new == count or (floor > 0.0 and normal_cdf(normal(stream)) < count * floor):
        return uniformly(row, ANY, count, stream)
    if new > 0 and normal_cdf(normal(stream)) * count < new:
        return uniformly(row, NEW, new, stream)
    return -1


@njit(cache=True)
def select_arm(row, kind, param, floor, stream):
    """Return the arm that a rule picks from the moments of a row; ties are broken evenly.

    Of U new arms among K that may be chosen each has probability 1/K, and the rule shares (K − U)/K
    among the others. The floor f then lifts every probability p to f + (1 − Kf) p, (5).
    """
    if kind == TABULATED:
        return pick(row.last, stream)
    count = count_among(row, ANY)
    new = count_among(row, NEW)
    if new > 0 or floor > 0.0:
        arm = explored(row, count, new, floor, stream)
        if arm >= 0:
            return arm
    # ε-greedy: any old arm with probability ε, else the largest mean
    if kind == EPSILON_GREEDY and normal_cdf(normal(stream)) < param:
        return uniformly(row, OLD, count - new, stream)
    alpha = 0.0 if kind == EPSILON_GREEDY else param
    state = np.uint64(0)
    if not LINEAR and kind in DRAWN:
        state = seeded(normal(stream))
    best = -1
    best_score = -np.inf
    ties = 0
    for k in range(row.mean.size):
        if not is_among(row, k, OLD):
            continue
        if kind == THOMPSON:
            # Thompson sampling: the arm with the largest draw of its mean reward
            score = draw(row.mean[k], alpha * row.scale[k], row.last[k], stream)
        elif LINEAR or kind not in DRAWN:
            score = ucb_score(row, k, alpha)
        elif kind == BETA:  # on the scale of log v/(1 − v), or of log v
            score, state = log_odds(row.last[k], row.scale[k], state)
        else:
            score, state = log_rate(row.last[k], row.scale[k], state)
        # one arm must be chosen, even where all scores are −∞
        if score > best_score or best < 0:
            best = k
            best_score = score
            ties = 1
        elif score == best_score:
            ties += 1
            # the last of `ties` equal scores replaces the one before with probability 1/ties: all
            # have the same chance
            if below(ties, stream) == 0:
                best = k
    return best
