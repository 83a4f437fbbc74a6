"""Rounds learned by their sums: in bulk, and from beliefs about parts of a log. Contexts far from 0
that differ by little: years, prices, timestamps, against exact fractions.

An unpenalised intercept takes up any offset of the contexts: no offset changes a prediction.
"""

from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bayesbandit as bb
from bayesbandit import Ridge
from bayesbandit.beliefs import sums
from tests import oracle
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


OFFSETS = [0.0, 1e3, 1e7, 1e9, 1.7e12]  # the last are milliseconds since 1970
KNOWN = {"ridge": 2.0, "variance": 1.0, "intercept": "unpenalised"}
COLUMNS = 2


def rows(offset, n=24, seed=0):
    """Contexts, whose difference to the offset is exact, rewards and weights: small fractions."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-8, 9, size=(n, COLUMNS)) / 4.0
    return offset + x, rng.integers(-8, 9, size=n) / 4.0, rng.integers(1, 9, size=n) / 4.0


def is_exact(belief, x, r, w, at, tolerance=1e-12):
    z, points = oracle.design(x), oracle.design(at)
    mean, sd = oracle.exact_moments(z, r, w, [2.0, 2.0, 0.0], points)
    for known in (
        moments_of(belief, at),
        (belief.posterior(0).mean(at), belief.posterior(0).sd(at)),
    ):
        np.testing.assert_allclose(np.ravel(known[0]), mean, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(np.ravel(known[1]), sd, rtol=tolerance)
    together = belief.predict_together(at[None])
    np.testing.assert_allclose(together.mean[0], mean, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(together.sd[0], sd, rtol=tolerance)


def taught(x, r, w, **settings):
    belief = bb.Ridge(**(KNOWN | settings)).belief(1, COLUMNS)
    belief.update(x, np.zeros(len(x), dtype=np.int64), r, w)
    return belief


every = pytest.mark.parametrize("offset", OFFSETS)


@every
def test_rows_that_are_weighed_again_and_parts_that_are_merged(offset):
    """As a balance does; each part has its own origin."""
    x, r, w = rows(offset)
    again, whole = taught(x, r, np.ones(len(x))), taught(x[:9], r[:9], w[:9])
    again.reweigh([0], x, np.zeros(len(x), dtype=np.int64), r, w)
    whole.absorb(taught(x[9:], r[9:], w[9:]))
    for belief in (again, whole):
        is_exact(belief, x, r, w, rows(offset, 5, seed=1)[0])


@every
@pytest.mark.parametrize("blocks", [False, True])
def test_rows_that_fade_while_contexts_move_on(offset, blocks, monkeypatch):
    """A clock among the features: rows of now are far from the first one."""
    monkeypatch.setattr(sums, "MIN_ROWS_TO_SUM", 2 if blocks else 1000)
    n, half = 60, 4.0
    x, r, _ = rows(0.0, n)
    x += offset + 1e6 * np.arange(n)[:, None] * np.array([0.0, 1.0]) * (offset > 0)
    belief, tick = bb.Ridge(**KNOWN, half_life=half).belief(1, COLUMNS), np.arange(1.0, n + 1)
    for part in np.array_split(np.arange(n), 4 if blocks else n):
        belief.update(x[part], np.zeros(len(part), dtype=np.int64), r[part], tick=tick[part])
    left = 2.0 ** (-(n - tick) / half)
    is_exact(belief, x, r, left, x[-5:], tolerance=1e-9)


@every
def test_noise_that_is_learned_and_penalties_that_are_chosen_do_not_see_the_offset(offset):
    near, far = rows(0.0, 40), rows(offset, 40)
    for settings in ({"variance": "nig"}, {"variance": "rss/n", "ridge": "cv"}):
        beliefs = [taught(*data, **settings) for data in (near, far)]
        points = rows(0.0, 5, seed=1)[0], rows(offset, 5, seed=1)[0]
        known = [moments_of(belief, at) for belief, at in zip(beliefs, points, strict=True)]
        np.testing.assert_allclose(*(np.array(k) for k in known), rtol=1e-9)
        robust = [
            belief.posterior(0, dict(zip(("x", "reward", "weight"), data, strict=True))).robust()
            for belief, data in zip(beliefs, (near, far), strict=True)
        ]
        sds = [known.sd(at) for known, at in zip(robust, points, strict=True)]
        np.testing.assert_allclose(*sds, rtol=1e-9)


@pytest.mark.parametrize("scale", [1.0, 10.0, 100.0, 1e4])
def test_a_tie_of_penalties_goes_to_the_larger_one_whatever_the_scale(scale, rng):
    """One of two rows tells nothing of a slope beside a free intercept: any λ predicts alike."""
    for _ in range(40):
        d = int(rng.integers(1, 4))
        belief = bb.Ridge("cv", 1.0, "unpenalised").belief(1, d)
        belief.update(scale * rng.normal(size=(2, d)), np.zeros(2, np.int64), rng.normal(size=2))
        assert belief.lam[0] == 100.0
