"""How an arm is picked from the moments of a row; `kernels/propensities.py` says how likely.

A logged round is one row of numbers: the context with its constant column (D), each arm's mean,
scale and degrees of freedom at the moment of decision (K each), then the scalars below. Under the
rules BETA and GAMMA, b stands for the scale and a for the degrees of freedom. An arm that may not
be chosen has mean −∞ and scale 0. Random numbers come from a block of standard normals, behind a
count of those that are used, and before the number of contexts decided so far: one array, so that a
compiled decision changes both or neither.

An arm without a reward is new, which a minus before its degrees of freedom or a says. Of U new ones
among K that may be chosen each has probability 1/K, and the rule shares (K − U)/K among the others.
FLOOR γ then lifts every probability p to γ + (1 − Kγ) p.
"""

import numpy as np

from bayesbandit.kernels.conjugate.families import beta_moments, gamma_moments
from bayesbandit.kernels.student import normal_cdf
from bayesbandit.runtime.compiling import interpreted, njit

# The scalars of a row, counted from `tail_at`.
ARM, KIND, PARAM, FLOOR, PROPENSITY, REWARD, WEIGHT = range(7)
TAIL = 7

# The rule that decided; BETA and GAMMA: Thompson sampling from such posteriors.
KINDS = range(6)
THOMPSON, UCB, EPSILON_GREEDY, TABULATED, BETA, GAMMA = KINDS
DRAWN = BETA, GAMMA
ANY, NEW, OLD = np.arange(3)  # among which arms; for a Python int numba compiles anew
HUGE = 1e100  # stands for an infinite standard deviation, so that α = 0 leaves the mean


@njit(cache=True)
def scale_at(D, K):
    """Where the scales begin in a row, and the means end."""
    return D + K


@njit(cache=True)
def df_at(D, K):
    """Where the degrees of freedom begin; under the rule TABULATED, the arms' probabilities, and a
    under BETA and GAMMA.

    A belief whose arms depend on each other, or which is known by draws, has no degrees of freedom:
    it tabulates the probabilities, which need a place in the row all the same. Whoever reads these
    numbers asks the row's KIND first.
    """
    return D + 2 * K


@njit(cache=True)
def tail_at(D, K):
    """Where the scalars begin, ARM to WEIGHT."""
    return D + 3 * K


@njit(cache=True)
def moments_in(row, D, K):
    """The means, scales and degrees of freedom (K,) of a row (width,)."""
    at, df, tail = scale_at(D, K), df_at(D, K), tail_at(D, K)
    return row[D:at], row[at:df], row[df:tail]


@njit(cache=True)
def row_width(D, K):
    """Numbers that one logged round takes."""
    return tail_at(D, K) + TAIL


def put_moments(rows, D, available, mean, scale, last):
    """Every available arm's mean, scale, and degrees of freedom or probability (n, K) into rows."""
    K, all_ = available.size, available.all()
    for at, values, absent in ((D, mean, -np.inf), (D + K, scale, 0.0), (D + 2 * K, last, 0.0)):
        rows[:, at : at + K] = values if all_ else np.where(available, values, absent)


@njit(cache=True)
def normal(stream):
    """The next standard normal of a block; stream[0] counts those that are used."""
    stream[0] += 1.0
    return stream[int(stream[0])]


@njit(cache=True)
def below(count, stream):
    """A uniform integer in [0, count)."""
    return min(int(normal_cdf(normal(stream)) * count), count - 1)


@njit(cache=True)
def is_short(stream, K):
    """Whether the block may run out within a round: 2 normals an arm, 1 a tie, 2 to explore; or is
    held (stream[0] < 0)."""
    return stream[0] < 0.0 or stream[0] + 3 * K + 3 >= stream.size


@njit(cache=True, error_model="numpy")
def spread_of(scale, df):
    """Standard deviation of a location-scale normal (df = ∞) or Student-t; a new arm's df < 0."""
    df = abs(df)
    if df <= 2.0:
        return np.inf if scale > 0.0 else 0.0
    return scale / np.sqrt(max(1.0 - 2.0 / df, 1e-300))


def spread(scale, df):
    """`spread_of` arrays, to the bit, without a kernel."""
    df = np.maximum(np.abs(df), 2.0)
    wide = scale / np.sqrt(np.maximum(1.0 - 2.0 / df, 1e-300))
    return np.where(df > 2.0, wide, np.where(np.greater(scale, 0.0), np.inf, 0.0))


def deviation(kind, scale, last):
    """Arms' standard deviations (…, K) by what stands in rows of these KINDs (…, 1): 0 of none."""
    kind, scale, last = map(np.asarray, (kind, scale, last))
    sd = np.where(kind == TABULATED, scale, spread(scale, last))
    for family, moments in ((BETA, beta_moments), (GAMMA, gamma_moments)):
        there = (kind == family) & (scale != 0.0)
        sd[there] = interpreted(moments)(np.abs(last[there]), scale[there])[1]
    return np.where(scale == 0.0, 0.0, sd)


@njit(cache=True)
def draw(mean, scale, df, stream):
    """One draw of an arm's mean reward.

    Student-t from two normals by Bailey's polar method (Math. Comp. 62, 1994), in the form
    t = z₁ √(ν (e^{R²/ν} − 1)) / R with R² = z₁² + z₂²: exact for every ν > 0, and z₁ as ν → ∞.
    """
    z = normal(stream)
    if df != np.inf:
        other = normal(stream)
        R2 = z * z + other * other
        if R2 > 0.0:
            z *= np.sqrt(df * np.expm1(R2 / df) / R2)
    return mean + scale * z if scale > 0.0 else mean


@njit(cache=True)
def available_in(row, D, K):
    """How many arms may be chosen."""
    count = 0
    for k in range(K):
        count += row[D + k] > -np.inf
    return count


@njit(cache=True)
def new_in(row, D, K):
    """How many of them are new."""
    new = 0
    for k in range(K):
        new += row[df_at(D, K) + k] < 0.0
    return new


@njit(cache=True)
def is_among(row, k, D, K, which):
    """Whether an arm may be chosen, and is any, a new or an old one."""
    if row[D + k] == -np.inf:
        return False
    return which == ANY or (row[df_at(D, K) + k] < 0.0) == (which == NEW)


@njit(cache=True)
def ucb_score(row, k, K, D, alpha):
    return row[D + k] + alpha * min(spread_of(row[scale_at(D, K) + k], row[df_at(D, K) + k]), HUGE)


@njit(cache=True)
def uniformly(row, D, K, which, count, stream):
    """One of `count` arms, each alike."""
    skip = below(count, stream)
    for k in range(K):
        if is_among(row, k, D, K, which):
            if skip == 0:
                return k
            skip -= 1
    return -1


@njit(cache=True)
def pick(probabilities, stream):
    """An arm, each with its probability; rounding never picks one of probability 0."""
    total, last = 0.0, 0
    for p in probabilities:
        total += p
    rest = normal_cdf(normal(stream)) * total
    for k in range(probabilities.size):
        if probabilities[k] > 0.0:
            last = k
            rest -= probabilities[k]
            if rest < 0.0:
                break
    return last


@njit(cache=True)
def explored(row, D, K, new, floor, stream):
    """An arm by the floor, or a new one for its share; −1: the rule decides among the old ones."""
    count = available_in(row, D, K)
    if new == count or (floor > 0.0 and normal_cdf(normal(stream)) < count * floor):
        return uniformly(row, D, K, ANY, count, stream)
    if new > 0 and normal_cdf(normal(stream)) * count < new:
        return uniformly(row, D, K, NEW, new, stream)
    return -1


@njit(cache=True)
def decide(row, D, K, kind, param, floor, stream):
    """The arm that a rule picks from a row's moments; ties are broken evenly. Rules that draw from
    other posteriors: `kernels/conjugate/drawing.py`."""
    if kind == TABULATED:
        return pick(row[df_at(D, K) : tail_at(D, K)], stream)
    new = new_in(row, D, K)
    if new > 0 or floor > 0.0:
        arm = explored(row, D, K, new, floor, stream)
        if arm >= 0:
            return arm
    if kind == EPSILON_GREEDY and normal_cdf(normal(stream)) < param:
        return uniformly(row, D, K, OLD, available_in(row, D, K) - new, stream)
    alpha = 0.0 if kind == EPSILON_GREEDY else param
    best, best_score, ties = -1, -np.inf, 0
    for k in range(K):
        mean, scale, df = row[D + k], row[scale_at(D, K) + k], row[df_at(D, K) + k]
        if mean == -np.inf or df < 0.0:
            continue
        if kind == THOMPSON:
            score = draw(mean, alpha * scale, df, stream)
        else:
            score = ucb_score(row, k, K, D, alpha)
        if score > best_score or best < 0:
            best, best_score, ties = k, score, 1
        elif score == best_score:
            ties += 1
            if below(ties, stream) == 0:
                best = k
    return best
