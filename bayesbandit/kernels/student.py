"""The standard normal and Student's t: their height, and how far they reach.

`df` is the degrees of freedom ν > 0, infinite for the normal.
"""

import math

import numpy as np

from bayesbandit.runtime.compiling import njit

NEGLIGIBLE_MASS = 1e-10  # what a cut may lose: a rival, a tail, a skipped panel
NORMAL_REACH = 6.5  # Φ(-6.5) = 4e-11
MIN_DF = 0.1  # such a tail begins at 1e96, and with .06 degrees of freedom at 1e160

# No fastmath: a probability must have the same bits wherever it is computed.
compiled = njit(cache=True, error_model="numpy")


@compiled
def normal_cdf(z: float) -> float:
    """Return Φ(z) = ½ erfc(-z/√2)."""
    # 1 − erf would lose the digits of the lower tail
    return 0.5 * math.erfc(-z * math.sqrt(0.5))


@compiled
def peak(df: float) -> float:
    """Return the standard density at 0: Γ((ν+1)/2) / (√(πν) Γ(ν/2)), or 1/√(2π) where ν is
    infinite."""
    x = 0.5 * df
    if x < 100.0:
        # below 100 log Γ is below 360, whose rounding leaves 13 digits of the ratio
        return math.exp(math.lgamma(x + 0.5) - math.lgamma(x)) / math.sqrt(math.pi * df)
    # Γ(x+½)/Γ(x) ~ √x (1 - 1/8x + 1/128x² + 5/1024x³ - 21/32768x⁴), DLMF 5.11.13
    y = 1.0 / x
    ratio = 1.0 - y * (1 / 8 - y * (1 / 128 + y * (5 / 1024 - y * 21 / 32768)))
    return ratio / math.sqrt(2.0 * math.pi)


@compiled
def log_fall(z: float, df: float) -> float:
    """Return the standard log density at z less that at 0."""
    if df == np.inf:
        return -0.5 * z * z
    return -0.5 * (df + 1.0) * math.log1p(z * z / df)


@compiled
def reach(df: float) -> float:
    """Return a z with F(-z) <= NEGLIGIBLE, and not much larger than need be.

    For Student's t it is the smaller of two bounds, F(-z) <= f(0) ν^((ν-1)/2) z^-ν and F(-z) <=
    Φ(-√((ν-½) log(1 + z²/ν))) (Wallace 1959, Ann. Math. Statist. 30, 1121-1130), which is one for
    ν > ½.
    """
    if df == np.inf:
        return NORMAL_REACH
    # both bounds, solved for z where they are NEGLIGIBLE_MASS
    # f(t) ≤ f(0) (t²/ν)^(−(ν+1)/2), and its integral from z on is f(0) ν^((ν−1)/2) z^(−ν)
    power = math.sqrt(df) * (peak(df) / (math.sqrt(df) * NEGLIGIBLE_MASS)) ** (1.0 / df)
    if df <= 0.5:
        return power
    return min(power, math.sqrt(df * math.expm1(NORMAL_REACH**2 / (df - 0.5))))
