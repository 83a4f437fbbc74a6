"""Draws of a real s whose log density is a sum of exponentials,

    g(s) = a s + q s² + Σ_k S_k exp(e_k s),    low ≤ s ≤ high,

as the logarithm of a positive variable has given everything else: log-gamma, log of a generalised
inverse Gaussian or of its roots, log-normal factors, bounds. One exponential alone makes exp(e s)
a gamma. Two of opposite e, with a = ±e/2, make it an inverse Gaussian or the inverse of one. These
are drawn exactly, and everything else by a slice from s = 0 (Neal 2003).
"""

import math

from bayesbandit.runtime.compiling import njit

compiled = njit(cache=True, error_model="numpy", nogil=True)

# Of width 1, by which a slice steps out to each side: all that u may be is 2 × 230 wide. An end
# before that would depend on where the chain stands, and leave another density as it is.
MAX_STEPS = 460
MAX_SHRINKS = 600  # of a slice
MIN_SCALE = 1e-300  # exp(e s) is kept above it
SAME_SHAPE = 1e-12  # a/e within it of ±½ is ±½


@compiled
def proper(a, q, e, S, low, high):
    """Return whether the density has a finite integral, for S ≤ 0 and q ≤ 0."""
    # exp(g) must fall to both sides: by a wall, the square, the line, or an exponential that
    # grows on this side and has S < 0, which outgrows the line
    up = high < math.inf or q < 0.0 or a < 0.0
    down = low > -math.inf or q < 0.0 or a > 0.0
    for k in range(e.size):
        up = up or (S[k] < 0.0 and e[k] > 0.0)
        down = down or (S[k] < 0.0 and e[k] < 0.0)
    return up and down


@compiled
def inverse_of_inverse_gaussian(m, shape, rng):
    """Return 1/X for X ~ InverseGaussian(mean 1/m, shape).

    Michael, Schucany and Haas (1976), in a form that subtracts nothing and allows m = 0: with
    q = z²/2·shape the roots are 1/(m + q + √(q(q + 2m))) and its counterpart with product 1/m².
    """
    z = rng.standard_normal()
    # with w = 1/x, z² = shape (1 − m x)²/x reads w² − 2 (m + q) w + m² = 0
    q = 0.5 * z * z / shape
    root = m + q + math.sqrt(q * (q + 2.0 * m))
    # both roots before one is taken: no branch, which processors would guess wrongly
    other = m * (m / root) if root > 0.0 else 0.0
    # the smaller x is taken with probability (1/m)/(1/m + x): here root/(root + m)
    return root if rng.random() * (root + m) <= root else other


@compiled
def height(s, a, q, e, S, r, first, second):
    """Return g(s) with S_k + 2 first_k c + second_k c² in place of S_k, for c = exp(r s) − 1."""
    g = (a + q * s) * s
    c = math.expm1(r * s)
    for k in range(e.size):
        total = S[k] + c * (2.0 * first[k] + c * second[k])
        if total != 0.0:
            g += total * math.exp(e[k] * s)
    return g


@compiled
def slice_from(a, q, e, S, r, first, second, low, high, rng):
    """Return the next point of a slice sampler of `height` that stands at 0."""
    # the height of the slice: log of a uniform share of the density at 0
    level = height(0.0, a, q, e, S, r, first, second) - rng.standard_exponential()
    # an interval of width 1 at a random place about 0, widened until both ends are out of the slice
    left = -rng.random()
    right = left + 1.0
    for _ in range(MAX_STEPS):
        if left <= low or not height(left, a, q, e, S, r, first, second) > level:
            break
        left -= 1.0
    for _ in range(MAX_STEPS):
        if right >= high or not height(right, a, q, e, S, r, first, second) > level:
            break
        right += 1.0
    left = max(left, low)
    right = min(right, high)
    for _ in range(MAX_SHRINKS):
        # a point within; one that is out of the slice becomes the end on its side
        s = left + rng.random() * (right - left)
        if height(s, a, q, e, S, r, first, second) > level:
            return s
        if s < 0.0:
            left = s
        else:
            right = s
    return 0.0


@compiled
def draw(a, q, e, S, low, high, rng):
    """Return a draw, or the next one of a slice sampler from 0; NaN where the density is improper.

    e, S (k,); the interval contains 0.
    """
    concave = q <= 0.0
    live = 0
    last = 0
    other = 0
    for k in range(e.size):
        concave = concave and S[k] <= 0.0
        if S[k] != 0.0:
            live += 1
            other = last
            last = k
    if concave and q == 0.0 and low == -math.inf and high == math.inf:
        # x = exp(e s): ds = dx/(e x), so that exp(a s) ds is x^(a/e − 1) dx up to a constant
        shape = a / e[last]
        if live == 1:  # x = exp(e s) has the density x^(shape − 1) exp(S x)
            if not shape > 0.0:
                return math.nan
            return math.log(max(rng.standard_gamma(shape) / -S[last], MIN_SCALE)) / e[last]
        if live == 2 and e[last] == -e[other] and abs(abs(shape) - 0.5) < SAME_SHAPE:
            # a/e is −½ for one of the two and ½ for the other: the latter's x is taken
            if shape < 0.0:
                last, other = other, last
            # x = exp(e s) has the density x^(−½) exp(S x + S_other / x): the inverse of an
            # inverse Gaussian
            # exp(S x + S'/x) = exp(S (x − m)² / x) up to a constant, with m² = S'/S
            m = math.sqrt(S[other] / S[last])
            x = inverse_of_inverse_gaussian(m, -2.0 * S[last], rng)
            return math.log(max(x, MIN_SCALE)) / e[last]
    if concave and not proper(a, q, e, S, low, high):
        return math.nan
    return slice_from(a, q, e, S, 0.0, S, S, low, high, rng)
