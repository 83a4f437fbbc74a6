"""Draws of probabilities and rates follow their laws, and choices by them their probabilities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from scipy import stats

from bayesbandit import predictions
from bayesbandit.kernels import row_layout, selection
from bayesbandit.kernels.conjugate import families
from bayesbandit.kernels.propensities import all_chances, chances
from bayesbandit.kernels.row_layout import BETA, GAMMA, THOMPSON
from tests.kernels.test_conjugate import FAMILIES, below, probabilities
from tests.kernels.test_rounds import chances as one_by_one
from tests.kernels.test_rounds import choose_many, decisions, fits, record_of, row_of, stream_of


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
    found, own, first_arm = np.empty((16, 3)), np.empty(16), np.empty(16)
    all_chances(rows, 1, 3, found)
    chances(rows, -1, 1, 3, own)
    chances(rows, 0, 1, 3, first_arm)
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
