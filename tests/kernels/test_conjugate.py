"""P(best) of independent probabilities and rates, against quadrature by SciPy's functions."""

import numpy as np
import pytest
from scipy.special import betainc, betaln, expit, gammainc, gammaln

from bayesbandit.kernels.prob_best.walk import best
from bayesbandit.kernels.row_layout import BETA, GAMMA
from bayesbandit.predictions import Conjugate
from tests.cases import few, in_gate

FAMILIES = pytest.mark.parametrize("family", [BETA, GAMMA], ids=["beta", "gamma"])
NAMES = {BETA: "beta", GAMMA: "gamma"}
NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)


def probabilities(a, b, family, available=None):
    out = np.empty(len(a))
    which = np.ones(len(a), np.bool_) if available is None else available
    best(*(np.asarray(v, np.float64) for v in (a, b)), which, family, out)
    return out


def below(a, b, z, family):
    """P(Z < z); where v underflows, by the first term of its series."""
    if family == GAMMA:
        first = np.exp(np.minimum(a * (z + np.log(b)) - gammaln(a + 1), 0.0))
        scaled = b * np.exp(np.clip(z, -700, 700))
        return np.where(z + np.log(b) < -600, first, gammainc(a, scaled))

    def lower(a, b, z):
        first = np.exp(np.minimum(a * z - np.log(a) - betaln(a, b), 0.0))
        return np.where(z < -600, first, betainc(a, b, expit(z)))

    return np.where(z < 0, lower(a, b, z), 1.0 - lower(b, a, -z))


def log_density(a, b, z, family):
    y = z - np.log(a / b)
    if family == GAMMA:
        return a * (y - np.expm1(np.minimum(y, 700)))
    small, large = (a, b) if a <= b else (b, a)
    y = y if a <= b else -y
    n = a + b
    near = small * y - n * np.log1p(small / n * np.expm1(np.minimum(y, 30)))
    far = small * y - n * (y + np.log(small / n + large / n * np.exp(-np.maximum(y, 0))))
    return np.where(y < 30, near, far)


def by_quadrature(a, b, family):
    """On 24 Gauss nodes between many points; None where these do not see all."""
    points = [np.linspace(-40, 40, 161)]
    for p, q in zip(a, b, strict=True):
        mode, sd = np.log(p / q), np.sqrt(1 / p + (1 / q if family == BETA else 0))
        points.append(mode + sd * np.linspace(-12, 12, 97))
        points.append(mode - np.geomspace(sd, 60 / p + 20 * sd, 80))
        if family == BETA:
            points.append(mode + np.geomspace(sd, 60 / q + 20 * sd, 80))
    at = np.unique(np.concatenate(points))
    half = np.diff(at)[:, None] / 2
    z, w = (at[:-1, None] + half + half * NODES).ravel(), (half * WEIGHTS).ravel()
    F = np.array([below(p, q, z, family) for p, q in zip(a, b, strict=True)])
    out = np.empty(len(a))
    for k in range(len(a)):
        f = np.exp(log_density(a[k], b[k], z, family)) * w
        out[k] = (f / f.sum()) @ np.delete(F, k, axis=0).prod(axis=0)
    return out if abs(out.sum() - 1) < 1e-10 else None


def drawn(kind, K, rng):
    """Parameters (K,) twice: from .01 to 1e9, small ones, near each other, or counts."""
    if kind == "mixed":
        return np.exp(rng.uniform(np.log(0.01), np.log(1e9), (2, K)))
    if kind == "small":
        return np.exp(rng.uniform(np.log(0.01), np.log(10), (2, K)))
    n = np.exp(rng.uniform(0, np.log(1e6), K)) if kind == "near" else rng.integers(1, 1000, K)
    p = rng.uniform(0.4, 0.6)
    a = np.maximum(n * p + 0.5 * np.sqrt(n) * rng.normal(size=K), 0.01)
    return a, n * (1 - p) + 0.01


@few("[3-small-gamma]")
@FAMILIES
@pytest.mark.parametrize("kind", ["mixed", "small", "near", "counts"])
@pytest.mark.parametrize("K", [3, 20])
@in_gate(6)
def test_it_is_the_integral(kind, K, family):
    rng, seen = np.random.default_rng(K), 0
    for _ in range(12 if K < 20 else 4):  # by quadrature many arms take seconds
        a, b = drawn(kind, K, rng)
        with np.errstate(all="ignore"):
            expected = by_quadrature(a, b, family)
        if expected is not None:
            seen += 1
            np.testing.assert_allclose(probabilities(a, b, family), expected, rtol=0, atol=1e-9)
    assert seen >= 3


@FAMILIES
def test_equal_arms_tie_at_any_alpha(family):
    """Of α = 0 the larger mean is certain."""
    found = Conjugate(NAMES[family], np.array([[2.0, 2.0, 0.5]]), np.array([[3.0, 3.0, 4.0]]))
    for alpha in (0.1, 0.7, 3.0):
        p = found.best(alpha)[0]
        assert abs(p[0] - p[1]) < 1e-9
    np.testing.assert_array_equal(found.best(0.0), [[0.5, 0.5, 0]])


def test_two_probabilities_in_closed_form():
    """P(p > q) of p ~ Beta(a, 1) and q ~ Beta(b, 1) is a/(a + b); of rates of shape 1 likewise."""
    for a, b in ((1, 2), (30, 0.5), (0.01, 1e6), (7, 7)):
        pair = np.array([a, b]), np.ones(2)
        np.testing.assert_allclose(probabilities(*pair, BETA)[0], a / (a + b), atol=1e-10)
        rates = np.ones(2), np.array([b, a])  # Exponential(b) > Exponential(a)
        np.testing.assert_allclose(probabilities(*rates, GAMMA)[0], a / (a + b), atol=1e-10)


@FAMILIES
def test_the_order_and_the_absence_of_arms(family):
    a, b = np.array([3.0, 10.0, 2.0, 8.0]), np.array([4.0, 11.0, 2.0, 9.0])
    p = probabilities(a, b, family)
    np.testing.assert_allclose(probabilities(a[::-1], b[::-1], family)[::-1], p, atol=1e-10)
    some = np.array([True, False, True, True])
    few = probabilities(a, b, family, some)
    assert few[1] == 0.0
    np.testing.assert_array_equal(few[some], probabilities(a[some], b[some], family))
    one = probabilities(a, b, family, np.array([False, False, True, False]))
    np.testing.assert_array_equal(one, [0, 0, 1, 0])


@FAMILIES
def test_arms_that_are_sharper_than_floating_point_have_probabilities(family):
    rng = np.random.default_rng(0)
    for size in (26, 30, 60, 100):
        for _ in range(20):
            a, b = 10.0 ** rng.uniform(-size, size, (2, 3))
            a[1:], b[1:] = a[:1], b[:1]
            p = probabilities(a, b, family)
            np.testing.assert_allclose(p, 1 / 3, rtol=0, atol=1e-9)
        p = probabilities(np.array([2.0, 1.0]) * 10.0**size, np.array([10.0**size] * 2), family)
        np.testing.assert_allclose(p, [1.0, 0.0], rtol=0, atol=1e-9)
