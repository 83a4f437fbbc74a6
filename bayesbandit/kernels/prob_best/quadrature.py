"""Probability that an arm is the best one, for K independent arms.

The mean reward of arm k is believed to be `m_k + s_k T_k` with independent T_k, standard normal
where `df[k]` is infinite and Student's t with `df[k]` degrees of freedom otherwise:

    P(arm a is best) = ∫ f_a(x) Π_{k≠a} F_k(x) dx.

A scale of 0 is a point mass; point masses that tie share evenly. A mean of -inf with scale 0 is an
arm that cannot be pulled: its probability is 0 and the other arms do not see it.

Arrays are contiguous float64 of shape (K,): `mean`, `scale` >= 0, `df` >= 1. Whatever the ratios of
the scales, the absolute error is about 1e-10, at worst K times that; what is less likely than 1e-10
may be returned as 0.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesbandit.kernels.student import (
    NEGLIGIBLE,
    density,
    distribution,
    kernel,
    normal_cdf,
    peak,
    reach,
)

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]
Arms = tuple[Vector, Vector, Vector, Vector]  # location, scale, df, and the density's peak(df)

SPAN = 2.5  # length of a panel in scales: errs by 2e-10 at K = 100, against 8e-9 at 3
FAR = 6.5  # standard deviations: Φ(−6.5) is 4e-11
FIRST: Any = np.int64(0)  # for a Python int numba would compile again
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
ORTHANT_NODES, ORTHANT_WEIGHTS = np.polynomial.legendre.leggauss(8)


@kernel
def duel(a: int, b: int, mean: Vector, scale: Vector) -> float:
    """Return P(a beats b) = Φ((m_a - m_b)/√(s_a² + s_b²)) for two normal arms; equal point masses
    tie."""
    gap = mean[a] - mean[b]
    spread = math.hypot(scale[a], scale[b])
    return normal_cdf(gap / spread) if spread > 0.0 else 0.5 + 0.5 * np.sign(gap)


@kernel
def leads(a: int, b: int, mean: Vector, scale: Vector) -> bool:
    """Return whether arm b, a normal like arm a, exceeds it with less than NEGLIGIBLE probability,
    and by far: then b takes nothing from a's probability of being best, nor, once a is beaten, from
    another's."""
    return mean[a] - mean[b] > FAR * (scale[a] + scale[b])


@kernel
def orthant(a: int, b: int, c: int, mean: Vector, scale: Vector) -> float:
    """Return P(a beats b and c) = Φ₂(h, k; ρ), h and k arm a's standardised leads, for ρ <= √½.

    Φ₂(h, k; ρ) = Φ(h)Φ(k) + 1/2π ∫₀^{asin ρ} exp(-(h² + k² - 2hk sin θ)/(2 cos² θ)) dθ (Drezner and
    Wesolowsky 1990, J. Statist. Comput. Simul. 35, 101-107; Genz 2004, Stat. Comput. 14, 251-260),
    here in v = tan(θ/2): no trigonometry, and singularities far from the short interval.
    """
    s_ab, s_ac = math.hypot(scale[a], scale[b]), math.hypot(scale[a], scale[c])
    rho = scale[a] / s_ab * (scale[a] / s_ac)
    h = min(max((mean[a] - mean[b]) / s_ab, -40.0), 40.0)
    k = min(max((mean[a] - mean[c]) / s_ac, -40.0), 40.0)
    half = 0.5 * rho / (1.0 + math.sqrt(1.0 - rho * rho))
    total = 0.0
    for i in range(ORTHANT_NODES.size):
        v = half * (1.0 + ORTHANT_NODES[i])
        sine, cosine = 2.0 * v / (1.0 + v * v), (1.0 - v * v) / (1.0 + v * v)
        exponent = (0.5 * (h * h + k * k) - h * k * sine) / (cosine * cosine)
        total += ORTHANT_WEIGHTS[i] * math.exp(-exponent) / (1.0 + v * v)
    return normal_cdf(h) * normal_cdf(k) + half * total / math.pi


@kernel
def trio(a: int, b: int, c: int, mean: Vector, scale: Vector) -> float:
    """Return P(a beats b and c) for three normal arms, at most one of them a point mass.

    ρ = s_a²/(s_ab s_ac) is at most √½ unless a is the widest arm, and then it is so for b and c.
    """
    if scale[a] <= max(scale[b], scale[c]):
        return orthant(a, b, c, mean, scale)
    return max(0.0, 1.0 - (orthant(b, a, c, mean, scale) + orthant(c, a, b, mean, scale)))


@kernel
def contenders(mean: Vector, scale: Vector, df: Vector) -> tuple[int, int, int, int]:
    """Return (n, i, j, k): the n <= 3 arms that can be best, -1 beyond the n-th; n = 0 if no closed
    form.

    Of more than three arms, only those that reach the floor, max_k (m_k - reach s_k), can be best.
    """
    floor, available = -np.inf, 0
    for k in range(mean.size):
        floor = max(floor, mean[k] - reach(df[k]) * scale[k])
        available += mean[k] > -np.inf
    floor = floor if available > 3 else -np.inf
    n = points = students = 0
    first = second = third = -1
    for k in range(mean.size):
        if mean[k] > -np.inf and mean[k] + reach(df[k]) * scale[k] >= floor:
            first, second, third = k, first, second
            n += 1
            points += scale[k] == 0.0
            students += df[k] < np.inf
    closed = n == 1 or (students == 0 and (n == 2 or (n == 3 and points <= 1)))
    return n if closed else 0, first, second, third


@kernel
def closed_form(a: int, n: int, i: int, j: int, k: int, mean: Vector, scale: Vector) -> float:
    """Return P(arm a is best) among the n <= 3 `contenders` i, j, k."""
    if a not in (i, j, k):
        return 0.0
    if n == 1:
        return 1.0
    b = j if a == i else i
    if n == 2:
        return duel(a, b, mean, scale)
    c = j if a == k else k
    if leads(a, b, mean, scale) or leads(c, b, mean, scale):
        return duel(a, c, mean, scale)
    if leads(a, c, mean, scale) or leads(b, c, mean, scale):
        return duel(a, b, mean, scale)
    return trio(a, b, c, mean, scale)


@kernel
def place(mean: Vector, extent: Vector) -> tuple[float, Vector, Mask]:
    """Return (floor, shift, alive): the arms whose range m_k ± extent_k reaches the floor are
    alive.

    shift_k is the mean of arm k seen from the narrowest arm alive, hence exact to the rounding of
    extent_k for all that are alive; the floor is max_k (shift_k - extent_k).
    """
    K, floor = mean.size, -np.inf
    shift, alive = np.empty(K), np.empty(K, np.bool_)
    for k in range(K):
        alive[k] = mean[k] > -np.inf
    for _ in range(K):  # each round drops its origin, or is the last
        origin, narrowest, floor = 0, np.inf, -np.inf
        for k in range(K):
            if alive[k] and extent[k] < narrowest:
                origin, narrowest = k, extent[k]
        for k in range(K):
            shift[k] = mean[k] - mean[origin]
            if alive[k]:
                floor = max(floor, shift[k] - extent[k])
        for k in range(K):
            alive[k] = alive[k] and shift[k] + extent[k] >= floor
        if alive[origin]:
            break
    return floor, shift, alive


@kernel
def all_below(x: float, arms: Arms, alive: Mask) -> float:
    """Return P(no arm exceeds x) = Π_k F_k(x)."""
    shift, scale, df, top = arms
    product = 1.0
    for k in range(shift.size):
        if alive[k]:
            product *= distribution((x - shift[k]) / scale[k], df[k], top[k])
    return product


@kernel
def settle(x: float, arms: Arms, alive: Mask, tail: Vector) -> tuple[float, float]:
    """Drop the arms that do not exceed x; (length of the panel from x, P(two arms exceed x)).

    The length is SPAN scales of the narrowest arm. For Student's t it grows as √(ν + z²), the
    distance to the singularities ±i√ν; less below m_k, where the panel's end comes nearer to them.
    """
    shift, scale, df, top = arms
    length = np.inf
    one = two = 0.0
    for k in range(shift.size):
        if alive[k]:
            z = (x - shift[k]) / scale[k]
            tail[k] = distribution(-z, df[k], top[k])
            two += one * tail[k]
            one += tail[k]
            alive[k] = tail[k] > NEGLIGIBLE
            if alive[k]:
                approach = 1.0 if z >= 0.0 else 1.0 + SPAN / math.sqrt(df[k])
                stride = SPAN * math.sqrt(1.0 + z * z / df[k]) / approach
                length = min(length, scale[k] * stride)
    return max(length, 1e-14 * abs(x)), two  # moves on even where df << 1


@kernel
def panel(x: float, length: float, arms: Arms, alive: Mask, first: int, out: Vector) -> None:
    """Add ∫ f_a Π_{k≠a} F_k over [x, x + length] to out[a - first], for the arms a from first on.

    The product is (Π_{k<a} F_k)(Π_{k>a} F_k), the same bits for one arm as for all of them.
    """
    shift, scale, df, top = arms
    cdf, above = np.ones(shift.size), np.ones(shift.size + 1)
    for i in range(NODES.size):
        y = x + 0.5 * length * (1.0 + NODES[i])
        for k in range(shift.size - 1, -1, -1):
            if alive[k]:
                cdf[k] = distribution((y - shift[k]) / scale[k], df[k], top[k])
            above[k] = above[k + 1] * cdf[k]
        below = 1.0
        for k in range(first + out.size):
            if alive[k] and k >= first:
                f = density((y - shift[k]) / scale[k], df[k], top[k])
                out[k - first] += 0.5 * length / scale[k] * WEIGHTS[i] * f * below * above[k + 1]
            below *= cdf[k]


@kernel
def living(alive: Mask, first: int, count: int) -> int:
    """Return how many of `count` arms, from the first one on, are alive."""
    number = 0
    for k in range(first, first + count):
        number += alive[k]
    return number


@kernel
def quadrature(first: int, mean: Vector, scale: Vector, df: Vector, out: Vector) -> None:
    """Fill out with P(arm a is best) for a = first, first + 1, ..., whatever the beliefs.

    The range of every arm that can be best contains the floor. From there upwards arms only drop
    out and panels lengthen, each as long as the narrowest undecided arm allows. Panels that the
    best arm surely exceeds are skipped; where no two arms go further, each takes its own tail.
    """
    extent, top, tail = np.empty(mean.size), np.empty(mean.size), np.empty(mean.size)
    for k in range(mean.size):
        top[k] = peak(df[k])
        extent[k] = reach(df[k]) * scale[k]
    x, shift, alive = place(mean, extent)
    arms = shift, scale, df, top
    points = 0  # all of them at x, if there are any
    for a in range(out.size):
        out[a] = alive[first + a] and scale[first + a] == 0.0
    for k in range(mean.size):
        points += alive[k] and scale[k] == 0.0
        alive[k] = alive[k] and scale[k] > 0.0
    share = all_below(x, arms, alive) / max(points, 1)
    for a in range(out.size):
        out[a] *= share
    while x < np.inf and living(alive, first, out.size) > 0:
        length, two = settle(x, arms, alive, tail)
        if two < NEGLIGIBLE:
            for a in range(out.size):
                out[a] += tail[first + a] if alive[first + a] else 0.0
            break
        if all_below(x + length, arms, alive) > NEGLIGIBLE:
            panel(x, length, arms, alive, first, out)
        x += length


@kernel
def best_from(first: int, mean: Vector, scale: Vector, df: Vector, out: Vector) -> None:
    """Fill out with P(arm a is best) for a = first, first + 1, ...: the same bits of one as of all,
    sooner."""
    n, i, j, k = contenders(mean, scale, df)
    if n == 0:
        quadrature(first, mean, scale, df, out)
    else:
        for a in range(out.size):
            out[a] = closed_form(first + a, n, i, j, k, mean, scale)


@kernel
def best_probabilities(mean: Vector, scale: Vector, df: Vector, out: Vector) -> None:
    """Fill out, (K,), with P(arm a is best) for all a."""
    best_from(FIRST, mean, scale, df, out)


def best_of_location_scale(mean: Vector, scale: Vector, df: Vector) -> Vector:
    """Return P(arm is best), (…, K), for independent normals (df = ∞) and Student-t (…, K)."""
    K = mean.shape[-1]
    m, s, nu = (np.ascontiguousarray(a.reshape(-1, K)) for a in (mean, scale, df))
    out = np.empty_like(m)
    for i in range(len(m)):
        best_probabilities(m[i], s[i], nu[i], out[i])
    return out.reshape(mean.shape)
