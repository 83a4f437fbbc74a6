"""P(arm is best) of K independent arms whose mean rewards are m_k + s_k T_k.

T_k is standard normal where `df[k]` is infinite, and Student's t with `df[k]` degrees of freedom
otherwise. Two or three normal arms have a closed form, others go by `walk.py`. A scale of 0 is a
point mass; point masses that tie share evenly. A mean of −∞ with scale 0 is an arm that cannot be
pulled: its probability is 0, and the other arms do not see it.

Arrays are contiguous float64 of shape (K,): `mean`, `scale` ≥ 0, `df` ≥ MIN_DF. Whatever the ratios
of the scales, the absolute error is below 1e-9. What is less likely than 1e-10 may be 0.
"""

import math

import numpy as np
from numpy.typing import NDArray

from bayesbandit.kernels.prob_best.walk import LOCATED, SHAPE, locate, normalise, walk
from bayesbandit.kernels.student import compiled, normal_cdf, reach

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]

# for a Python int numba would compile all that it is given to again
FIRST_ARM: int | np.int64 = np.int64(0)
NO_ARMS: int | np.int64 = np.int64(0)
NO_ARM: int | np.int64 = np.int64(-1)
ORTHANT_NODES, ORTHANT_WEIGHTS = np.polynomial.legendre.leggauss(8)


@compiled
def duel(a: int, b: int, mean: Vector, scale: Vector) -> float:
    """Return P(a beats b) = Φ((m_a − m_b)/√(s_a² + s_b²)) for two normal arms; equal point masses
    tie."""
    gap = mean[a] - mean[b]
    spread = math.hypot(scale[a], scale[b])
    # without spread Φ(±∞), and ½ of equal means
    return normal_cdf(gap / spread) if spread > 0.0 else 0.5 + 0.5 * np.sign(gap)


@compiled
def orthant(a: int, b: int, c: int, mean: Vector, scale: Vector) -> float:
    """Return P(a beats b and c) = Φ₂(h, k; ρ), h and k arm a's standardised leads, for ρ ≤ √½.

    Φ₂(h, k; ρ) = Φ(h)Φ(k) + 1/2π ∫₀^{asin ρ} exp(−(h² + k² − 2hk sin θ)/(2 cos² θ)) dθ (Drezner and
    Wesolowsky 1990, J. Statist. Comput. Simul. 35, 101-107; Genz 2004, Stat. Comput. 14, 251-260),
    here in v = tan(θ/2): no trigonometry, and singularities far from the short interval.
    """
    # m_a + s_a T_a − m_b − s_b T_b has the sd s_ab, and two such leads share arm a's variance s_a²
    s_ab = math.hypot(scale[a], scale[b])
    s_ac = math.hypot(scale[a], scale[c])
    rho = scale[a] / s_ab * (scale[a] / s_ac)
    # Φ(−40) is 0 in float64; without a bound (h² + k² − 2hk sin θ) may be ∞ − ∞
    h = min(max((mean[a] - mean[b]) / s_ab, -40.0), 40.0)
    k = min(max((mean[a] - mean[c]) / s_ac, -40.0), 40.0)
    # half of tan(θ/2) = sin θ/(1 + cos θ) at sin θ = ρ: nodes in (−1, 1) go to (0, tan(θ/2))
    half = 0.5 * rho / (1.0 + math.sqrt(1.0 - rho * rho))
    total = 0.0
    for i in range(ORTHANT_NODES.size):
        # v = tan(θ/2): sin θ = 2v/(1 + v²), cos θ = (1 − v²)/(1 + v²), dθ = 2 dv/(1 + v²)
        v = half * (1.0 + ORTHANT_NODES[i])
        sine = 2.0 * v / (1.0 + v * v)
        cosine = (1.0 - v * v) / (1.0 + v * v)
        exponent = (0.5 * (h * h + k * k) - h * k * sine) / (cosine * cosine)
        # the integrand exp(−(h² + k² − 2hk sin θ)/(2 cos² θ)), and half of dθ/dv
        total += ORTHANT_WEIGHTS[i] * math.exp(-exponent) / (1.0 + v * v)
    return normal_cdf(h) * normal_cdf(k) + half * total / math.pi


@compiled
def trio(a: int, b: int, c: int, mean: Vector, scale: Vector) -> float:
    """Return P(a beats b and c) for three normal arms, at most one of them a point mass.

    ρ = s_a²/(s_ab s_ac) is at most √½ unless a is the widest arm, and then it is so for b and c.
    """
    # the three probabilities add up to 1: the widest arm's is what the others leave
    # with s_a ≤ s_b: s_a/s_ab ≤ √½ and s_a/s_ac ≤ 1, so that ρ ≤ √½
    if scale[a] <= max(scale[b], scale[c]):
        return orthant(a, b, c, mean, scale)
    return max(0.0, 1.0 - (orthant(b, a, c, mean, scale) + orthant(c, a, b, mean, scale)))


@compiled
def closed_form(a: int, n: int, i: int, j: int, k: int, mean: Vector, scale: Vector) -> float:
    """Return P(arm a is best) among the n ≤ 3 arms i, j and k that can be best."""
    if a not in (i, j, k):
        return 0.0
    if n == 1:
        return 1.0
    b = j if a == i else i
    if n == 2:
        return duel(a, b, mean, scale)
    return trio(a, b, j if a == k else k, mean, scale)


@compiled
def place(mean: Vector, extent: Vector, shift: Vector, alive: Mask) -> float:
    """Return the floor, max_k (shift_k − extent_k). The arms whose range m_k ± extent_k reaches it
    are alive: no other can be best.

    shift_k is the mean of arm k seen from the narrowest arm alive, hence exact to the rounding of
    extent_k for all that are alive.
    """
    K = mean.size
    floor = -np.inf
    for k in range(K):
        # some arm is above this with all but NEGLIGIBLE_MASS: the best arm is not below it
        floor = max(floor, mean[k] - extent[k])
    origin = 0
    narrowest = np.inf
    for k in range(K):
        alive[k] = mean[k] > -np.inf and mean[k] + extent[k] >= floor
        if alive[k] and extent[k] < narrowest:
            origin = k
            narrowest = extent[k]
    floor = -np.inf
    for k in range(K):
        # differences, so that means of 1e9 that differ by little keep their digits
        shift[k] = mean[k] - mean[origin]
        if alive[k]:
            floor = max(floor, shift[k] - extent[k])
    return floor


@compiled
def by_walk(
    floor: float, shift: Vector, scale: Vector, df: Vector, alive: Mask, out: Vector
) -> None:
    """Fill out (K,) with P(arm is best) among the arms that are alive. Point masses are at the
    floor, and share the probability that all others are below."""
    K = shift.size
    points = 0
    shapes = np.empty((K, SHAPE))
    spread = np.empty(K, np.bool_)
    for k in range(K):
        spread[k] = alive[k] and scale[k] > 0.0
        points += alive[k] and scale[k] == 0.0
        if spread[k]:
            locate(shapes[k], shift[k], scale[k], df[k], reach(df[k]))
    below = walk(shapes, spread, LOCATED, floor, out)
    for k in range(K):
        if alive[k] and scale[k] == 0.0:
            out[k] = below / points
    normalise(out)


@compiled
def best_from(first: int, mean: Vector, scale: Vector, df: Vector, out: Vector) -> None:
    """Fill out with P(arm a is best) for a = first, first + 1, …; one has the bits of all."""
    K = mean.size
    extent = np.empty(K)
    shift = np.empty(K)
    alive = np.empty(K, np.bool_)
    for k in range(K):
        extent[k] = reach(df[k]) * scale[k]
    floor = place(mean, extent, shift, alive)
    # how many arms can be best, how many of these are point masses or Student-t, and the last three
    n = points = students = NO_ARMS
    i = j = third = NO_ARM
    for k in range(K):
        if alive[k]:
            i, j, third = k, i, j
            n += 1
            points += scale[k] == 0.0
            students += df[k] < np.inf
    # up to three normal arms: Φ, or Φ₂
    # two point masses of three arms have the sd s_bc = 0, and no ρ
    if n <= 1 or (students == 0 and (n == 2 or (n == 3 and points <= 1))):
        for a in range(out.size):
            out[a] = closed_form(first + a, n, i, j, third, mean, scale)
        return
    # (4) for all arms at once: one arm alone would take as long
    every = np.empty(K)
    by_walk(floor, shift, scale, df, alive, every)
    for a in range(out.size):
        out[a] = every[first + a]


def best_of_location_scale(mean: Vector, scale: Vector, df: Vector) -> Vector:
    """Return P(arm is best), (…, K), for independent normals (df = ∞) and Student-t (…, K)."""
    K = mean.shape[-1]
    m, s, nu = (np.ascontiguousarray(a.reshape(-1, K)) for a in (mean, scale, df))
    out = np.empty_like(m)
    for i in range(len(m)):
        best_from(FIRST_ARM, m[i], s[i], nu[i], out[i])
    return out.reshape(mean.shape)
