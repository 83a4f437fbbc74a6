"""Log likelihoods ℓ(η) of a reward r, given its linear predictor η, with slope and curvature.

    BINOMIAL            r of `number` trials succeed:   rη − number log(1 + e^η)
    PROBIT              r is 0 or 1:                    log Φ(η) where r is 1, log Φ(−η) where 0
    POISSON             a count:                        rη − e^η
    NEGATIVE_BINOMIAL   a count of mean e^η, with α = `number`:
                                                        rψ − (r + α) log(1 + e^ψ), ψ = η − log α

but for what does not depend on η. All are concave.
"""

import math

from bayesbandit.kernels.student import normal_cdf
from bayesbandit.runtime.compiling import njit

BINOMIAL, PROBIT, POISSON, NEGATIVE_BINOMIAL = range(4)
TAIL_FROM = 20.0  # sds, from which on the normal's tail is a continued fraction
MAX_EXPONENT = 700.0  # what an exponent may be
ROOT_2_PI = math.sqrt(2.0 * math.pi)

compiled = njit(cache=True, error_model="numpy", nogil=True)


@compiled
def log_one_plus_exp(x):
    """Return log(1 + e^x) for any x."""
    # for x > 0 it is x + log(1 + e^−x): no exponential overflows
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@compiled
def logistic(x):
    """Return 1/(1 + e^−x)."""
    e = math.exp(-abs(x))
    return 1.0 / (1.0 + e) if x >= 0.0 else e / (1.0 + e)


@compiled
def beyond(t):
    """Return φ(t)/Φ(−t) − t, by which the normal's hazard exceeds t."""
    if t < TAIL_FROM:
        return math.exp(-0.5 * t * t) / (ROOT_2_PI * normal_cdf(-t)) - t
    # φ(t)/Φ(−t) = t + 1/(t + 2/(t + 3/(t + …))), Laplace's continued fraction
    tail = t
    # at t ≥ 20 eight levels leave a relative error below 1e-15
    for k in range(8, 1, -1):
        tail = t + k / tail
    return 1.0 / tail


@compiled
def log_normal_cdf(x):
    """Return log Φ(x)."""
    if x > -TAIL_FROM:
        return math.log(normal_cdf(x))
    # log φ(x) less the log of the hazard φ(x)/Φ(x)
    return -0.5 * x * x - math.log(ROOT_2_PI * (beyond(-x) - x))


@compiled
def log_likelihood(kind, number, eta, r):
    """Return ℓ(η)."""
    if kind == BINOMIAL:
        return r * eta - number * log_one_plus_exp(eta)
    if kind == PROBIT:
        return log_normal_cdf(eta if r > 0.5 else -eta)
    if kind == POISSON:
        return r * eta - math.exp(min(eta, MAX_EXPONENT))
    psi = eta - math.log(number)
    return r * psi - (r + number) * log_one_plus_exp(psi)


@compiled
def slope_and_curvature(kind, number, eta, r):
    """Return ℓ'(η) and −ℓ''(η) ≥ 0."""
    if kind == PROBIT:
        # of log Φ(−t), t = −η where r is 1 and η where it is 0: the hazard h(t) = φ(t)/Φ(−t) has
        # h' = h (h − t)
        sign = 1.0 if r > 0.5 else -1.0
        t = -sign * eta
        excess = beyond(t)
        return sign * (t + excess), (t + excess) * excess
    if kind == POISSON:
        mean = math.exp(min(eta, MAX_EXPONENT))
        return r - mean, mean
    # ℓ' = r − N p and −ℓ'' = N p (1 − p), p = 1/(1 + e^−ψ)
    trials = number if kind == BINOMIAL else r + number
    psi = eta if kind == BINOMIAL else eta - math.log(number)
    p = logistic(psi)
    return r - trials * p, trials * p * logistic(-psi)


@compiled
def totals(kind, number, eta, reward, weight):
    """Return Σ w ℓ over rows (n,)."""
    total = 0.0
    for i in range(eta.size):
        total += weight[i] * log_likelihood(kind, number, eta[i], reward[i])
    return total


@compiled
def success(kind, eta):
    """Return the probability that a trial succeeds."""
    return logistic(eta) if kind == BINOMIAL else normal_cdf(eta)


@compiled
def narrow(kind, m, s, nodes, weights):
    """Return the mean and variance of the chance of success under η ~ N(m, s²), by Gauss–Hermite
    nodes."""
    mean = variance = 0.0
    for j in range(nodes.size):
        # E p(m + s Z) = Σ w_j p(m + s z_j), exact for polynomials p up to twice the nodes' number
        mean += weights[j] * success(kind, m + s * nodes[j])
    for j in range(nodes.size):
        # a sum of squares about the mean: E p² − (E p)² would lose a small variance
        variance += weights[j] * (success(kind, m + s * nodes[j]) - mean) ** 2
    return mean, variance


@compiled
def wide(kind, m, s, steps):
    """Return the mean and variance of the chance of success under η ~ N(m, s²), s ≥ 1, by integrals
    of P(η > t) over the chance at t. Their derivatives are analytic in a strip about the line, so
    that a uniform grid serves."""
    first = second = 0.0
    # E p(η) = ∫ p'(t) P(η > t) dt and E p(η)² = ∫ 2 p(t) p'(t) P(η > t) dt
    h = steps[1] - steps[0]
    for t in steps:
        # p' is p (1 − p) of the logistic function, and φ of Φ
        p = success(kind, t)
        density = p * (1.0 - p) if kind == BINOMIAL else math.exp(-0.5 * t * t) / ROOT_2_PI
        # the sum errs by e^(−2πc/h) times the integrand's size within ± ic, where c < π for the
        # logistic p', and P(η > t) is e^(c²/2s²) times as large: so s ≥ 1
        above = h * normal_cdf((m - t) / s) * density
        first += above
        second += 2.0 * p * above
    return first, max(second - first * first, 0.0)


@compiled
def mean_and_sd(kind, number, eta, sd, nodes, weights, steps, mean, out):
    """Fill in the mean and the sd of the mean reward under η ~ N(eta, sd²), arrays (n,)."""
    for i in range(eta.size):
        m = eta[i]
        s = sd[i]
        if kind in (POISSON, NEGATIVE_BINOMIAL):
            # a log-normal mean reward
            # E e^η = e^(m + s²/2), and E e^2η / (E e^η)² − 1 = e^(s²) − 1
            mean[i] = math.exp(min(m + 0.5 * s * s, MAX_EXPONENT))
            out[i] = mean[i] * math.sqrt(math.expm1(min(s * s, MAX_EXPONENT)))
        else:
            if s < 1.0:
                first, variance = narrow(kind, m, s, nodes, weights)
            else:
                first, variance = wide(kind, m, s, steps)
            mean[i] = number * first
            out[i] = number * math.sqrt(variance)
