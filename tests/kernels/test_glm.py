"""Likelihoods of a linear predictor, Pólya–Gamma draws, and modes: against integrals and scipy."""

import math

import numpy as np
import pytest
from numba import njit
from scipy import optimize, stats
from scipy.special import expit, log_ndtr, ndtr

from bayesbandit.inference.glm.families import Family
from bayesbandit.inference.glm.regression import mode
from bayesbandit.kernels.glm import families, newton, polya_gamma, sweeps
from bayesbandit.kernels.glm.families import BINOMIAL, NEGATIVE_BINOMIAL, POISSON, PROBIT

LIKELIHOODS = {
    (BINOMIAL, 1.0): lambda eta, r: stats.bernoulli.logpmf(r, expit(eta)),
    (BINOMIAL, 7.0): lambda eta, r: stats.binom.logpmf(r, 7, expit(eta)),
    (PROBIT, 1.0): lambda eta, r: log_ndtr(eta if r else -eta),
    (POISSON, 1.0): lambda eta, r: stats.poisson.logpmf(r, math.exp(eta)),
    (NEGATIVE_BINOMIAL, 2.5): lambda eta, r: stats.nbinom.logpmf(
        r, 2.5, 2.5 / (2.5 + math.exp(eta))
    ),
}
every = pytest.mark.parametrize(("kind", "number"), LIKELIHOODS)


@every
@pytest.mark.parametrize("r", [0.0, 1.0])
def test_log_likelihoods_are_the_distributions(kind, number, r):
    given = LIKELIHOODS[kind, number]
    gaps = [
        families.log_likelihood(kind, number, eta, r) - given(eta, r)
        for eta in np.linspace(-5, 5, 11)
    ]
    assert np.ptp(gaps) < 1e-12


@every
@pytest.mark.parametrize("eta", [-600.0, -40.0, -21.0, -19.0, -3.0, 0.0, 2.0, 19.5, 30.0])
def test_slopes_and_curvatures_are_the_derivatives(kind, number, eta):
    for r in (0.0, 1.0):
        slope, curvature = families.slope_and_curvature(kind, number, eta, r)
        h = 1e-4 * max(1.0, abs(eta))
        low, mid, up = (families.log_likelihood(kind, number, eta + s * h, r) for s in (-1, 0, 1))
        size = max(abs(low), abs(up), 1.0)
        assert slope == pytest.approx((up - low) / (2 * h), rel=1e-5, abs=1e-11 * size / h)
        assert curvature >= 0.0
        least = 1e-13 * size / h**2 + 1e-5 * curvature
        assert curvature == pytest.approx(-(up - 2 * mid + low) / h**2, rel=1e-3, abs=least)


@every
@pytest.mark.parametrize("sd", [0.0, 0.3, 1.9, 2.1, 15.0, 300.0])
def test_moments_of_mean_rewards_are_the_integrals(kind, number, sd):
    family = Family(kind, number)
    if kind in (POISSON, NEGATIVE_BINOMIAL) and sd > 2.0:
        sd = 2.0
    for eta in (-3.0, 0.4, 6.0):
        mean, out = family.moments(np.array([eta]), np.array([sd]))
        z = np.linspace(-12.0, 12.0, 20_001)
        w = stats.norm.pdf(z)
        at = family.mean(eta + sd * z)
        exact = w @ at / w.sum()
        spread = math.sqrt(w @ (at - exact) ** 2 / w.sum())
        if sd > 10:  # a step: by its place
            exact = number * ndtr(eta / math.hypot(sd, 1.0 if kind == PROBIT else 1.7))
            assert mean[0] == pytest.approx(exact, abs=2e-3 * number)
            continue
        assert mean[0] == pytest.approx(exact, rel=1e-9)
        assert out[0] == pytest.approx(spread, rel=1e-6, abs=1e-8)


@njit
def drawn(b, c, rng, out):
    for i in range(out.size):
        out[i] = polya_gamma.draw(b, c, rng)


SHAPES = [(1.0, c) for c in (0.0, 0.01, 1.0, 3.0, 3.2, 8.0, 60.0)] + [
    (2.0, 1.0), (0.1, 0.0), (0.3, 6.0), (1.7, 2.0), (7.0, 3.0), (50.0, 0.5)
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("b", "c"), SHAPES)
def test_polya_gamma_draws(b, c, rng):
    """Mean, variance and Laplace transform: E e^{−tω} = (cosh(c/2)/cosh(√(c²/4 + t/2)))^b."""
    out = np.empty(100_000)
    drawn(b, c, rng, out)
    mean, variance = (b * m for m in polya_gamma.moments(c))
    assert abs(out.mean() - mean) < 4.5 * math.sqrt(variance / out.size)
    spread = out.var()
    error = math.sqrt(((out - out.mean()) ** 4).mean() - spread**2) / math.sqrt(out.size)
    assert abs(spread - variance) < 4.5 * error
    for t in (0.5 / mean, 5.0 / mean):
        root = math.sqrt(0.25 * c * c + 0.5 * t)
        log_cosh = [abs(v) + math.log1p(math.exp(-2 * abs(v))) for v in (0.5 * c, root)]
        exact, found = math.exp(b * (log_cosh[0] - log_cosh[1])), np.exp(-t * out)
        assert abs(found.mean() - exact) < 4.5 * found.std() / math.sqrt(out.size)


@pytest.mark.parametrize("c", [0.0, 0.04, 0.06, 1.0, 30.0, 700.0])
def test_polya_gamma_moments_are_the_sums(c):
    k = np.arange(2_000_000) + 0.5
    d = 0.5 / (np.pi**2 * (k**2 + (c / (2 * np.pi)) ** 2))
    rest = 0.5 / (np.pi**2 * k[-1])
    mean, variance = polya_gamma.moments(c)
    assert mean == pytest.approx(d.sum() + rest, rel=1e-9)
    assert variance == pytest.approx((d**2).sum(), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("a", [-30.0, -1.0, 0.0, 0.44, 0.46, 3.0, 40.0])
def test_truncated_normals(a, rng):
    @njit
    def many(a, rng, out):
        for i in range(out.size):
            out[i] = sweeps.above(a, rng)

    out = np.empty(50_000)
    many(a, rng, out)
    assert (out > a).all()
    upper = np.exp(log_ndtr(-out) - log_ndtr(-a))
    assert stats.kstest(upper, "uniform").pvalue > 1e-4


def rows(kind, number, n, d, rng, scale=1.0):
    z = rng.normal(size=(n, d)) * scale
    eta = z @ rng.normal(size=d) / d**0.5
    reward = {
        BINOMIAL: lambda: rng.binomial(int(number), expit(eta)),
        PROBIT: lambda: rng.random(n) < ndtr(eta),
        POISSON: lambda: rng.poisson(np.exp(np.clip(eta, -5, 5))),
        NEGATIVE_BINOMIAL: lambda: rng.poisson(np.exp(np.clip(eta, -5, 5))),
    }[kind]().astype(float)
    return z, 0.1 * rng.normal(size=n), reward, rng.uniform(0.2, 3.0, n)


@every
@pytest.mark.parametrize(
    ("n", "d", "scale"), [(1, 1, 1.0), (60, 4, 1.0), (60, 4, 100.0), (5, 9, 3.0)]
)
def test_modes_are_those_of_a_general_optimiser(kind, number, n, d, scale, rng):
    z, offset, reward, weight = rows(kind, number, n, d, rng, scale)

    def down(phi):
        eta = z @ phi + offset
        parts = [
            families.slope_and_curvature(kind, number, e, r)
            for e, r in zip(eta, reward, strict=True)
        ]
        slope = np.array([p[0] for p in parts])
        value = families.totals(kind, number, eta, reward, weight) - 0.5 * phi @ phi
        return -value, -(z.T @ (weight * slope) - phi)

    phi = mode(Family(kind, number), z, offset, reward, weight)
    value, gradient = down(phi)
    eta = z @ phi + offset
    curvature = [
        families.slope_and_curvature(kind, number, e, r)[1]
        for e, r in zip(eta, reward, strict=True)
    ]
    H = np.eye(d) + (z.T * (weight * curvature)) @ z
    assert gradient @ np.linalg.solve(H, gradient) < 1e-12  # in posterior sds, squared
    found = optimize.minimize(down, phi + 0.1, jac=True, method="BFGS", options={"gtol": 1e-9})
    assert value <= found.fun + 1e-8 * abs(found.fun)


@every
@pytest.mark.parametrize("variance", [1e-8, 0.5, 30.0, 1e6])
def test_a_single_row_settles_where_the_slopes_meet(kind, number, variance):
    for eta in (-50.0, -1.0, 0.0, 8.0, 60.0):
        for r in (0.0, 1.0):
            x = newton.settled(eta, variance, kind, number, r, 2.0)

            def rest(v, eta=eta, r=r):
                return (
                    eta - v + variance * 2.0 * families.slope_and_curvature(kind, number, v, r)[0]
                )

            low, high = x - 1e-9 * (1 + abs(x)), x + 1e-9 * (1 + abs(x))
            assert rest(low) >= 0.0 >= rest(high)
