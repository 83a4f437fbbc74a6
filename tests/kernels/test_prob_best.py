"""The probability that an arm is best: oracles, laws, point masses, and scales far apart."""

import math

import numpy as np
import pytest
from scipy.special import ndtr, stdtr
from scipy.stats import norm, t

from bayesbandit.kernels.prob_best.located import FIRST_ARM, best_from, by_walk, place
from bayesbandit.kernels.student import MIN_DF, NEGLIGIBLE_MASS, normal_cdf, peak, reach
from tests.cases import few, in_gate

INF = np.inf
TOLERANCE = 1e-8


def arrays(mean, scale, df=INF):
    mean = np.array(mean, dtype=float)
    return mean, np.array(scale, dtype=float), np.broadcast_to(df, mean.shape).astype(float)


def probabilities(mean, scale, df=INF):
    """Every arm's probability; the two entry points must agree in every bit."""
    mean, scale, df = arrays(mean, scale, df)
    out = np.full(mean.size, np.nan)
    best_from(FIRST_ARM, mean, scale, df, out)
    np.testing.assert_array_equal(out, one_by_one(mean, scale, df))
    return out


def one_by_one(mean, scale, df):
    out = np.full(mean.size, np.nan)
    for a in range(mean.size):
        best_from(a, mean, scale, df, out[a : a + 1])
    return out


def by_panels(mean, scale, df=INF):
    """The probabilities without closed forms."""
    mean, scale, df = arrays(mean, scale, df)
    out, shift = np.full(mean.size, np.nan), np.empty(mean.size)
    alive = np.empty(mean.size, np.bool_)
    extent = np.array([reach(nu) * s for nu, s in zip(df, scale, strict=True)])
    floor = place(mean, extent, shift, alive)
    by_walk(floor, shift, scale, df, alive, out)
    return out


# oracles: other panels, in another coordinate, with scipy's distribution functions
X, W = np.polynomial.legendre.leggauss(20)
EVEN = np.arange(-9.5, 10.0)
OCTAVES = np.concatenate([[0.0], 2.0 ** np.arange(-1, 42)])
BOTH = np.concatenate([-OCTAVES[:0:-1], OCTAVES])


def cdf(z, df):
    return ndtr(z) if df == INF else stdtr(df, z)


def pdf(z, df):
    return norm.pdf(z) if df == INF else t.pdf(z, df)


def breaks(df):
    """Where to break in the standardised coordinate of an arm."""
    return EVEN if df == INF else np.union1d(BOTH, np.arange(-12.0, 13.0))


def twin(a, mean, scale, df):
    """NumPy twin: ∫ f(u) Π F_k(((m_a - m_k) + s_a u)/s_k) du, broken around every arm's mean."""
    others = [k for k in range(mean.size) if k != a and mean[k] > -INF]
    floor = max([mean[k] for k in others if scale[k] == 0.0], default=-INF)
    if (mean[a] < floor and scale[a] == 0.0) or mean[a] == -INF:
        return 0.0
    others = [k for k in others if scale[k] > 0.0 or scale[a] == 0.0]
    if scale[a] == 0.0:
        ties = np.sum((mean == mean[a]) & (scale == 0.0))
        sure = [cdf((mean[a] - mean[k]) / scale[k], df[k]) for k in others if scale[k] > 0.0]
        return math.prod(sure) / ties
    edges = [(mean[k] - mean[a]) / scale[a] + breaks(df[k]) * (scale[k] / scale[a]) for k in others]
    top = breaks(df[a])[-1]
    bottom = max(-top, (floor - mean[a]) / scale[a])
    if bottom >= top:
        return 0.0
    inside = np.unique(np.concatenate([breaks(df[a]), *edges, [bottom]]))
    inside = inside[(inside >= bottom) & (inside <= top)]
    half = 0.5 * np.diff(inside)[:, None]
    u = inside[:-1, None] + half * (1.0 + X)
    integrand = pdf(u, df[a])
    for k in others:
        integrand *= cdf((mean[a] - mean[k]) / scale[k] + u * (scale[a] / scale[k]), df[k])
    return float(np.sum(half * W * integrand))


def test_normal_cdf():
    z = np.linspace(-37, 9, 2001)
    np.testing.assert_allclose([normal_cdf(v) for v in z], ndtr(z), rtol=1e-13, atol=0)
    assert (normal_cdf(-INF), normal_cdf(INF)) == (0.0, 1.0)


@pytest.mark.parametrize(
    "df", [MIN_DF, 0.2, 0.5, 0.6, 1, 1.5, 4, 20, 150, 199.9, 200.1, 1e3, 1e8, 1e300, INF]
)
def test_peak_and_reach(df):
    assert peak(df) == pytest.approx(pdf(0.0, df), rel=1e-11)
    assert cdf(-reach(df), df) <= NEGLIGIBLE_MASS
    assert reach(df) <= 1.1 * -(
        norm.ppf(NEGLIGIBLE_MASS) if df > 1e9 else t.ppf(NEGLIGIBLE_MASS, df)
    )


@pytest.mark.parametrize("df", [MIN_DF, 0.25, 0.6])
def test_an_arm_whose_tails_hardly_fall_is_best_as_often_as_it_beats_the_others(df):
    """P(T > max) = ∫ f_max(y) P(T > y) dy, of two normal arms beside a Student-t T."""
    edges = np.arange(-15.0, 20.0, 0.5)
    y = (edges[:, None] + 0.25 * (1.0 + X)).ravel()
    one, other = norm(1.0, 2.0), norm(2.0, 0.5)
    density = one.pdf(y) * other.cdf(y) + one.cdf(y) * other.pdf(y)
    expected = np.sum(np.tile(0.25 * W, edges.size) * density * t.sf(y, df))
    found = probabilities([0.0, 1.0, 2.0], [1.0, 2.0, 0.5], [df, INF, INF])
    np.testing.assert_allclose(found[0], expected, rtol=0.0, atol=TOLERANCE)


@pytest.mark.parametrize(
    ("mean", "scale", "df", "expected"),
    [
        ((0.3, -0.2, 0.1, 0), (0.1, 0.7, 0.3, 0.02), INF,
         (0.5641290965555, 0.2200680274647, 0.2154126180148, 0.0003902579650294)),
        ((0, 0.5, -0.2), (1, 0.4, 2), (3, 5, 1.5),
         (0.2422372771399, 0.4115845516913, 0.3461781711688)),
        ((0.2, 0, -0.1, 0.3), (0.5, 0.3, 0.2, 0.05), (INF, 4, 2.5, INF),
         (0.3790237911049, 0.1334537737365, 0.05436427342102, 0.4331581617376)),
        ((1, 0, 2, 1.5), (0.01, 1, 0.3, 3), (30, 12.5, 1, 100),
         (0.03349757771117, 0.02842265355083, 0.5195328666239, 0.4185469021141)),
    ],
)  # fmt: skip
def test_integrals_by_mpmath(mean, scale, df, expected):
    """Values by mpmath's tanh-sinh rule with 30 digits."""
    np.testing.assert_allclose(probabilities(mean, scale, df), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("df", [1, 2.5, 8, 30, 1e6, INF])
@pytest.mark.parametrize("size", [2, 3, 4, 10, 26, 100])
@few("2-", "30-")
def test_equal_arms_share_evenly(size, df):
    np.testing.assert_allclose(probabilities(np.ones(size), np.ones(size), df), 1 / size, atol=1e-9)


def beliefs(rng, size):
    """Means and scales of one of a dozen unkind families, some with arms unavailable."""
    z, tilt = rng.normal(size=size), rng.uniform(-7, 7, size)
    wide, near = 10.0 ** rng.uniform(-12, 12, size), 10.0 ** rng.uniform(-2, 2, size)
    alike, ladder = np.exp(0.3 * z[::-1]), 10.0 ** np.linspace(-12, 12, size)
    powers = rng.choice([1e-20, 1e-10, 1, 1e10, 1e20], size)
    levels = 10.0 ** rng.uniform(-6, 6, 3)
    families = [
        (z * wide, wide),
        (tilt * wide, wide),  # every range contains 0, where they all begin
        (z * near, near),
        (tilt * near, near),
        (0.01 * z * near, near),
        (0.0 * near, near),
        (z * powers, powers),
        (z * rng.choice([0, 0.1, 1, 5]), alike),
        (rng.integers(0, 3, size), near * (z > 0)),  # point masses, tied
        (rng.choice(levels, size) + 1e-3 * z, rng.choice(levels, size)),  # clusters
        (1e3 + z * near, near),
        (rng.uniform(-6.5, 2) * ladder, ladder),
    ]
    mean, scale = families[rng.integers(len(families))]
    absent = (rng.random(size) < 0.05) & (np.arange(size) > 0)
    return np.where(absent, -INF, mean), np.where(absent, 0.0, scale)


def degrees(rng, size, kind):
    some = np.array([1, 1, 1.5, 2, 3, 5, 10, 19.9, 20, 50, 1e3, 1e8])
    if kind == "normal":
        return np.full(size, INF)
    return rng.choice(some if kind == "student" else np.append(some, [INF] * 12), size)


def sweep(rng, kind, sizes, repetitions):
    for size in sizes:
        for _ in range(repetitions):
            mean, scale = beliefs(rng, size)
            df = degrees(rng, size, kind)
            found = probabilities(mean, scale, df)
            arms = np.unique(np.append(np.argsort(found)[-3:], rng.integers(0, size, 2)))
            expected = [twin(a, mean, scale, df) for a in arms]
            np.testing.assert_allclose(found[arms], expected, rtol=0, atol=TOLERANCE)
            assert abs(found.sum() - 1) < TOLERANCE
            assert found.min() >= 0.0


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "repetitions"), [("normal", 100), ("student", 5), ("mixed", 8)])
@in_gate(2)
def test_scales_far_apart_at_length(kind, repetitions):
    sweep(np.random.default_rng(11), kind, (2, 3, 4, 5, 6, 8, 12), repetitions)
    sweep(np.random.default_rng(12), kind, (20, 40, 100), max(1, repetitions // 20))


@pytest.fixture
def rng():
    return np.random.default_rng(13)


def random_beliefs(rng, repetitions=30):
    for size in (2, 3, 4, 9):
        for _ in range(repetitions):
            mean, scale = rng.normal(size=size), 10.0 ** rng.uniform(-2, 1, size)
            yield mean, scale, rng.choice([INF, INF, 1.0, 6.0, 40.0], size)
            yield mean, scale, np.full(size, INF)


def test_no_origin_and_no_unit(rng):
    for mean, scale, df in random_beliefs(rng):
        expected = probabilities(mean, scale, df)
        moved = probabilities(2.0**10 * mean - 300.0, 2.0**10 * scale, df)
        np.testing.assert_allclose(moved, expected, atol=1e-9)
        np.testing.assert_array_equal(probabilities(2.0**80 * mean, 2.0**80 * scale, df), expected)


@pytest.mark.parametrize(
    ("mean", "scale", "expected"),
    [
        ((1, 1), (0, 0), (0.5, 0.5)),
        ((1, 2), (0, 0), (0, 1)),
        ((1, 1, 1), (0, 0, 0), (1 / 3, 1 / 3, 1 / 3)),
        ((1, 0, 1), (0, 0, 0), (0.5, 0, 0.5)),
        ((0.1,) * 7 + (0.0,), (0,) * 8, (1 / 7,) * 7 + (0,)),
        ((0, 1), (1, 0), (ndtr(-1.0), ndtr(1.0))),
        ((0, 1, 1), (1, 0, 0), (ndtr(-1.0), ndtr(1.0) / 2, ndtr(1.0) / 2)),
        ((0, 1, 0.9), (1, 0, 0), (ndtr(-1.0), ndtr(1.0), 0)),
        ((5,), (0,), (1,)),
        ((5,), (3,), (1,)),
    ],
)
@pytest.mark.parametrize("absent", [0, 1, 3])
def test_point_masses(mean, scale, expected, absent):
    found = probabilities((-INF,) * absent + mean, (0,) * absent + scale)
    np.testing.assert_allclose(found, (0,) * absent + expected, rtol=0, atol=1e-10)
    assert np.all(found[:absent] == 0.0)


def test_the_others_do_not_see_an_unavailable_arm(rng):
    for belief in random_beliefs(rng, 10):
        size = belief[0].size
        for at in {0, size // 2, size}:
            absent = zip(belief, (-INF, 0.0, INF), strict=True)
            found = probabilities(*(np.insert(values, at, value) for values, value in absent))
            assert found[at] == 0.0
            np.testing.assert_array_equal(np.delete(found, at), probabilities(*belief))


def test_ends_whatever_it_is_given():
    """Not a number, an overflow, or df far below 1: no promise but to return."""
    for mean in ((0, 1, 2, 3), (-1e308, 1e308, 0, 1), (math.nan, 0, 1, 2), (INF, 0, 0, 0)):
        for scale in ((1, 1, 1, 1), (1e308, 1, 0, 1e-308), (math.nan, 1, 1, 1), (INF, 1, 1, 0)):
            for df in (INF, 0.01, 0.3, math.nan):
                by_panels(mean, scale, df)
    by_panels([-INF] * 3, [0] * 3)
