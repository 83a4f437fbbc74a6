"""Moments of an arm's rewards, which add exactly, and the kurtosis of all arms' rewards.

Of rewards r with weights w an arm has m = Σw r / Σw, M₂ = Σw (r − m)², M₃/M₂ and M₄/M₂
(`kernels/ridge_state.py`). The quotients stay finite in units in which fourth powers would not.
"""

from bayesbandit.kernels.ridge_state import EVEN_W, MEAN, SKEW, SPREAD, TAIL, W_BAR
from bayesbandit.runtime.compiling import njit

TINY = 1e-300  # a sum of squares below which rewards count as equal: its inverse is not finite


@njit(cache=True)
def add_moments(arm, before, weight, mean, spread, skew, tail):
    """Add rewards of this total weight, mean, M₂, M₃/M₂ and M₄/M₂ to those of an arm.

    before: the total weight of the arm's own. The sums are those of Chan, Golub & LeVeque (1983),
    The American Statistician 37, 242–247, and Pébay (2008), SAND2008-6212, divided by M₂.
    """
    if not weight > 0.0:
        return
    new, gap = weight / (before + weight), mean - arm[MEAN]
    old = 1.0 - new
    between = gap * gap * old * weight
    total = arm[SPREAD] + spread + between
    arm[MEAN] += new * gap
    if not total > 0.0:
        return
    mine, its, between = arm[SPREAD] / total, spread / total, between / total
    back = new * gap  # how far the common mean is from the old one,
    on = old * gap  # and how far the added rewards' mean is from it
    arm[TAIL] = (
        mine * (arm[TAIL] - 4.0 * back * arm[SKEW] + 6.0 * back * back)
        + its * (tail + 4.0 * on * skew + 6.0 * on * on)
        + between * gap * gap * (1.0 - 3.0 * new * old)
    )
    moved, its_moved = arm[SKEW] - 3.0 * back, skew + 3.0 * on
    arm[SKEW] = mine * moved + its * its_moved + between * gap * (old - new)
    arm[SPREAD] = total


@njit(cache=True)
def kurtosis(arms):
    """Return the kurtosis κ of all arms' rewards, E(r − m)⁴ / v², and their variance v.

    Expectations are over all rows by weight, each arm's over its divisor. κ is at least 1: that of
    two values as often as each other, or here of rewards that are all equal. Rewards that are 0 but
    with a small probability p have about 1/p, normal ones have 3.
    """
    weight, mean = 0.0, 0.0
    for k in range(arms.shape[0]):
        weight += arms[k, EVEN_W]
        mean += arms[k, EVEN_W] * arms[k, MEAN]
    if not weight > 0.0:
        return 1.0, 0.0
    mean /= weight
    spread = 0.0
    for k in range(arms.shape[0]):
        gap = arms[k, MEAN] - mean
        spread += arms[k, SPREAD] / arms[k, W_BAR] + arms[k, EVEN_W] * gap * gap
    if not spread > TINY:
        return 1.0, 0.0
    share, tail = 1.0 / spread, 0.0
    for k in range(arms.shape[0]):
        gap = arms[k, MEAN] - mean
        gap2 = gap * gap
        own = arms[k, SPREAD] / arms[k, W_BAR]
        within = arms[k, TAIL] + 4.0 * gap * arms[k, SKEW] + 6.0 * gap2
        between = arms[k, EVEN_W] * gap2
        tail += share * own * within + share * between * gap2
    return max(weight * (tail / spread), 1.0), spread / weight
