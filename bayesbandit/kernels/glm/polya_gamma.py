"""Pólya–Gamma draws: ω ~ PG(b, c), the scale mixture that makes logistic likelihoods normal,
(10) of mathematics.md:

    e^{aη} / (1 + e^η)^b = 2^−b e^{(a − b/2)η} E exp(−ωη²/2), ω ~ PG(b, 0)

and ω given η is PG(b, η): Polson, Scott and Windle (2013), J. Amer. Statist. Assoc. 108, 1339-1349.
ω = Σ_k g_k / (2π² ((k − ½)² + c²/4π²)), g_k ~ Gamma(b, 1).
"""

import math

from bayesbandit.kernels.gibbs.log_scale import inverse_of_inverse_gaussian
from bayesbandit.kernels.glm.families import compiled
from bayesbandit.kernels.student import normal_cdf

SERIES_MEET = 0.64  # where the two series of the density meet
# the most draws of PG(1, c) that are added; beyond, and for fractions, gammas are
MAX_ADDED_DRAWS = 2.0
GAMMA_TERMS, NEAR_TERMS = 8, 4  # of the gammas; the rest is one gamma of its mean and variance
# |c| below which fewer do: third cumulants err by 2e-5 of theirs, as by 8 where c is 8
NEAR_TERMS_BELOW = 4.0


@compiled
def coefficient(n, x):
    """Return a_n(x), of the alternating series of the density of PG(1, 0) at x/4 (Devroye 2009)."""
    half = n + 0.5
    # the two forms of one theta function: this one converges fast for large x, the other for small
    # a_n = π (n + ½) e^{−(n + ½)² π² x/2}
    if x > SERIES_MEET:
        return math.pi * half * math.exp(-0.5 * (half * math.pi) ** 2 * x)
    # a_n = π (n + ½) (2/πx)^{3/2} e^{−2 (n + ½)²/x}
    u = 2.0 / (math.pi * x)
    return u * math.sqrt(u) * math.pi * half * math.exp(-2.0 * half * half / x)


@compiled
def right_of_cut(z):
    """Return the share of the proposal beyond the cut. The proposal is exponential there, and an
    inverse Gaussian of mean 1/z before it."""
    # Polson, Scott and Windle: p/(p + q), p = π e^{−K t}/2K, q = 2 e^{−z} IG(t; 1/z, 1)
    rate = 0.125 * math.pi * math.pi + 0.5 * z * z
    root = math.sqrt(1.0 / SERIES_MEET)
    # q/p = (4/π) K e^{Kt} e^{−z} F(t), with K = π²/8 + z²/2 and the inverse Gaussian's F(t) =
    # Φ((tz − 1)/√t) + e^{2z} Φ(−(tz + 1)/√t). Exponents are added first: e^{Kt} may overflow
    first = math.log(rate) + rate * SERIES_MEET
    left = normal_cdf(root * (SERIES_MEET * z - 1.0))
    mirrored = normal_cdf(-root * (SERIES_MEET * z + 1.0))
    total = math.exp(first - z) * left
    if mirrored > 0.0:
        total += math.exp(first + z) * mirrored
    return 1.0 / (1.0 + 4.0 / math.pi * total)


@compiled
def inverse_gaussian_below(z, rng):
    """Return a draw, below the cut, of an inverse Gaussian of mean 1/z and shape 1."""
    # of a mean beyond the cut t: 1/N² of a normal N > 1/√t, accepted by e^{−z²x/2}
    # its density is that of 1/N², x^{−3/2} e^{−1/(2x)}, times e^{−z²x/2} up to a constant
    if z * SERIES_MEET < 1.0:
        while True:
            first = rng.standard_exponential()
            second = rng.standard_exponential()
            # N = (1 + t E)/√t: the normal's tail from 1/√t on, by an exponential proposal E
            if first * first <= 2.0 * second / SERIES_MEET:
                x = 1.0 + SERIES_MEET * first
                x = SERIES_MEET / (x * x)
                if rng.random() <= math.exp(-0.5 * z * z * x):
                    return x
    while True:
        x = 1.0 / inverse_of_inverse_gaussian(z, 1.0, rng)
        if x < SERIES_MEET:
            return x


@compiled
def draw_one(c, rng):
    """Return a draw ω ~ PG(1, c), exact (Devroye's method)."""
    # PG(1, c) is a quarter of Devroye's J*(1, z) with z = |c|/2: it is even in c
    z = 0.5 * abs(c)
    rate = 0.125 * math.pi * math.pi + 0.5 * z * z
    beyond = right_of_cut(z)
    while True:
        if rng.random() < beyond:
            x = SERIES_MEET + rng.standard_exponential() / rate
        else:
            x = inverse_gaussian_below(z, rng)
        # Σ (−1)ⁿ a_n(x) is between any two of its partial sums that follow each other: after a few
        # terms it is known whether a uniform share of a_0 is below it
        total = coefficient(0, x)
        level = rng.random() * total
        n = 0
        while True:
            n += 1
            if n % 2 == 1:
                total -= coefficient(n, x)
                if level <= total:
                    return 0.25 * x
            else:
                total += coefficient(n, x)
                if level > total:
                    break


@compiled
def moments(c):
    """Return the mean and variance of PG(1, c). Those of PG(b, c) are b times as large."""
    c = abs(c)
    if c < 0.05:
        # tanh(c/2)/2c and its like as series where c is small: the closed forms cancel
        q = c * c
        return 0.25 - q / 48.0 + q * q / 480.0, (1.0 - q / 5.0 + 17.0 * q * q / 560.0) / 24.0
    # mean tanh(c/2)/2c, variance (sinh c − c) sech²(c/2)/4c³; sinh c sech²(c/2) = 2 tanh(c/2)
    t = math.tanh(0.5 * c)
    e = math.exp(-c)
    return t / (2.0 * c), (2.0 * t - 4.0 * c * e / ((1.0 + e) * (1.0 + e))) / (4.0 * c * c * c)


@compiled
def draw_by_gammas(b, c, rng):
    """Return a draw ω ~ PG(b, c) for any b > 0, as a sum of gammas; one gamma stands for the last
    ones."""
    mean, variance = moments(c)
    shift = 0.25 * c * c / (math.pi * math.pi)
    total = 0.0
    for k in range(NEAR_TERMS if abs(c) < NEAR_TERMS_BELOW else GAMMA_TERMS):
        # the k-th term, a gamma with mean b d and variance b d²
        d = 0.5 / (math.pi * math.pi * ((k + 0.5) * (k + 0.5) + shift))
        total += d * rng.standard_gamma(b)
        mean -= d
        variance -= d * d
    # a gamma with the mean and variance of all terms that are left
    # a gamma of this scale θ and the shape b m/θ has the mean b m and the variance b m θ = b v
    scale = variance / mean
    return total + scale * rng.standard_gamma(b * mean / scale)


@compiled
def draw(b, c, rng):
    """Return a draw ω ~ PG(b, c), b ≥ 0."""
    if b <= 0.0:
        return 0.0
    whole = math.floor(b)
    if b != whole or b > MAX_ADDED_DRAWS:
        return draw_by_gammas(b, c, rng)
    total = 0.0
    for _ in range(int(whole)):
        # of whole b, PG(b, c) is a sum of b draws of PG(1, c)
        total += draw_one(c, rng)
    return total
