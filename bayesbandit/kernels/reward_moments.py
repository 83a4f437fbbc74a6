"""Moments of an arm's rewards, which add exactly, and the kurtosis of all arms' rewards.

Of rewards r with weights w an arm has m = Σw r / Σw, M₂ = Σw (r − m)², M₃/M₂ and M₄/M₂
(`kernels/arm.py`). The quotients stay finite in units in which fourth powers would not.
"""

from bayesbandit.kernels.arm import head_of
from bayesbandit.runtime.compiling import njit

MIN_SPREAD = 1e-300  # sums of squares below it count as 0: their inverses are not finite


@njit(cache=True)
def add_moments(head, before, weight, mean, spread, skew, tail):
    """Add rewards of this total weight, mean, M₂, M₃/M₂ and M₄/M₂ to those in the head of an arm.

    before: the total weight of the arm's own. The sums are those of Chan, Golub & LeVeque (1983),
    The American Statistician 37, 242–247, and Pébay (2008), SAND2008-6212, divided by M₂.
    """
    if not weight > 0.0:
        return
    # m = m₁ + (w₂/w) gap, and M₂ = M₂₁ + M₂₂ + gap² w₁w₂/w
    new = weight / (before + weight)
    gap = mean - head.mean_r
    old = 1.0 - new
    between = gap * gap * old * weight
    total = head.m2 + spread + between
    head.mean_r += new * gap
    if not total > 0.0:
        return
    mine = head.m2 / total
    its = spread / total
    between = between / total
    back = new * gap  # how far the common mean is from the old one,
    on = old * gap  # and how far the added rewards' mean is from it
    # M₄ about the common mean: each part's own moments are moved by `back` or `on`, as
    # Σ(r − m + g)⁴ = M₄ + 4g M₃ + 6g² M₂ + g⁴ W; the last terms of both parts add to `between`
    # old + new = 1 makes new³ + old³ = 1 − 3 new·old, and old² − new² = old − new for M₃
    head.m4_over_m2 = (
        mine * (head.m4_over_m2 - 4.0 * back * head.m3_over_m2 + 6.0 * back * back)
        + its * (tail + 4.0 * on * skew + 6.0 * on * on)
        + between * gap * gap * (1.0 - 3.0 * new * old)
    )
    moved = head.m3_over_m2 - 3.0 * back
    its_moved = skew + 3.0 * on
    head.m3_over_m2 = mine * moved + its * its_moved + between * gap * (old - new)
    head.m2 = total


@njit(cache=True)
def kurtosis(arms):
    """Return the kurtosis κ of all arms' rewards, E(r − m)⁴ / v², and their variance v.

    Expectations are over all rows by weight, each arm's over its divisor. κ is at least 1: that of
    two values as often as each other, or here of rewards that are all equal. Rewards that are 0 but
    with a small probability p have about 1/p, normal ones have 3.
    """
    weight = 0.0
    mean = 0.0
    for k in range(arms.shape[0]):
        head = head_of(arms[k])
        weight += head.scaled_sum_w
        mean += head.scaled_sum_w * head.mean_r
    if not weight > 0.0:
        return 1.0, 0.0
    mean /= weight
    spread = 0.0
    for k in range(arms.shape[0]):
        head = head_of(arms[k])
        gap = head.mean_r - mean
        spread += head.m2 / head.weight_divisor + head.scaled_sum_w * gap * gap
    if not spread > MIN_SPREAD:
        return 1.0, 0.0
    share = 1.0 / spread
    tail = 0.0
    for k in range(arms.shape[0]):
        head = head_of(arms[k])
        gap = head.mean_r - mean
        gap2 = gap * gap
        own = head.m2 / head.weight_divisor
        # Σ(r − m)⁴ about the mean of all is M₄ + 4g M₃ + 6g² M₂ + g⁴ W: `within` times M₂, and
        # `between` times g²
        within = head.m4_over_m2 + 4.0 * gap * head.m3_over_m2 + 6.0 * gap2
        between = head.scaled_sum_w * gap2
        tail += share * own * within + share * between * gap2
    # with W = Σw: κ = (M₄/W)/(M₂/W)² = W (M₄/M₂)/M₂, and E X² ≥ (E X)² says that κ ≥ 1
    return max(weight * (tail / spread), 1.0), spread / weight
