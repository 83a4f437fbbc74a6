"""Probability that an arm is the best one, for K independent arms.

The mean reward of arm k is believed to be `m_k + s_k T_k` with independent T_k, standard normal
where `df[k]` is infinite and Student-t with `df[k]` degrees of freedom otherwise:

    P(arm a is best) = ∫ f_a(x) Π_{k≠a} F_k(x) dx.

- Two normal arms need one Φ; three, the bivariate normal integral of Drezner & Wesolowsky (1990) in
  the form of Genz (2004, Statistics and Computing 14, 251-260).
- Everything else is one composite Gauss-Legendre rule whose panels follow the scales (`quadrature`).

A scale of 0 is a point mass, and point masses that tie share evenly. A mean of -inf with scale 0 is
an arm that cannot be pulled: its probability is 0 and the other arms do not see it.

Arrays are contiguous float64 of shape (K,): `mean`, `scale` >= 0, `df` > 0. The absolute error is
below 1e-8 for normal arms and below 1e-7 for `df` >= 1, whatever the ratios of the scales; what is
less likely than about 1e-10 may be returned as 0.
"""

import math

import numpy as np
from numba import njit

NEGLIGIBLE = 1e-10  # probability that may be lost at a cut: a rival, a tail, a skipped panel
NORMAL_REACH = 6.5  # Φ(-6.5) = 4e-11
SPAN = 2.5  # length of a panel, in scales of the narrowest arm that is still undecided
HILL_DF = 20.0  # Hill's expansion errs by 1e-11 here, and less above
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
ORTHANT_NODES, ORTHANT_WEIGHTS = np.polynomial.legendre.leggauss(8)
SQRT_HALF = math.sqrt(0.5)
SQRT_2PI = math.sqrt(2.0 * math.pi)

# No fastmath anywhere: a probability must have the same bits wherever it is computed.
kernel = njit(cache=True, error_model="numpy")


@kernel
def normal_cdf(z):
    """Φ(z) = ½ erfc(-z/√2)."""
    return 0.5 * math.erfc(-z * SQRT_HALF)


@kernel
def student_constant(df):
    """Γ((ν+1)/2) / (√(πν) Γ(ν/2)), the density at 0; 1/√(2π) where ν is infinite."""
    x = 0.5 * df
    if x < 100.0:
        return math.exp(math.lgamma(x + 0.5) - math.lgamma(x)) / math.sqrt(math.pi * df)
    # Γ(x+½)/Γ(x) ~ √x (1 - 1/8x + 1/128x² + 5/1024x³ - 21/32768x⁴), DLMF 5.11.13
    y = 1.0 / x
    return (1.0 - y * (1 / 8 - y * (1 / 128 + y * (5 / 1024 - y * 21 / 32768)))) / SQRT_2PI


@kernel
def beta_fraction(a, b, x):
    """a B(a,b) I_x(a,b) / (x^a (1-x)^b) by its continued fraction, DLMF 8.17.22 (Lentz's method).

    Converges in about √max(a, b) steps for x < (a+1)/(a+b+2).
    """
    c = 1.0
    d = 1.0 / (1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, 1000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for coefficient in (even, odd):
            d = 1.0 / (1.0 + coefficient * d)
            c = 1.0 + coefficient / c
            value *= c * d
        if abs(c * d - 1.0) < 1e-13:
            break
    return value


@kernel
def hill_deviate(t, df):
    """The normal deviate with the tail of |t|: Hill (1970), Algorithm 395, CACM 13, 617-619."""
    a = df - 0.5
    b = 48.0 * a * a
    y = a * math.log1p(t * t / df)
    inner = ((((-0.4 * y - 3.3) * y - 24.0) * y - 85.5) / (0.8 * y * y + 100.0 + b) + 3.0 + y) / b
    return (1.0 + inner) * math.sqrt(y)


@kernel
def density(z, df, constant):
    """Standard density at z: normal where df is infinite, Student otherwise."""
    if df == np.inf:
        return constant * math.exp(-0.5 * z * z)
    return constant * math.exp(-0.5 * (df + 1.0) * math.log1p(z * z / df))


@kernel
def distribution(z, df, constant):
    """Standard distribution function F at z; `constant` is `student_constant(df)`.

    With y = z²/(ν + z²) and f the density, F(-|z|) is both |z| f/ν · fraction(ν/2, ½, 1-y) and
    ½ - |z| f · fraction(½, ν/2, y): the two sides of the symmetry of the incomplete beta function.
    """
    if df == np.inf:
        return normal_cdf(z)
    if df >= HILL_DF:
        return normal_cdf(math.copysign(hill_deviate(z, df), z))
    t = abs(z)
    if t == np.inf:
        lower = 0.0
    elif t * t < 3.0 / (1.0 + 2.0 / df):  # y < (a+1)/(a+b+2) at a = ½, b = ν/2
        y = t * t / (df + t * t)
        lower = 0.5 - t * density(t, df, constant) * beta_fraction(0.5, 0.5 * df, y)
    else:
        x = df / (df + t * t)
        lower = t * density(t, df, constant) / df * beta_fraction(0.5 * df, 0.5, x)
    return lower if z < 0.0 else 1.0 - lower


@kernel
def student_cdf(t, df):
    """P(T <= t) for Student's t with any df > 0; Φ(t) where df is infinite."""
    return distribution(t, df, student_constant(df))


@kernel
def reach(df):
    """A z with F(-z) <= NEGLIGIBLE, near the smallest one.

    For Student's t the lesser of two bounds: F(-z) <= f(0) ν^((ν-1)/2) z^-ν, and Wallace (1959, Ann.
    Math. Statist. 30, 1121-1130), F(-z) <= Φ(-√((ν-½) log(1 + z²/ν))).
    """
    if df == np.inf:
        return NORMAL_REACH
    power = math.sqrt(df) * (student_constant(df) / (math.sqrt(df) * NEGLIGIBLE)) ** (1.0 / df)
    if df < 1.0:
        return power
    return min(power, math.sqrt(df * math.expm1(NORMAL_REACH**2 / (df - 0.5))))


@kernel
def duel(a, b, mean, scale):
    """P(a beats b) = Φ((m_a - m_b)/√(s_a² + s_b²)) for two normal arms; equal point masses tie."""
    gap = mean[a] - mean[b]
    spread = math.hypot(scale[a], scale[b])
    return normal_cdf(gap / spread) if spread > 0.0 else 0.5 + 0.5 * np.sign(gap)


@kernel
def correlation(a, b, c, scale):
    """ρ_a = s_a²/√((s_a² + s_b²)(s_a² + s_c²)), of arm a's leads over b and over c."""
    s = scale[a]
    return s / math.hypot(s, scale[b]) * (s / math.hypot(s, scale[c]))


@kernel
def orthant(a, b, c, rho, mean, scale):
    """P(a beats b and c) = Φ₂(h, k; ρ), h and k the standardised leads, for 0 <= ρ <= √½.

    Φ₂(h, k; ρ) = Φ(h)Φ(k) + 1/2π ∫₀^{asin ρ} exp(-(h² + k² - 2hk sin θ)/(2 cos² θ)) dθ (Genz 2004,
    eq. 3), here in v = tan(θ/2): no trigonometry, and poles far from the short interval.
    """
    h = min(max((mean[a] - mean[b]) / math.hypot(scale[a], scale[b]), -40.0), 40.0)
    k = min(max((mean[a] - mean[c]) / math.hypot(scale[a], scale[c]), -40.0), 40.0)
    half = 0.5 * rho / (1.0 + math.sqrt(1.0 - rho * rho))
    total = 0.0
    for i in range(ORTHANT_NODES.size):
        v = half * (1.0 + ORTHANT_NODES[i])
        one = 1.0 + v * v
        cosine = (1.0 - v * v) / one
        exponent = (0.5 * (h * h + k * k) - h * k * (2.0 * v / one)) / (cosine * cosine)
        total += ORTHANT_WEIGHTS[i] * math.exp(-exponent) / one
    return normal_cdf(h) * normal_cdf(k) + half * total / math.pi


@kernel
def trio(a, b, c, mean, scale):
    """P(a beats b and c) for three normal arms, at most one of them a point mass.

    asin ρ_a + asin ρ_b + asin ρ_c = π/2, so whenever ρ_a is above √½ the other two are below.
    """
    rho = correlation(a, b, c, scale)
    if rho <= SQRT_HALF:
        return orthant(a, b, c, rho, mean, scale)
    beaten_by_b = orthant(b, c, a, correlation(b, c, a, scale), mean, scale)
    beaten_by_c = orthant(c, a, b, correlation(c, a, b, scale), mean, scale)
    return max(0.0, 1.0 - (beaten_by_b + beaten_by_c))


@kernel
def contenders(mean, scale, df):
    """(n, i, j, k): the n <= 3 arms that can be best, -1 beyond the n-th; n = 0 if no closed form.

    With more than three arms to choose from, those that reach the floor, max_k (m_k - reach s_k).
    """
    available = 0
    for k in range(mean.size):
        available += mean[k] > -np.inf
    floor = -np.inf
    if available > 3:
        for k in range(mean.size):
            floor = max(floor, mean[k] - reach(df[k]) * scale[k])
    first = second = third = -1
    n = points = students = 0
    for k in range(mean.size):
        if mean[k] == -np.inf or mean[k] + reach(df[k]) * scale[k] < floor:
            continue
        first, second, third = k, first, second
        n += 1
        points += scale[k] == 0.0
        students += df[k] < np.inf
    closed = n == 1 or (students == 0 and (n == 2 or (n == 3 and points <= 1)))
    return n if closed else 0, first, second, third


@kernel
def closed_form(a, n, i, j, k, mean, scale):
    """P(arm a is best) among the n <= 3 `contenders` i, j, k."""
    if a not in (i, j, k):
        return 0.0
    if n == 1:
        return 1.0
    b = j if a == i else i
    if n == 2:
        return duel(a, b, mean, scale)
    return trio(a, b, j if a == k else k, mean, scale)


@kernel
def place(mean, extent, shift, alive):
    """Choose the origin and the floor, and drop the arms whose range m_k ± extent_k lies below it.

    The origin is the arm of narrowest range, so that `shift`, the means seen from it, are exact to
    the rounding of extent_k for every arm that stays. Returns the floor, max_k (shift_k - extent_k).
    """
    for k in range(mean.size):
        alive[k] = mean[k] > -np.inf
    while True:
        origin = -1
        for k in range(mean.size):
            if alive[k] and (origin < 0 or extent[k] < extent[origin]):
                origin = k
        floor = -np.inf
        for k in range(mean.size):
            shift[k] = mean[k] - mean[origin]
            if alive[k]:
                floor = max(floor, shift[k] - extent[k])
        for k in range(mean.size):
            alive[k] = alive[k] and shift[k] + extent[k] >= floor
        if alive[origin]:
            return floor


@kernel
def all_below(x, shift, scale, df, constant, alive):
    """P(no arm exceeds x) = Π_k F_k(x)."""
    product = 1.0
    for k in range(shift.size):
        if alive[k] and scale[k] > 0.0:
            product *= distribution((x - shift[k]) / scale[k], df[k], constant[k])
    return product


@kernel
def stride(z, df):
    """Length of a panel that starts at z, in scales.

    Constant for a normal arm. For Student's t in proportion to √(ν + z²), the distance to the poles
    ±i√ν of its density; on the left a panel ends nearer to them than it starts.
    """
    if df == np.inf:
        return SPAN
    length = SPAN * math.sqrt(1.0 + z * z / df)
    return length if z >= 0.0 else length / (1.0 + SPAN / math.sqrt(df))


@kernel
def settle(x, shift, scale, df, constant, alive, tail):
    """Drop the arms that do not exceed x; (length of the panel at x, P(two arms exceed x))."""
    length = np.inf
    one = two = 0.0
    for k in range(shift.size):
        if alive[k]:
            z = (x - shift[k]) / scale[k]
            tail[k] = distribution(-z, df[k], constant[k])
            two += one * tail[k]
            one += tail[k]
            alive[k] = tail[k] > NEGLIGIBLE
            if alive[k]:
                length = min(length, scale[k] * stride(z, df[k]))
    return length, two


@kernel
def panel(x, length, first, last, shift, scale, df, constant, alive, cdf, above, out):
    """Add ∫ f_a Π_{k≠a} F_k over [x, x + length] to out[a - first], for first <= a < last.

    The product over the other arms is (Π_{k<a} F_k)(Π_{k>a} F_k), for one arm as for all of them.
    """
    for i in range(NODES.size):
        y = x + 0.5 * length * (1.0 + NODES[i])
        above[-1] = 1.0
        for k in range(shift.size - 1, -1, -1):
            cdf[k] = 1.0
            if alive[k]:
                cdf[k] = distribution((y - shift[k]) / scale[k], df[k], constant[k])
            above[k] = above[k + 1] * cdf[k]
        below = 1.0
        for k in range(last):
            if alive[k] and k >= first:
                f = density((y - shift[k]) / scale[k], df[k], constant[k])
                weight = 0.5 * length / scale[k] * WEIGHTS[i]
                out[k - first] += weight * f * below * above[k + 1]
            below *= cdf[k]


@kernel
def quadrature(first, last, mean, scale, df, out):
    """out[a - first] = P(arm a is best) for first <= a < last, whatever the beliefs.

    All arms that can be best have the floor inside their range, so going up from it the integrand
    only gets smoother: each panel is as long as the narrowest undecided arm allows. Panels the best
    arm surely exceeds are skipped; where no two arms exceed x, each arm takes its own tail.
    """
    size = mean.size
    alive = np.empty(size, np.bool_)
    extent, shift, constant, cdf = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    above = np.empty(size + 1)
    for k in range(size):
        extent[k] = reach(df[k]) * scale[k]
        constant[k] = student_constant(df[k])
    x = place(mean, extent, shift, alive)
    points = np.sum(alive & (scale == 0.0))
    share = all_below(x, shift, scale, df, constant, alive)
    for a in range(first, last): 
        out[a - first] = share / points if alive[a] and scale[a] == 0.0 else 0.0
    alive &= scale > 0.0
    while np.any(alive[first:last]):
        length, two = settle(x, shift, scale, df, constant, alive, cdf)
        if two < NEGLIGIBLE:
            for a in range(first, last):
                out[a - first] += cdf[a] if alive[a] else 0.0
            return
        if all_below(x + length, shift, scale, df, constant, alive) > NEGLIGIBLE:
            panel(x, length, first, last, shift, scale, df, constant, alive, cdf, above, out)
        x += length


@kernel
def best_probability(a, mean, scale, df):
    """P(arm a is best), scalar."""
    n, i, j, k = contenders(mean, scale, df)
    if n > 0:
        return closed_form(a, n, i, j, k, mean, scale)
    out = np.empty(1)
    quadrature(a, a + 1, mean, scale, df, out)
    return out[0]


@kernel
def best_probabilities(mean, scale, df, out):
    """Fill out, (K,), with every arm's probability: the bits of `best_probability`, at less cost."""
    n, i, j, k = contenders(mean, scale, df)
    if n == 0:
        quadrature(0, mean.size, mean, scale, df, out)
        return
    for a in range(mean.size):
        out[a] = closed_form(a, n, i, j, k, mean, scale)
