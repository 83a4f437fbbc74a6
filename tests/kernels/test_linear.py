"""One arm's statistics, kept one row at a time, against the same from all rows at once."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import solve_triangular

from bayesbandit.beliefs.linear import Ridge
from bayesbandit.kernels import arm as layout
from bayesbandit.kernels import linear as kernel
from bayesbandit.kernels import moments
from bayesbandit.runtime.compiling import interpreted
from tests import oracle

seeds = st.integers(0, 2**32 - 1)
VARIANCES = ["rss/n", "rss", "nig", 0.3]


def rows(seed, n, D):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, D))
    return z, z @ rng.normal(size=D) + rng.normal(size=n), rng.uniform(0.2, 5.0, n)


def arm_of(settings, z=(), r=(), w=()):
    """The numbers of an arm after rows have arrived one by one."""
    arm, work = np.empty(layout.arm_width(settings)), np.empty(kernel.scratch(settings))
    kernel.initialise(arm, settings)
    for row in zip(z, r, w, strict=True):
        kernel.update(arm, *row, settings, work)
    return arm


def settings_of(D, normalize=False, **model):
    return Ridge(intercept=False, **model).settings(D, normalize)


def posterior(arm, D):
    """θ, with the intercept about 0, and B⁻¹."""
    own = interpreted(layout.arm_of)(arm, D)
    U = own.U.reshape(D, -1)[:, :D]
    inverse = solve_triangular(U, np.eye(D), unit_diagonal=True)
    return inverse @ own.t, (inverse / own.d) @ inverse.T


def head_of(arm):
    return layout.heads(arm)


@given(seeds, st.integers(1, 9), st.integers(1, 60), st.sampled_from(VARIANCES))
def test_rows_one_by_one_equal_the_closed_form(seed, D, n, variance):
    z, r, w = rows(seed, n, D)
    settings = settings_of(D, ridge=0.7, variance=variance)
    arm = arm_of(settings, z, r, w)
    theta, P = posterior(arm, D)
    B = oracle.precision(z, w, 0.7, intercept=False)
    np.testing.assert_allclose(theta, np.linalg.solve(B, z.T @ (w * r)), atol=1e-8)
    np.testing.assert_allclose(P, np.linalg.inv(B), atol=1e-8)
    sigma2, df = oracle.noise(z, r, w, 0.7, variance, intercept=False)
    np.testing.assert_allclose(head_of(arm)["sigma2"], sigma2, rtol=1e-8, atol=1e-12)
    assert head_of(arm)["df"] == df
    assert head_of(arm)["n"] == n
    loss = w @ (r - z @ theta) ** 2 + 0.7 * theta @ theta
    np.testing.assert_allclose(head_of(arm)["loss"], loss, rtol=1e-8, atol=1e-10)


@given(
    seeds,
    st.sampled_from([{}, {"ridge": "cv"}, {"refit_every": 7}, {"refit_every": 0.3}]),
    st.booleans(),
)
def test_rebuilt_is_as_updated(seed, model, normalize):
    """`rebuild` gives what the same rows gave one by one, wherever both have just settled."""
    z, r, w = rows(seed, 23, 4)
    settings = settings_of(4, normalize, **{**model, "refit_every": 1})
    arm = arm_of(settings, z, r, w)
    again = np.empty_like(arm)
    kernel.rebuild(again, z, r, w, settings)
    np.testing.assert_array_equal(again, arm)


@given(seeds, st.integers(1, 4), st.integers(1, 40), st.sampled_from([2, 3, 5]), st.booleans())
def test_cross_validation_equals_explicit_folds(seed, D, n, folds, normalize):
    z, r, w = rows(seed, n, D)
    grid = (0.03, 0.5, 4.0, 60.0)
    settings = settings_of(D, normalize, ridge="cv", grid=grid, folds=folds)
    arm = arm_of(settings, z, r, w)
    scaled = w / w.mean() if normalize else w
    lam = oracle.cross_validated(z, r, scaled, grid, folds, intercept=False)
    assert head_of(arm)["lam"] == lam
    theta = oracle.sklearn_ridge(z, r, scaled, lam, intercept=False)
    np.testing.assert_allclose(posterior(arm, D)[0], theta, atol=1e-8)


def test_folds_take_the_rows_in_turn():
    z, r, w = rows(1, 11, 2)
    arm = arm_of(settings_of(2, ridge="cv", folds=4), z, r, w)
    sums = interpreted(layout.sums_of)(interpreted(layout.arm_of)(arm, 2), 4)
    for f in range(4):
        mine = np.arange(11) % 4 == f
        fold = sums.folds[f]
        assert fold[0] == mine.sum()
        np.testing.assert_allclose(fold[1], w[mine] @ r[mine] ** 2, rtol=1e-12)
        np.testing.assert_allclose(fold[2:4], z[mine].T @ (w * r)[mine], rtol=1e-10)
        G = z[mine].T @ (w[mine, None] * z[mine])
        np.testing.assert_allclose(fold[4:].reshape(2, 2), G, rtol=1e-10)


def settled(refit, n, D=2, normalize=False, **model):
    """The numbers of rows at which λ was settled, out of n."""
    settings = settings_of(D, normalize, refit_every=refit, **model)
    arm, times, work = arm_of(settings), [], np.empty(kernel.scratch(settings))
    for i, (z, r, w) in enumerate(zip(*rows(0, n, D), strict=True), start=1):
        due = float(head_of(arm)["due"])
        kernel.update(arm, z, r, w, settings, work)
        if head_of(arm)["due"] != due:
            times.append(i)
    return times


def test_schedules():
    every = list(range(1, 31))
    assert settled(None, 30, ridge="cv") == every
    assert settled(1, 30, ridge="cv") == every
    assert settled(None, 30, normalize=True) == every
    assert settled(10, 35, ridge="cv") == [1, 11, 21, 31]
    assert settled(np.int64(10), 35, ridge="cv") == [1, 11, 21, 31]
    assert settled(10, 35) == []
    growth = settled(0.25, 100, ridge="cv")
    assert growth[:6] == [1, 2, 3, 4, 5, 7]
    assert all(b <= max(a + 1, np.ceil(a * 1.25)) for a, b in pairwise(growth))


@pytest.mark.slow
@given(seeds, st.integers(21, 60))
def test_between_two_settlings_the_posterior_is_exact_given_lambda(seed, n):
    z, r, w = rows(seed, n, 3)
    arm = arm_of(settings_of(3, ridge="cv", refit_every=20), z, r, w)
    lam = head_of(arm)["lam"]
    at = 1 + 20 * ((n - 1) // 20)
    assert lam == oracle.cross_validated(z[:at], r[:at], w[:at], Ridge().grid, 5, intercept=False)
    theta = oracle.sklearn_ridge(z, r, w, lam, intercept=False)
    np.testing.assert_allclose(posterior(arm, 3)[0], theta, atol=1e-8)


@pytest.mark.parametrize("variance", ["rss/n", "rss"])
@pytest.mark.parametrize("floor", [1e-6, 1e-2])
def test_the_floor_keeps_a_perfect_fit_uncertain(variance, floor):
    arm = arm_of(settings_of(1, variance=variance, min_variance=floor), [np.ones(1)], [0.0], [1.0])
    assert head_of(arm)["sigma2"] == floor
    mean, scale = moments.moments(arm, np.ones(1), 1, np.empty(8))
    assert mean == 0.0
    np.testing.assert_allclose(scale, np.sqrt(floor / 2), rtol=1e-12)


@given(seeds, st.integers(1, 11), st.integers(1, 130), st.sampled_from([0, 1, 30]))
def test_a_block_of_contexts_has_the_bits_of_single_ones(seed, D, B, n):
    z, r, w = rows(seed, n, D)
    arm = arm_of(settings_of(D), z, r, w)
    contexts = np.random.default_rng(seed).normal(size=(B, D))
    means, scales = np.empty(B), np.empty(B)
    moments.moments_of_block(
        arm, np.ascontiguousarray(contexts.T), means, scales, np.empty((D + 8, B))
    )
    single = [moments.moments(arm, context, D, np.empty(layout.stride(D))) for context in contexts]
    np.testing.assert_array_equal(np.column_stack([means, scales]), single)
    if n:
        B = oracle.precision(z, w, 1.0, intercept=False)
        covariance = head_of(arm)["sigma2"] * np.linalg.inv(B)
        expected = oracle.moments(contexts, posterior(arm, D)[0], covariance)
        np.testing.assert_allclose((means, scales), expected, atol=1e-8)


def exactly(z, r, w, lam):
    """θ in rational arithmetic, by elimination."""
    z, r, w = (np.vectorize(Fraction)(part) for part in (z, r, w))
    D = z.shape[1]
    rows = np.column_stack([z.T @ (w[:, None] * z), z.T @ (w * r)])
    rows[np.arange(D), np.arange(D)] += Fraction(lam)
    for j in range(D):
        rows[j] = rows[j] / rows[j, j]
        for i in set(range(D)) - {j}:
            rows[i] = rows[i] - rows[i, j] * rows[j]
    return rows[:, D].astype(float)


@pytest.mark.parametrize("size", [1.0, 1e3, 1e5, 1e7, 1e9, 1e30])
@pytest.mark.parametrize("n", [2, 5, 40])
def test_large_contexts_lose_no_digits(size, n):
    """A column in the millions against λ = 1 would cost a covariance all but a few digits, and one
    at 1e8 all of them."""
    z, r, w = rows(3, n, 3)
    z[:, 0], z[:, 2] = size * (1 + 0.1 * z[:, 0]), 1.0
    settings = settings_of(3, variance=1.0)
    arm = arm_of(settings, z, r, w)
    theta = exactly(z, r, w, 1)
    np.testing.assert_allclose(posterior(arm, 3)[0], theta, rtol=1e-8)
    v = np.empty(layout.stride(3))
    for context in z[:3]:
        scale = moments.moments(arm, context, 3, v)[1]
        assert 0 < scale < 1.5 / np.sqrt(w.min())  # no wider than by a single row like it


@pytest.mark.parametrize("offset", [1e7, -1e8])
@pytest.mark.parametrize("settings", [{}, {"ridge": "cv", "refit_every": 50}, {"refit_every": 100}])
def test_large_rewards_keep_their_noise(offset, settings):
    """An unpenalised intercept takes up any offset of the rewards, and σ² does not notice it."""
    rng = np.random.default_rng(3)
    z = np.column_stack([rng.normal(size=(2300, 2)), np.ones(2300)])
    r, w = z[:, :2] @ [1.0, -2.0] + rng.normal(size=2300), np.ones(2300)
    model = Ridge(intercept="unpenalised", **settings).settings(2, False)
    near, far = arm_of(model, z, r, w), arm_of(model, z, r + offset, w)
    np.testing.assert_allclose(head_of(far)["sigma2"], head_of(near)["sigma2"], rtol=1e-5)
    assert head_of(far)["lam"] == head_of(near)["lam"]
    shift = posterior(far, 3)[0] - posterior(near, 3)[0]
    shift[2] += head_of(far)["shift"] - head_of(near)["shift"]
    np.testing.assert_allclose(shift, [0, 0, offset], atol=1e-5)
    assert 0.9 < head_of(near)["sigma2"] < 1.1
