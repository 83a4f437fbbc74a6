"""Draws of a real s whose log density is a sum of exponentials,

    g(s) = a s + q s² + Σ_k S_k exp(e_k s),    low ≤ s ≤ high,

as the logarithm of a positive variable has given everything else: log-gamma, log of a generalised
inverse Gaussian or of its roots, log-normal factors, bounds. One exponential alone is a gamma.
Where no S_k nor q is above 0, g is concave, and the draw is independent of the present s = 0:
rejection from the tangents at three points (Gilks and Wild 1992, with a fixed hull). Else a slice
with stepping out and shrinkage from s = 0 (Neal 2003).
"""

import math

import numpy as np

from bayesbandit.runtime.compiling import njit

kernel = njit(cache=True, error_model="numpy", nogil=True)

FAR = 600.0  # the farthest that a step may go: exp of it is finite
STEPS = 60  # at most, of a search and of a slice


@kernel
def height(s, a, q, e, S):
    """Return g(s)."""
    g = (a + q * s) * s
    for k in range(e.size):
        if S[k] != 0.0:
            g += S[k] * math.exp(e[k] * s)
    return g


@kernel
def slopes(s, a, q, e, S):
    """Return g(s), g'(s), g''(s)."""
    g, first, second = (a + q * s) * s, a + 2.0 * q * s, 2.0 * q
    for k in range(e.size):
        if S[k] != 0.0:
            t = S[k] * math.exp(e[k] * s)
            g += t
            first += e[k] * t
            second += e[k] * e[k] * t
    return g, first, second


@kernel
def proper(a, q, e, S, low, high):
    """Return whether the density has a finite integral, for S ≤ 0 and q ≤ 0."""
    up, down = high < np.inf or q < 0.0 or a < 0.0, low > -np.inf or q < 0.0 or a > 0.0
    for k in range(e.size):
        up = up or (S[k] < 0.0 and e[k] > 0.0)
        down = down or (S[k] < 0.0 and e[k] < 0.0)
    return up and down


@kernel
def is_gamma(a, q, e, S, low, high):
    """Return whether exp(e s) is a gamma: one exponential, no bounds."""
    return S < 0.0 and a / e > 0.0 and q == 0.0 and low == -np.inf and high == np.inf


@kernel
def gamma(a, e, S, rng):
    """Return a draw of exp(e s), where it is a gamma."""
    return max(rng.standard_gamma(a / e), 1e-300) / -S


@kernel
def mode(a, q, e, S, low, high):
    """Return about where a concave g is largest: to a tenth of the width there."""
    left, right = max(low, -FAR), min(high, FAR)
    s = min(max(0.0, left), right)
    step = 1.0
    _, first, second = slopes(s, a, q, e, S)
    for _ in range(2 * STEPS):
        if first > 0.0:
            left = s
        else:
            right = s
        width = 1.0 / math.sqrt(max(-second, 1e-300))
        if abs(first) * width < 0.1 or right - left < 1e-12:
            break
        new = s - first / second if second < 0.0 else s + math.copysign(step, first)
        if abs(new - s) > step:
            new = s + math.copysign(step, first)
            step *= 2.0
        if not left < new < right:
            bounded = left > -FAR and right < FAR
            new = 0.5 * (left + right) if bounded else min(max(new, left), right)
        if new == s:
            break
        s = new
        _, first, second = slopes(s, a, q, e, S)
    return s


@kernel
def place(toward, s, top, width, a, q, e, S, bound):
    """Return a point on one side of the mode where g has fallen by about 1, or the bound."""
    step = width
    for _ in range(STEPS):
        t = s + toward * step
        if (t - bound) * toward >= 0.0:
            return bound
        fall = top - height(t, a, q, e, S)
        if fall > 2.5:
            step *= 0.6
        elif fall < 0.4:
            step *= 1.7
        else:
            return t
    return s + toward * step


@kernel
def from_piece(u, slope, left, right):
    """Return the point below which the exponential exp(slope · x) on [left, right] has share u."""
    if slope > 0.0:
        if abs(slope * (right - left)) < 1e-9:
            return left + u * (right - left)
        return right + math.log(u + (1.0 - u) * math.exp(-slope * (right - left))) / slope
    if abs(slope * (right - left)) < 1e-9:
        return left + u * (right - left)
    return left + math.log(1.0 - u * (1.0 - math.exp(slope * (right - left)))) / slope


@kernel
def mass(level, slope, at, left, right):
    """Return ∫ exp(level + slope (x − at)) over [left, right]."""
    width = right - left
    if not width > 0.0:
        return 0.0
    if abs(slope) * width < 1e-9:
        return math.exp(level + slope * (left - at)) * width
    if slope > 0.0:
        return math.exp(level + slope * (right - at)) * -math.expm1(-slope * width) / slope
    return math.exp(level + slope * (left - at)) * math.expm1(slope * width) / slope


@kernel
def concave(a, q, e, S, low, high, rng):
    """Return an independent draw; NaN where none is possible."""
    m = mode(a, q, e, S, low, high)
    top, first, second = slopes(m, a, q, e, S)
    width = 1.0 / max(math.sqrt(max(-second, 0.0)), abs(first), 1e-3)
    x, h, d = np.empty(3), np.empty(3), np.empty(3)
    n = 0
    for toward in range(-1, 2):
        t = m
        if toward < 0:
            t = place(-1.0, m, top, width, a, q, e, S, low)
        elif toward > 0:
            t = place(1.0, m, top, width, a, q, e, S, high)
        if n == 0 or t > x[n - 1]:
            x[n] = t
            h[n], d[n], _ = slopes(t, a, q, e, S)
            h[n] -= top
            n += 1
    edge, share = np.empty(4), np.empty(3)
    edge[0], edge[n] = low, high
    for i in range(1, n):
        gap = d[i - 1] - d[i]
        between = 0.5 * (x[i - 1] + x[i])
        if gap > 1e-12 * (abs(d[i]) + abs(d[i - 1])):
            between = (h[i] - h[i - 1] - x[i] * d[i] + x[i - 1] * d[i - 1]) / gap
        edge[i] = min(max(between, x[i - 1]), x[i])
    total = 0.0
    for i in range(n):
        share[i] = mass(h[i], d[i], x[i], edge[i], edge[i + 1])
        total += share[i]
    if not (total > 0.0 and total < np.inf):
        return np.nan
    for _ in range(10_000):
        rest, i = rng.random() * total, 0
        while i < n - 1 and rest >= share[i]:
            rest -= share[i]
            i += 1
        s = from_piece(rng.random(), d[i], edge[i], edge[i + 1])
        hat = h[i] + d[i] * (s - x[i])
        if -rng.standard_exponential() <= height(s, a, q, e, S) - top - hat:
            return s
    return np.nan


@kernel
def slice_from(a, q, e, S, low, high, rng):
    """Return the next point of a slice sampler that stands at 0."""
    level = height(0.0, a, q, e, S) - rng.standard_exponential()
    left = -rng.random()
    right = left + 1.0
    for _ in range(STEPS):
        if left <= low or not height(left, a, q, e, S) > level:
            break
        left -= 1.0
    for _ in range(STEPS):
        if right >= high or not height(right, a, q, e, S) > level:
            break
        right += 1.0
    left, right = max(left, low), min(right, high)
    for _ in range(10 * STEPS):
        s = left + rng.random() * (right - left)
        if height(s, a, q, e, S) > level:
            return s
        if s < 0.0:
            left = s
        else:
            right = s
    return 0.0


@kernel
def draw(a, q, e, S, low, high, rng):
    """Return a draw, or the next one of a slice sampler from 0; NaN where the density is improper.

    e, S (k,); the interval contains 0.
    """
    below, live, last = q <= 0.0, 0, 0
    for k in range(e.size):
        below = below and S[k] <= 0.0
        if S[k] != 0.0:
            live += 1
            last = k
    if not below:
        return slice_from(a, q, e, S, low, high, rng)
    if not proper(a, q, e, S, low, high):
        return np.nan
    if live == 1 and is_gamma(a, q, e[last], S[last], low, high):
        return math.log(gamma(a, e[last], S[last], rng)) / e[last]
    return concave(a, q, e, S, low, high, rng)
