"""Probability that an arm is the best one, P(a is best) = ∫ f_a Π_{k≠a} F_k, (4) of mathematics.md,
of K independent arms.

The arms of a call are of one family: LOCATED ones, normal (df = ∞) or Student's t with df degrees
of freedom in z = v, the mean reward itself; or Beta(a, b) in z = log v/(1 − v), or Gamma(a, b) in
z = log v. There the densities are analytic, however small the parameters are,

    log f(z) = c + a z − (a + b) log(1 + eᶻ)        log f(z) = c + a z − b eᶻ

and the order of the arms is that of their z. The integral is summed over panels from the top
downwards, on whose Gauss nodes the distribution functions are 1 less the integrals of the densities
so far, by the integrals of the nodes' Lagrange polynomials. An arm comes in where it begins, and
panels are as long as the narrowest arm in allows; below the point that some arm surely exceeds
nothing is left to sum. The absolute error is below 1e-9.
"""

import math

import numpy as np

from bayesbandit.checks import Array
from bayesbandit.kernels.row_layout import GAMMA, THOMPSON
from bayesbandit.kernels.student import log_fall, peak
from bayesbandit.kernels.uncounted_arrays import keep_alive, unmanaged
from bayesbandit.runtime.compiling import njit

N_NODES = 12
FEW_ARMS = 4
SPAN_OF_FEW = 3.6  # length of a panel in standard deviations of the narrowest arm, of few arms
SPAN_OF_MANY = 2.8  # of more, whose product is steeper
MAX_LOG_FALL = 14.0  # greatest fall of a log density along a panel, where it is no longer curved,
STEEPEST_TOGETHER = 7.0  # and of the product of all arms, below their modes
TAIL_SHARE = 0.7  # greatest length of a panel of Student's t, beside the distance of ±i√df
EARLY_SHARE = 0.15  # of its reach, by which a located arm may come in early: panels are shared
ENTRY_FALL = 24.0  # how far below its mode's an arm's log density is where it comes in
NEGLIGIBLE_MASS = 1e-11
# standard deviation of z, beside |mode| or 1, that floating point still resolves
MIN_RELATIVE_SD = 1e-13
HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)

LOCATED = THOMPSON  # the family of normals and of Student's t, beside BETA and GAMMA
SAMPLED = CONJUGATE = True  # the families that a kernel may meet (`compiling.without`)


def _panel() -> tuple[Array, Array, Array]:
    """Return Gauss nodes and weights on (0, 1), and, of their Lagrange polynomials, ∫₀^{τ_i} ℓ_j at
    [j, i] (n, n)."""
    # A function with values f_j at the nodes is Σ c_m P_m, c_m = (2m + 1)/2 Σ_j w_j P_m(x_j) f_j.
    # So its integral up to x_i is Σ c_m ∫_{−1}^{x_i} P_m.
    nodes, weights = np.polynomial.legendre.leggauss(N_NODES)
    tau = 0.5 * (1.0 + nodes)
    V = np.polynomial.legendre.legvander(nodes, N_NODES - 1)  # P_m(x_i)
    expansion = 0.5 * (2 * np.arange(N_NODES) + 1)[:, None] * (V * weights[:, None]).T
    integral = np.polynomial.legendre.legint(np.eye(N_NODES), lbnd=-1.0)
    at = np.polynomial.legendre.legvander(nodes, N_NODES) @ integral
    return tau, 0.5 * weights, np.ascontiguousarray((0.5 * at @ expansion).T)


TAU, WEIGHTS, INTEGRALS = _panel()

# What is kept of an arm, one number each: a and b, of a located one df and nothing; the mode of the
# density of z and its standard deviation there; the log density at the mode, in units of that;
# where it comes in.
A, B, MODE, SD, HEIGHT, BEGIN = range(6)
DF = A
SHAPE = 6


@njit(cache=True, error_model="numpy")
def stirling(x):
    """Return log Γ(x) less (x − ½) log x − x + ½ log 2π, to rounding for every x > 0."""
    if x < 16.0:
        # parts cancel, but their absolute rounding is all that a log density feels
        return math.lgamma(x) - ((x - 0.5) * math.log(x) - x + HALF_LOG_2PI)
    y = 1.0 / (x * x)
    # Stirling's series Σ B_2k / (2k (2k − 1) x^(2k − 1)); its next term is 1.1e-16 at x = 16
    return (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y / 1188)))) / x


@njit(cache=True, error_model="numpy")
def fall(shape, y, family):
    """Return the log density of a beta or gamma number at y above the mode, less that at the mode,
    so that no digits cancel."""
    if not CONJUGATE:
        return -np.inf
    a = shape[A]
    b = shape[B]
    if family == GAMMA:
        # at the mode b eᶻ = a, so that b e^(mode + y) = a e^y
        return a * (y - math.expm1(y)) if y < 700.0 else -np.inf
    # Beta(a, b) at −z is Beta(b, a) at z: the smaller parameter comes first, whose tail is long
    if a > b:
        a, b, y = b, a, -y
    # at the mode eᶻ = a/b, and (1 + (a/b) e^y)/(1 + a/b) = 1 + (a/n)(e^y − 1). With a ≤ b that is
    # ½ at least: its log keeps its digits
    n = a + b
    if y > 700.0:
        return a * y - n * (y + math.log(a / n + b / n * math.exp(-y)))
    return a * y - n * math.log1p(a / n * math.expm1(y))


@njit(cache=True, error_model="numpy")
def slope(shape, z, family):
    """Return the derivative of the log density at z."""
    if SAMPLED and family == LOCATED:
        y = (z - shape[MODE]) / shape[SD]
        df = shape[DF]
        steep = y if df == np.inf else (df + 1.0) * y / (df + y * y)
        return -steep / max(shape[SD], 1e-300)
    if not CONJUGATE:
        return 0.0
    if family == GAMMA:
        return shape[A] * -math.expm1(min(z - shape[MODE], 700.0))
    # p = eᶻ/(1 + eᶻ) and q = 1 − p, neither by a difference: the slope a − (a + b) p is a q − b p
    e = math.exp(-abs(z))
    p, q = (1.0 / (1.0 + e), e / (1.0 + e)) if z > 0.0 else (e / (1.0 + e), 1.0 / (1.0 + e))
    return shape[A] * q - shape[B] * p


@njit(cache=True, error_model="numpy")
def reshape(shape, a, b, family):
    """Fill in the numbers of an arm with parameters a and b.

    If its density is so narrow that float64 does not resolve it in z, both are divided by one
    factor, with which it is as narrow as can be resolved.
    """
    shape[MODE] = math.log(a / b)
    # minus the second derivative at the mode is b eᶻ = a, or (a + b) p q = ab/(a + b)
    sd = 1.0 / math.sqrt(a) if family == GAMMA else math.sqrt(1.0 / a + 1.0 / b)
    shape[SD] = max(sd, MIN_RELATIVE_SD * max(1.0, abs(shape[MODE])))
    if sd < shape[SD]:
        blunter = (sd / shape[SD]) ** 2
        a = a * blunter
        b = b * blunter
    shape[A] = a
    shape[B] = b
    # by Stirling's formula for each Γ the log density at the mode is −½ log 2π − log sd − rest:
    # the large terms cancel as formulas, not as numbers
    rest = stirling(a) if family == GAMMA else stirling(a) + stirling(b) - stirling(a + b)
    shape[HEIGHT] = -HALF_LOG_2PI - rest
    # where a normal of this sd has fallen by ENTRY_FALL; doubled until the arm has
    # a gamma falls by a (e^y − 1 − y), and e^y = 1 + u + u²/2 ≤ e^u makes that a u²/2 at least
    u = math.sqrt(2.0 * ENTRY_FALL) * shape[SD]
    u = math.log1p(u + 0.5 * u * u) if family == GAMMA else u
    while fall(shape, u, family) > -ENTRY_FALL:
        u *= 2.0
    while fall(shape, u, family) < -ENTRY_FALL - 0.1:  # Newton's method, from above: it is concave
        u -= (fall(shape, u, family) + ENTRY_FALL) / slope(shape, shape[MODE] + u, family)
    shape[BEGIN] = shape[MODE] + u


@njit(cache=True, error_model="numpy")
def locate(shape, location, scale, df, reach):
    """Fill in the numbers of a normal arm or a Student-t; `reach` is where it comes in, in
    scales."""
    shape[DF] = df
    shape[B] = 0.0
    shape[MODE] = location
    shape[SD] = scale
    shape[HEIGHT] = math.log(peak(df))
    shape[BEGIN] = location + reach * scale


@njit(cache=True, error_model="numpy")
def curvature(a, b, z, family):
    """Return minus the second derivative at z of the log density of one arm with parameters a, b.

    family: BETA or GAMMA.
    """
    if family == GAMMA:
        return b * math.exp(z)
    # (a + b) p q, even in z
    e = math.exp(-abs(z))
    return (a + b) * e / ((1.0 + e) * (1.0 + e))


@njit(cache=True, error_model="numpy")
def located_length(z, df, span):
    """Return how long a panel from z downwards may be for a standard normal or Student-t.

    The singularities of Student's t are at ±i√df, where log1p(z²/df) has its branch points. Its
    tails are powers of z, and panels there are a share of z.
    """
    if df == np.inf:
        return min(span, MAX_LOG_FALL / max(abs(z), 1e-300))
    # a share of the distance to the nearest singularity, |z − i√df|
    far = TAIL_SHARE * math.hypot(math.sqrt(df), z)
    # towards 0 the lower end is nearer by up to L: L ≤ share (distance − L)
    if z > 0.0:
        far /= 1.0 + TAIL_SHARE
    # z = √ν sinh u turns log(1 + z²/ν) into 2 log cosh u: panels are as long in u everywhere,
    # and dz/du grows by √(1 + z²/ν), which is least at the panel's end next to 0
    y = max(z - span, 0.0) if z > 0.0 else z
    return min(far, span * math.sqrt(1.0 + y * y / df))


@njit(cache=True, error_model="numpy")
def length(shape, z, family, span):
    """Return how long a panel from z downwards may be for an arm."""
    if SAMPLED and family == LOCATED:
        return shape[SD] * located_length((z - shape[MODE]) / shape[SD], shape[DF], span)
    if not CONJUGATE:
        return 0.0
    a = shape[A]
    b = shape[B]
    steep = max(abs(slope(shape, z, family)), 1e-300)
    # neither may the density fall too far along a panel, nor its log bend too much
    L = MAX_LOG_FALL / steep
    bent = curvature(a, b, z, family)
    L = min(L, span / math.sqrt(max(bent, 1e-300)))
    if family == GAMMA:
        return L
    L = min(L, max(span, 0.7 * z if z > 0.0 else -1.5 * z))  # log(1 + eᶻ) is singular at ±iπ
    while True:
        # (a + b) p q falls on both sides of 0: on a panel it is largest at 0 if 0 is on it, else at
        # the end next to 0, which below 0 is z, whose bend has already bounded L
        bent = 0.25 * (a + b) if z > 0.0 > z - L else curvature(a, b, z - L, family)
        if L * math.sqrt(bent) <= span:
            return L
        L *= 0.7


@njit(cache=True, error_model="numpy")
def densities(shape, x, L, family, f):
    """Fill f (n,) with an arm's density on the nodes below x, times L."""
    y = x - shape[MODE]
    # ∫ over the panel is L ∫₀¹ at x − L τ: the factor L goes into the density
    top = shape[HEIGHT] + math.log(L / shape[SD])
    if SAMPLED and family == LOCATED:
        z = y / shape[SD]
        step = L / shape[SD]
        for i in range(N_NODES):
            f[i] = math.exp(top + log_fall(z - step * TAU[i], shape[DF]))
    elif CONJUGATE:
        for i in range(N_NODES):
            f[i] = math.exp(top + fall(shape, y - L * TAU[i], family))


@njit(cache=True, error_model="numpy")
def panel(x, L, shapes, inside, end, family, work, out):
    """Add ∫ f_a Π_{k≠a} F_k over [x − L, x] to out (K,), for the arms inside; end (K,): F_k at x,
    then at x − L. work (K + 1, 2, n) is scratch."""
    K = shapes.shape[0]
    product = work[K, 0]
    for i in range(N_NODES):
        # Two passes give f_k Π_{j≠k} F_j for every k without a division: the first multiplies by
        # all F before k, the second by all behind.
        product[i] = WEIGHTS[i]
    for k in range(K):
        if inside[k]:
            f = work[k, 0]
            F = work[k, 1]
            total = 0.0
            densities(shapes[k], x, L, family, f)
            for i in range(N_NODES):
                F[i] = end[k]
                # ∫ f over the panel by Gauss's rule, exact for polynomials of degree 2n − 1
                total += WEIGHTS[i] * f[i]
            for j in range(N_NODES):
                for i in range(N_NODES):
                    # F_k at the nodes: F_k(x) less the integral of its density from there to x
                    F[i] -= INTEGRALS[j, i] * f[j]
            end[k] = max(end[k] - total, 0.0)
            for i in range(N_NODES):
                f[i] *= product[i]
                product[i] *= F[i]
    for i in range(N_NODES):
        product[i] = 1.0
    for k in range(K - 1, -1, -1):
        if inside[k]:
            f = work[k, 0]
            F = work[k, 1]
            total = 0.0
            for i in range(N_NODES):
                total += f[i] * product[i]
                product[i] *= F[i]
            out[k] += total


@njit(cache=True, error_model="numpy")
def walk(shapes, available, family, bottom, out):
    """Fill out (K,) with P(arm is best, and above `bottom`) among the `available`, and return the
    probability that all of them are below; shapes (K, SHAPE)."""
    K = shapes.shape[0]
    scratch = np.empty((K + 1, 2, N_NODES)), np.ones(K), np.empty(K, np.bool_)
    work, end, inside = unmanaged(scratch)
    shapes = unmanaged(shapes)
    out = unmanaged(out)
    x = -np.inf
    left = 1.0
    count = 0
    early = EARLY_SHARE if family == LOCATED else 0.0
    for k in range(K):
        out[k] = 0.0
        if available[k]:
            # above all of these every F is 1 to rounding, and no density counts
            x = max(x, shapes[k, BEGIN])
            count = count + 1
    span = SPAN_OF_FEW if count <= FEW_ARMS else SPAN_OF_MANY
    # from the top downwards; `left` is the probability that all arms are below x
    while left > NEGLIGIBLE_MASS and bottom < x < np.inf:
        L = np.inf
        follows = bottom
        steep = 1e-300
        for k in range(K):
            begin = shapes[k, BEGIN]
            # an arm comes in where its density begins to count: above, its F is 1
            inside[k] = available[k] and begin + early * (begin - shapes[k, MODE]) >= x
            if inside[k]:
                L = min(L, length(shapes[k], x, family, span))
                if x < shapes[k, MODE]:
                    # log-concave densities have f'/f ≤ f/F: below its mode F_k falls at least as
                    # fast as f_k, and that of Student's t by ν/(ν + 1) of it in the tail
                    steep += slope(shapes[k], x, family)
            elif available[k]:
                follows = max(follows, begin)
        # the panel ends where the next arm comes in, or where all slopes together make it too steep
        lower = max(x - min(L, STEEPEST_TOGETHER / steep), follows)
        # where the arms' scales are lost beside x, a panel still is one float64 long: the walk ends
        lower = min(lower, math.nextafter(x, -np.inf))
        panel(x, x - lower, shapes, inside, end, family, work, out)
        x = lower
        left = 1.0
        for k in range(K):
            if inside[k]:
                # so far below its mode an arm surely exceeds x: its F is rounding, and 0 ends all
                ended = family != LOCATED and x < shapes[k, MODE]
                ended = ended and fall(shapes[k], x - shapes[k, MODE], family) < -ENTRY_FALL
                left = 0.0 if ended else left * end[k]
    keep_alive(scratch)
    return left


@njit(cache=True, error_model="numpy")
def normalise(out):
    """Divide probabilities (K,) by their sum, which is 1 but for what was neglected."""
    total = 0.0
    for k in range(out.size):
        out[k] = max(out[k], 0.0)
        total += out[k]
    for k in range(out.size):
        out[k] /= total


@njit(cache=True, error_model="numpy")
def best(a, b, available, family, out):
    """Fill out (K,) with P(arm is best) among the `available`, of parameters a and b (K,) of the
    family BETA or GAMMA."""
    shapes = np.empty((a.size, SHAPE))
    for k in range(a.size):
        if available[k]:
            reshape(shapes[k], a[k], b[k], family)
    walk(shapes, available, family, -np.inf, out)
    normalise(out)
