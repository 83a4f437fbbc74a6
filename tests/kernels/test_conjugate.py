"""P(best) of independent probabilities and rates, against quadrature by SciPy's functions; draws
follow their laws, and choices by them their probabilities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from scipy import stats
from scipy.special import betainc, betaln, expit, gammainc, gammaln

from bayesbandit import predictions
from bayesbandit.kernels import row_layout, selection
from bayesbandit.kernels.conjugate import families
from bayesbandit.kernels.prob_best.walk import best
from bayesbandit.kernels.propensities import chances
from bayesbandit.kernels.row_layout import BETA, GAMMA, THOMPSON
from bayesbandit.predictions import Conjugate
from tests.cases import few, in_gate
from tests.kernels.test_rounds import chances as one_by_one
from tests.kernels.test_rounds import choose_many, decisions, fits, record_of, row_of, stream_of

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


def parameters(kind, K, rng):
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
        a, b = parameters(kind, K, rng)
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


@njit
def draw(a, b, family, state):
    if family == BETA:
        return families.log_odds(a, b, state)
    return families.log_rate(a, b, state)


@njit
def drawn(a, b, family, seed, n):
    """Draws (n,) of z, one behind the other."""
    out, state = np.empty(n), families.seeded(seed)
    for i in range(n):
        out[i], state = draw(a, b, family, state)
    return out


@njit
def first(a, b, family, seeds):
    """The draw (n,) that each of the seeds begins with."""
    out = np.empty(seeds.size)
    for i in range(seeds.size):
        out[i], _ = draw(a, b, family, families.seeded(seeds[i]))
    return out


SHAPES = [
    (1e-3, 1e-3), (1e-3, 1e6), (1e6, 1e-3), (0.02, 0.5), (0.4, 0.6), (1.0, 1.0), (0.999, 1.001),
    (1.5, 40.0), (7.0, 3.0), (300.0, 0.2), (2e4, 5e4), (1e6, 1e6),
]  # fmt: skip


@pytest.mark.slow
@FAMILIES
@pytest.mark.parametrize(("a", "b"), SHAPES)
@pytest.mark.parametrize("draws", ["in turn", "of decisions"])
def test_draws_follow_their_law(a, b, family, draws, rng):
    """Within a decision one draw follows the other; from one decision to the next a new normal
    begins them."""
    n = 40_000
    z = (
        drawn(a, b, family, 0.3, n)
        if draws == "in turn"
        else first(a, b, family, rng.normal(size=n))
    )
    assert np.isfinite(z).all()
    assert stats.kstest(z, lambda z: below(a, b, z, family)).pvalue > 1e-3
    assert abs(stats.spearmanr(z[1:], z[:-1]).statistic) < 4 / np.sqrt(n)


def test_random_numbers_are_those_of_splitmix64():
    """The first outputs of the authors' splitmix64.c from the state 1234567."""
    state = np.uint64(1234567)
    for expected in (6457827717110365317, 3203168211198807973, 9817491932198370423):
        u, state = families.uniform(np.uint64(state))
        assert u == ((expected >> 11) + 0.5) / 2**53


@pytest.mark.slow
@FAMILIES
@pytest.mark.parametrize("a", [1e9, 1e13, 1e20])
def test_large_ones_are_normal_to_the_last_digits(a, family):
    """Of a = b the mode is 0, and what is about it has all its digits."""
    z = drawn(a, a, family, -0.7, 40_000)
    sd = np.sqrt(2 / a) if family == BETA else np.sqrt(1 / a)
    assert stats.kstest(z / sd, stats.norm.cdf).pvalue > 1e-3
    assert len(np.unique(z)) == len(z)


ARMS = [
    ([3.0, 5.0, 9.0], [7.0, 9.0, 14.0]),
    ([1e-3, 2e-3, 1e-3, 5e-3], [1e-3, 1e-3, 4e-3, 1e-2]),
    ([0.3, 40.0], [0.4, 60.0]),
    ([600.0, 700.0, 5e5], [900.0, 1e3, 8e5]),
    ([1e40, 1e40, 1e40], [1e40, 1e40, 1e40]),
    ([2.0], [3.0]),
]


@FAMILIES
@pytest.mark.parametrize(("a", "b"), ARMS)
def test_choices_are_as_frequent_as_their_probabilities(a, b, family, rng):
    K, row = len(a), row_of(np.full(len(a), 0.5), b, a, family)
    p = probabilities(a, b, family)
    np.testing.assert_array_equal(one_by_one(row, K), p)
    fits(decisions(row, K, family, 1.0, 20_000, rng), p)


@FAMILIES
def test_rows_at_once_are_rows_one_by_one(family):
    """Rows like the one before, and rows that differ in one number of it."""
    one = row_of(np.full(3, 0.5), [7.0, 9.0, 14.0], [3.0, 5.0, 9.0], family)
    rows = np.tile(one, (9, 1))
    log = record_of(rows, 3)
    log["x"][:, 0] = np.arange(9)  # contexts, which matter to no arm
    log["min_probability"][2] = 0.1
    log["last"][3, 0] = 4.0
    log["scale"][4, 1] = 2.0
    log["last"][5, 0] *= -1.0
    for name, value in (("mean", -np.inf), ("scale", 0.0), ("last", 0.0)):
        log[name][6, 0] = value
    log["rule"][7] = BETA + GAMMA - family
    log["rule"][8] = THOMPSON
    rows, order = rows[[0, 0, 1, 2, 2, 1, 3, 4, 5, 5, 0, 6, 7, 8, 8, 0]], np.arange(16) % 3
    record_of(rows, 3)["arm"] = order
    expected = np.array([one_by_one(row, 3) for row in rows])
    found = chances(rows, 0, 1, 3, 3)
    own, first_arm = (chances(rows, k, 1, 3)[:, 0] for k in (-1, 0))
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(own, expected[np.arange(16), order])
    np.testing.assert_array_equal(first_arm, expected[:, 0])
    assert len(np.unique(found[:, 0])) == 8


@given(
    st.integers(1, 12), st.sampled_from([BETA, GAMMA]), st.sampled_from([1e-308, 1e-3, 2.0, 1e40]),
    st.integers(0, 99), st.integers(0, 2), st.booleans(),
)  # fmt: skip
def test_the_stream_is_never_read_beyond_its_end(K, family, a, seed, new, floor):
    """However many numbers the rejections take: ties of arms without digits included."""
    stream = stream_of(np.random.default_rng(seed), 100)
    row = row_of(np.full(K, 0.5), np.full(K, a), np.full(K, a))
    row[1 + 2 * K : 1 + 2 * K + new] *= -1.0
    rows, params = np.tile(row, (100, 1)), np.array([[1.0, 1e-9 * floor]])
    done = choose_many(family)(rows, 0, 1, K, family, params, stream)
    assert (done < 100) == selection.is_short(stream, K)
    assert np.isin(record_of(rows[:done], K)["arm"], np.arange(K)).all()
    assert stream[0] < stream.size


def test_the_standard_deviation_of_each_kind():
    beta, gamma = stats.beta(3.0, 5.0), stats.gamma(3.0, scale=1 / 5.0)
    for kind, exact in ((BETA, beta), (GAMMA, gamma)):
        for last in (3.0, -3.0):  # of a new arm
            np.testing.assert_allclose(
                predictions.deviation(kind, 5.0, last), exact.std(), rtol=1e-14
            )
        assert predictions.deviation(kind, 0.0, 0.0) == 0.0
    assert predictions.deviation(row_layout.TABULATED, 5.0, 0.3) == 5.0
    student = stats.t(5, 0, 2).std()
    for df, sd in ((np.inf, 2.0), (5.0, student), (2.0, np.inf)):
        assert predictions.deviation(THOMPSON, 2.0, df) == pytest.approx(sd, rel=1e-12)
    assert predictions.deviation(THOMPSON, 0.0, 1.0) == 0.0
