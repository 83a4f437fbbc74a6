"""Rounds learned by their sums: in bulk, and from beliefs about parts of a log."""

from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesbandit import Ridge
from bayesbandit.beliefs import sums
from tests.beliefs.test_linear import data, learned, seeds
from tests.cases import moments_of

K, D = 3, 3
MODELS = [
    Ridge(), Ridge("cv", "nig", "unpenalised"), Ridge(0.3, "rss/n", False), Ridge("cv", 0.5),
    Ridge(2.0, "rss", "unpenalised"),
]  # fmt: skip
models = st.sampled_from(MODELS)


@contextmanager
def in_bulk():
    """Learn 20 rows of an arm by their sums, and in blocks of 16 rows."""
    with pytest.MonkeyPatch.context() as patch:
        for name, size in {"MIN_ROWS_TO_SUM": 20, "MAX_NUMBERS": 60}.items():
            patch.setattr(sums, name, size)
        yield


def same(one, other, tolerance=1e-10):
    x = data(1, 9, D)[0]
    for a, b in zip(moments_of(one, x), moments_of(other, x), strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * np.abs(b).max())
    np.testing.assert_array_equal(one.n, other.n)


@given(seed=seeds, model=models, normalize=st.booleans(), parts=st.integers(1, 3))
def test_many_rows_are_learned_as_one_at_a_time(seed, model, normalize, parts):
    rows = data(seed, 400, D, K)
    one_at_a_time, belief = learned(model, *rows, K, normalize), model.belief(K, D, normalize)
    with in_bulk():
        for part in np.array_split(np.arange(400), parts):
            belief.update(*(values[part] for values in rows))
    same(belief, one_at_a_time)
    np.testing.assert_array_equal(belief.lam, one_at_a_time.lam)
    np.testing.assert_allclose(belief.sigma2, one_at_a_time.sigma2, rtol=1e-10)


@given(seed=seeds, scale=st.sampled_from([1e5, 1e7]))
def test_where_products_would_lose_digits_rows_do_not(seed, scale):
    """Two large columns differ by little, which their products drown."""
    x, arm, r, w = data(seed, 90, D, K)
    x[:, 1] = x[:, 0] + scale * x[:, 2]
    x[:, 0] = scale * x[:, 2]
    one_at_a_time, belief = learned(Ridge(), x, arm, r, w, K), Ridge().belief(K, D)
    with in_bulk():
        belief.update(x, arm, r, w)
    same(belief, one_at_a_time, 1e-8)
