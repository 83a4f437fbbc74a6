"""One round on arrays: draws, ties, propensities, and a NumPy twin of the loop."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bayesbandit.kernels import propensities, rounds, selection
from bayesbandit.kernels.row_layout import DRAWN, EPSILON_GREEDY, THOMPSON, UCB, row_type, row_width
from tests import oracle

INF = np.inf
NAMES = {THOMPSON: "Thompson", UCB: "UCB", EPSILON_GREEDY: "ε-greedy"}


def stream_of(rng, n):
    return np.append(0.0, rng.standard_normal(n))


def row_of(mean, scale, df=INF, kind=UCB, param=1.0, floor=0.0):
    """A logged round of one column with these moments; of new arms, df < 0."""
    K = len(mean)
    row = np.zeros(row_width(1, K))
    log = record_of(row, K)
    log["mean"], log["scale"], log["last"] = mean, scale, df
    log["rule"], log["number"], log["min_probability"] = kind, param, floor
    return row


def record_of(rows, K):
    """The numbers of one column's rows (…, width) by name."""
    return rows.view(row_type(1, K))[..., 0]


def chances(row, K):
    """One arm at a time."""
    return np.concatenate([propensities.chances(row[None], k, 1, K)[0] for k in range(K)])


def decisions(row, K, kind, param, n, rng, floor=0.0):
    """How often each arm is picked in n decisions from the same row."""
    rows, stream = np.tile(row, (n, 1)), stream_of(rng, n * (3 * K + 2) + 100)
    assert choose_many(kind)(rows, 0, 1, K, kind, np.array([[param, floor]]), stream) == n
    return np.bincount(record_of(rows, K)["arm"].astype(int), minlength=K)


def choose_many(kind):
    """The kernel that decides by a rule of this kind."""
    return (rounds.NUMBERS if kind in DRAWN else rounds.REGRESSIONS).choose_many


def fits(counts, p):
    """No chi-square evidence against the probabilities p, nor a choice that is impossible."""
    possible = np.asarray(p) > 1e-9
    assert counts[~possible].sum() == 0
    if possible.sum() > 1:
        expected = counts.sum() * p[possible] / p[possible].sum()
        assert stats.chisquare(counts[possible], expected).pvalue > 1e-3


@pytest.mark.parametrize("df", [INF, 0.7, 1.0, 2.5, 30.0, 1e6])
def test_draws_are_normal_or_student(df, rng):
    stream = stream_of(rng, 40_000)
    draws = [selection.draw(2.0, 0.5, df, stream) for _ in range(20_000)]
    belief = stats.norm(2.0, 0.5) if df == INF else stats.t(df, 2.0, 0.5)
    assert stats.kstest(draws, belief.cdf).pvalue > 0.01
    assert stream[0] == (20_000 if df == INF else 40_000)  # one normal, or two for Bailey's method


ROWS = [
    ([0.2, 0.0, -0.1], [0.3, 0.5, 0.05], INF),
    ([1.0, 1.0, 1.0, 0.5], [0.0, 0.0, 0.0, 0.0], INF),
    ([0.0, 0.3], [1.0, 0.2], [3.0, INF]),
    ([0.0, 0.3, 0.1], [1.0, 0.2, 0.6], [1.2, 2.0, 40.0]),
    ([1.0, 1.0], [2.0, 2.0], INF),
    ([0.4], [1.0], INF),
]


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("param", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(("mean", "scale", "df"), ROWS)
def test_chance_is_the_quadrature_and_the_frequency(kind, param, mean, scale, df, rng):
    K, row = len(mean), row_of(mean, scale, df, kind, param)
    p = chances(row, K)
    if kind == THOMPSON and (param == 0.0 or not np.all(scale)):
        expected = oracle.winners(mean)
    else:
        expected = oracle.policy_probabilities(NAMES[kind], param, mean, scale, df)
    np.testing.assert_allclose(p, expected, atol=1e-6)
    assert p.sum() == pytest.approx(1.0, abs=1e-8)
    fits(decisions(row, K, kind, param, 3000, rng), p)


@given(
    st.integers(1, 12), st.sampled_from(list(NAMES)), st.booleans(), st.integers(0, 99),
    st.integers(0, 2), st.booleans(),
)  # fmt: skip
def test_the_stream_is_never_read_beyond_its_end(K, kind, student, seed, new, floor):
    """`is_short` covers the most that a round can use: all arms tied, all Student-t, exploring,
    some of them new, above a floor."""
    rng = np.random.default_rng(seed)
    stream = stream_of(rng, 100)
    row = row_of(np.zeros(K), rng.integers(0, 2, K).astype(float), 3.0 if student else INF)
    row[1 + 2 * K : 1 + 2 * K + new] *= -1.0
    rows, params = np.tile(row, (100, 1)), np.array([[1.0, 1e-9 * floor]])
    done = choose_many(kind)(rows, 0, 1, K, kind, params, stream)
    assert (done < 100) == selection.is_short(stream, K)
    assert stream[0] < stream.size


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("floor", [0.0, 0.05, 0.2])
@pytest.mark.parametrize("new", [(), (0,), (1, 4), (0, 1, 2, 4)])
def test_new_arms_have_their_share_and_a_floor_lifts_all(new, floor, kind, rng):
    """γ + (1 − K γ) p, with p = 1/K of a new arm, and (K − U)/K of the rule's among the others."""
    mean, scale = np.array([5.0, 0.3, 0.1, -INF, 0.2]), np.array([0.1, 1.0, 0.5, 0.0, 0.7])
    fresh, there = np.isin(np.arange(5), new), mean > -INF
    row = row_of(mean, scale, np.where(fresh, -INF, INF), kind, 0.4, floor)
    old = there & ~fresh
    expected = np.where(fresh, 0.25, 0.0)
    if old.any():
        alone = chances(row_of(mean[old], scale[old], kind=kind, param=0.4), old.sum())
        expected[old] = alone * old.sum() / 4
    expected = np.where(there, floor + (1 - 4 * floor) * expected, 0.0)
    np.testing.assert_allclose(chances(row, 5), expected, atol=1e-12)
    every = propensities.chances(row[None], 0, 1, 5, 5)
    np.testing.assert_array_equal(every[0], chances(row, 5))
    fits(decisions(row, 5, kind, 0.4, 4000, rng, floor), expected)
