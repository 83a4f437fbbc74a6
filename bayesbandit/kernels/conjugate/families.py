"""Beta and Gamma numbers: their moments, and draws of them.

Rejection sampling needs an unknown number of random numbers, but a bandit holds a fixed block of
them for each round. So a decision takes one normal of the block (`kernels/selection.py`). Its 64
bits seed a SplitMix64 generator (Steele, Lea and Flood 2014, OOPSLA), which never runs out. Draws
are log v/(1 − v) or log v, as in `prob_best/walk.py`: values of v next to 0 or 1 stay distinct
on this scale.
"""

import math

import numpy as np

from bayesbandit.runtime.compiling import njit

SPLITMIX_STEP = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
LEFT, MIDDLE, RIGHT, SPARE = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
UNIT_OF_53_BITS = 2.0**-53
LOWEST_LOG = -1e300  # of a logarithm, where a is so small that it would be −∞
SERIES_BELOW = 1e-3  # below it the acceptance is told by two terms of its series, to 1e-11


@njit(cache=True)
def is_possible(reward, binary, whole):
    """Return whether a reward has a likelihood: 0 and 1 of a probability, rewards ≥ 0 of a rate;
    whole: whole ones alone. In Python also of an array."""
    if binary > 0.0:
        return (reward == 0.0) | (reward == 1.0)
    return (reward >= 0.0) & ((whole == 0.0) | (reward == np.floor(reward)))


@njit(cache=True)
def beta_moments(a, b):
    """Return the mean and the standard deviation of a Beta(a, b)."""
    n = a + b
    # quotients first: ab/n² may overflow or vanish, as a/n · b/n does not
    return a / n, np.sqrt(a / n * (b / n) / (n + 1.0))


@njit(cache=True)
def gamma_moments(a, b):
    """Return the mean and the standard deviation of a Gamma(a, b), b a rate."""
    # mean a/b, variance a/b²
    return a / b, np.sqrt(a) / b


@njit(cache=True)
def mixed(bits):
    """Return 64 bits, each of which depends on all 64 bits of the input (SplitMix64's mixing)."""
    # the constants and shifts are those of the paper's finalizer
    bits = (bits ^ (bits >> LEFT)) * FIRST
    bits = (bits ^ (bits >> MIDDLE)) * SECOND
    return bits ^ (bits >> RIGHT)


@njit(cache=True)
def seeded(z):
    """Return a SplitMix64 state (uint64), seeded by the bits of the normal draw z."""
    return mixed(np.float64(z).view(np.uint64))


@njit(cache=True)
def uniform(state):
    """Return a uniform number within (0, 1), and the next state."""
    state = state + SPLITMIX_STEP
    # the middles of 2^53 equal intervals: never 0, whose logarithm is taken
    return (np.float64(mixed(state) >> SPARE) + 0.5) * UNIT_OF_53_BITS, state


@njit(cache=True)
def centre(a):
    """Return the d of `log_gamma`."""
    # d = a − ⅓ of Marsaglia and Tsang; for a < 1, of a + 1
    return a - 1.0 / 3.0 if a >= 1.0 else a + 2.0 / 3.0


@njit(cache=True, error_model="numpy")
def log_gamma(a, state):
    """Return log G/d of a draw G ~ Gamma(a, 1), d = `centre(a)`, and the next state.

    Marsaglia and Tsang (2000, ACM TOMS 26, 363–372): G = d (1 + y)³, y = x/(3√d) of a normal x, is
    accepted with probability exp d (3 log(1 + y) − 3y + 3y²/2 − y³), the form of theirs in which
    nothing cancels however large d is. For a < 1 it is a draw of a + 1 times U^{1/a}.
    """
    d = centre(a)
    unit = 1.0 / (3.0 * math.sqrt(d))
    while True:
        u, state = uniform(state)
        turn, state = uniform(state)
        # a normal by Box and Muller
        y = unit * math.sqrt(-2.0 * math.log(u)) * math.cos(2.0 * math.pi * turn)
        u, state = uniform(state)
        if y <= -1.0:
            continue
        log = math.log1p(y)
        flat = abs(y) < SERIES_BELOW
        # 3 log(1 + y) − 3y + 3y²/2 − y³ = −3y⁴/4 + 3y⁵/5 − …
        part = y**4 * (0.6 * y - 0.75) if flat else 3.0 * (log - y + 0.5 * y * y) - y**3
        # u < e^x: 1 + x ≤ e^x decides most draws without a logarithm
        if u < 1.0 + d * part or math.log(u) < d * part:
            break
    if a >= 1.0:
        return 3.0 * log, state
    u, state = uniform(state)
    return 3.0 * log + max(math.log(u) / a, LOWEST_LOG), state


@njit(cache=True, error_model="numpy")
def log_odds(a, b, state):
    """Return log v/(1 − v) of a draw v ~ Beta(a, b), and the next state."""
    # v = G_a/(G_a + G_b), so v/(1 − v) = G_a/G_b
    success, state = log_gamma(a, state)
    failure, state = log_gamma(b, state)
    # logarithms of G/d: their difference keeps its digits where a and b are 1e12
    return math.log(centre(a) / centre(b)) + success - failure, state


@njit(cache=True, error_model="numpy")
def log_rate(a, b, state):
    """Return log v of a draw v ~ Gamma(a, b), and the next state."""
    part, state = log_gamma(a, state)
    return math.log(centre(a) / b) + part, state
