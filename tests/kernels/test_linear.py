"""One arm's statistics, kept one row at a time, against the same from all rows at once; its
information root against rational arithmetic, whatever the scales."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.linalg import solve_triangular

import bayesbandit as bb
from bayesbandit.beliefs import sums
from bayesbandit.beliefs.linear import Ridge
from bayesbandit.beliefs.memory import FOR_EVER
from bayesbandit.kernels import arm as arm_numbers
from bayesbandit.kernels import linear, moments, root, scoring
from bayesbandit.kernels.arm import arm_width, stride
from bayesbandit.runtime.compiling import interpreted
from tests import oracle

seeds = st.integers(0, 2**32 - 1)


def rows(seed, n, D):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, D))
    return z, z @ rng.normal(size=D) + rng.normal(size=n), rng.uniform(0.2, 5.0, n)


def numbers_of(settings, z=(), r=(), w=()):
    """The numbers of an arm after rows have arrived one by one."""
    arm, work = np.empty(arm_numbers.arm_width(settings)), np.empty(linear.scratch(settings))
    linear.initialise(arm, settings)
    for row in zip(z, r, w, strict=True):
        linear.update(arm, *row, settings, work)
    return arm


def settings_of(D, normalize=False, **model):
    ridge = Ridge(intercept=False, **model)
    return ridge.settings(D, normalize, ridge.memory)


def posterior(arm, D):
    """θ, with the intercept about 0, and B⁻¹."""
    own = interpreted(arm_numbers.arm_of)(arm, D)
    U = own.U.reshape(D, -1)[:, :D]
    inverse = solve_triangular(U, np.eye(D), unit_diagonal=True)
    return inverse @ own.t, (inverse / own.d) @ inverse.T


def head_of(arm):
    return arm_numbers.heads(arm)


@given(
    seeds,
    st.sampled_from([{}, {"ridge": "cv"}, {"refit_every": 7}, {"refit_every": 0.3}]),
    st.booleans(),
)
def test_rebuilt_is_as_updated(seed, model, normalize):
    """`rebuild` gives what the same rows gave one by one, wherever both have just settled."""
    z, r, w = rows(seed, 23, 4)
    settings = settings_of(4, normalize, **{**model, "refit_every": 1})
    arm = numbers_of(settings, z, r, w)
    again = np.empty_like(arm)
    linear.rebuild(again, z, r, w, settings)
    np.testing.assert_array_equal(again, arm)


def settled(refit, n, D=2, normalize=False, **model):
    """The numbers of rows at which λ was settled, out of n."""
    settings = settings_of(D, normalize, refit_every=refit, **model)
    arm, times, work = numbers_of(settings), [], np.empty(linear.scratch(settings))
    for i, (z, r, w) in enumerate(zip(*rows(0, n, D), strict=True), start=1):
        due = float(head_of(arm)["due"])
        linear.update(arm, z, r, w, settings, work)
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
    arm = numbers_of(settings_of(3, ridge="cv", refit_every=20), z, r, w)
    lam = head_of(arm)["lam"]
    at = 1 + 20 * ((n - 1) // 20)
    assert lam == oracle.cross_validated(z[:at], r[:at], w[:at], Ridge().grid, 5, intercept=False)
    theta = oracle.sklearn_ridge(z, r, w, lam, intercept=False)
    np.testing.assert_allclose(posterior(arm, 3)[0], theta, atol=1e-8)


@pytest.mark.parametrize("variance", ["rss/n", "rss"])
@pytest.mark.parametrize("floor", [1e-6, 1e-2])
def test_the_floor_keeps_a_perfect_fit_uncertain(variance, floor):
    arm = numbers_of(
        settings_of(1, variance=variance, min_variance=floor), [np.ones(1)], [0.0], [1.0]
    )
    assert head_of(arm)["sigma2"] == floor
    mean, scale = moments.moments(arm, np.ones(1), 1, np.empty(8))
    assert mean == 0.0
    np.testing.assert_allclose(scale, np.sqrt(floor / 2), rtol=1e-12)


@given(seeds, st.integers(1, 11), st.integers(1, 130), st.sampled_from([0, 1, 30]))
def test_a_block_of_contexts_has_the_bits_of_single_ones(seed, D, B, n):
    z, r, w = rows(seed, n, D)
    arm = numbers_of(settings_of(D), z, r, w)
    contexts = np.random.default_rng(seed).normal(size=(B, D))
    means, scales = np.empty(B), np.empty(B)
    moments.moments_of_block(
        arm, np.ascontiguousarray(contexts.T), means, scales, np.empty((D + 8, B))
    )
    single = [
        moments.moments(arm, context, D, np.empty(arm_numbers.stride(D))) for context in contexts
    ]
    np.testing.assert_array_equal(np.column_stack([means, scales]), single)
    if n:
        B = oracle.precision(z, w, 1.0, intercept=False)
        covariance = head_of(arm)["sigma2"] * np.linalg.inv(B)
        expected = oracle.moments(contexts, posterior(arm, D)[0], covariance)
        np.testing.assert_allclose((means, scales), expected, atol=1e-8)


@pytest.mark.parametrize("offset", [1e7, -1e8])
@pytest.mark.parametrize("settings", [{}, {"ridge": "cv", "refit_every": 50}, {"refit_every": 100}])
def test_large_rewards_keep_their_noise(offset, settings):
    """An unpenalised intercept takes up any offset of the rewards, and σ² does not notice it."""
    rng = np.random.default_rng(3)
    z = np.column_stack([rng.normal(size=(2300, 2)), np.ones(2300)])
    r, w = z[:, :2] @ [1.0, -2.0] + rng.normal(size=2300), np.ones(2300)
    model = Ridge(intercept="unpenalised", **settings).settings(2, False, FOR_EVER)
    near, far = numbers_of(model, z, r, w), numbers_of(model, z, r + offset, w)
    np.testing.assert_allclose(head_of(far)["sigma2"], head_of(near)["sigma2"], rtol=1e-5)
    assert head_of(far)["lam"] == head_of(near)["lam"]
    shift = posterior(far, 3)[0] - posterior(near, 3)[0]
    shift[2] += head_of(far)["shift"] - head_of(near)["shift"]
    np.testing.assert_allclose(shift, [0, 0, offset], atol=1e-5)
    assert 0.9 < head_of(near)["sigma2"] < 1.1


@pytest.mark.parametrize("df", [1e4, 1e9])
def test_the_density_of_a_reward_keeps_its_digits_after_many_rows(df):
    """At its centre the log density of Student's t is −½ log 2π − 1/4ν + 1/24ν³ − …"""
    prior = {"variance": arm_numbers.NIG, "prior_shape": 0.5 * df, "prior_scale": 0.5 * df}
    settings = arm_numbers.settings_of([1.0], columns=1, penalised=1, **prior)
    work = np.empty(linear.scratch(settings))
    found = scoring.log_density(numbers_of(settings), np.zeros(1), 0.0, 1, work)
    np.testing.assert_allclose(found, stats.norm.logpdf(0.0) - 0.25 / df, atol=1e-13, rtol=0.0)


def test_an_arm_of_which_next_to_nothing_is_left_is_chosen_as_often_as_it_says():
    """Its degrees of freedom are 2a + n, and n fades: under a vague prior to any number above 0."""
    vague = {"variance": "nig", "prior": (1e-3, 1e-3), "half_life": 1.0}
    bandit = bb.LinTS(2, 1, intercept=False, seed=0, **vague)
    bandit.update(np.ones((4, 1)), [0, 0, 1, 1], [0.5, 0.1, 0.9, 1.2])
    for reward in np.linspace(1.0, 1.7, 8):
        bandit.update(np.ones((1, 1)), [1], [reward])
    n = 20_000
    p = bandit.probabilities(np.ones((1, 1)))[0, 0]
    chosen = np.mean(bandit.choose(np.ones((n, 1))).arm == 0)
    assert abs(chosen - p) < 4.0 * np.sqrt(p * (1.0 - p) / n)


def is_exact(numbers, z, r, w, lam, at, tolerance):
    """Means to this share of the posterior sd, or of what the data can say of them; variances and
    the loss to this share of themselves."""
    D = z.shape[1]
    mean, variance, loss = oracle.exact_ridge(z, r, w, lam, at)
    work = np.empty(stride(D))
    for point, m, v in zip(at, mean, variance, strict=True):
        ours, scale = moments.moments(numbers, point, D, work)
        sd = float(v) ** 0.5
        np.testing.assert_allclose(scale, sd, rtol=tolerance)
        size = max(sd * float(w @ (r * r)) ** 0.5, abs(float(m)))  # |z'θ| ≤ sd ‖b‖ in B⁻¹
        assert abs(float(Fraction(float(ours)) - m)) <= tolerance * size
    own = interpreted(arm_numbers.arm_of)(numbers, D).head.loss
    assert abs(float(Fraction(float(own)) - loss)) <= tolerance * float(loss)


@pytest.mark.parametrize("alike", [True, False])
@given(
    seed=seeds, power=st.integers(-150, 8), D=st.integers(1, 7), n=st.integers(1, 12),
    weights=st.integers(0, 12),
)  # fmt: skip
def test_rows_one_by_one(alike, seed, power, D, n, weights):
    """Contexts of 1e-150 to 1e8 against λ = 1, each column on its own scale or all alike, also
    fewer rows than columns; weights of 1e-12 to 1e12."""
    rng = np.random.default_rng(seed)
    scale = 10.0 ** (power if alike else rng.uniform(-150, 8, D))
    z, r = scale * rng.normal(size=(n, D)), rng.normal(size=n)
    w = 10.0 ** rng.uniform(-weights, weights, n)
    at = np.vstack([z[:2], scale * rng.normal(size=(1, D))])
    at = np.vstack([at, rng.normal(size=(1, D))]) if alike else at
    is_exact(numbers_of(settings_of(D, variance=1.0), z, r, w), z, r, w, 1, at, 1e-10)


@pytest.mark.parametrize("n", [3, 50])
@pytest.mark.parametrize("D", [1, 3, 4, 5, 8, 11])
def test_contexts_of_1e8(D, n):
    """Where X'WX has no digit of λ left, and with fewer rows than columns."""
    rng = np.random.default_rng(n)
    z, r, w = 1e8 * rng.normal(size=(n, D)), rng.normal(size=n), np.ones(n)
    at = np.vstack([z[:2], rng.normal(size=(2, D))])
    is_exact(numbers_of(settings_of(D, variance=1.0), z, r, w), z, r, w, 1, at, 1e-13)


@given(seed=seeds, D=st.integers(1, 9), n=st.integers(0, 30), first=st.integers(0, 9))
def test_two_roots_become_one_and_a_prior_is_taken_out(seed, D, n, first):
    rng = np.random.default_rng(seed)
    z, r, w = rng.normal(size=(n + 9, D)), rng.normal(size=n + 9), rng.uniform(0.1, 9.0, n + 9)
    settings = settings_of(D, variance=1.0, ridge=0.7)
    one, other = (
        numbers_of(settings, z[p], r[p], w[p]) for p in (slice(first), slice(first, None))
    )
    sums.merge(one, other, settings)
    at = rng.normal(size=(2, D))
    is_exact(one, z, r, w, 0.7, at, 1e-11)


@given(seed=seeds, D=st.integers(1, 9), n=st.integers(0, 30), step=st.floats(1e-3, 1e3))
def test_a_walk_adds_to_the_covariance(seed, D, n, step):
    rng = np.random.default_rng(seed)
    z, r, w = rng.normal(size=(n, D)), rng.normal(size=n), np.ones(n)
    numbers = numbers_of(settings_of(D, variance=1.0), z, r, w)
    arm = interpreted(arm_numbers.arm_of)(numbers, D)
    P = np.linalg.inv(z.T @ z + np.eye(D))
    root.walk(arm, step, np.empty(D * stride(D)))
    U = arm.U.reshape(D, -1)[:, :D]
    half = solve_triangular(U, np.eye(D), unit_diagonal=True) / np.sqrt(arm.d)
    np.testing.assert_allclose(half @ half.T, P + step * np.eye(D), rtol=1e-9, atol=1e-12)
    theta = root.coefficients(arm, np.empty(stride(D)))
    np.testing.assert_allclose(theta, P @ z.T @ r, rtol=1e-8, atol=1e-11)


@given(seed=seeds, D=st.integers(1, 9), n=st.integers(20, 60))
def test_sums_have_the_same_root(seed, D, n):
    rng = np.random.default_rng(seed)
    z, r = rng.normal(size=(n, D)), rng.normal(size=n)
    one, other = (
        numbers_of(settings_of(D, variance=1.0), z, r, np.ones(n)),
        np.zeros(arm_width(settings_of(D, variance=1.0))),
    )
    arm = interpreted(arm_numbers.arm_of)(other, D)
    arm.U.reshape(D, -1)[:, :D] = np.triu(z.T @ z + np.eye(D))
    arm.t[:] = z.T @ r
    loss = root.factor(arm, r @ r)
    wanted = interpreted(arm_numbers.arm_of)(one, D)
    np.testing.assert_allclose(arm.d, wanted.d, rtol=1e-10)
    np.testing.assert_allclose(arm.t, wanted.t, rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(arm.U, wanted.U, rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(loss, wanted.head.loss, rtol=1e-9)


def test_products_have_a_root_where_they_keep_their_digits():
    A = np.random.default_rng(0).normal(size=(50, 4))
    R = sums.root_of(A.T @ A)
    np.testing.assert_allclose(np.abs(R), np.abs(np.linalg.qr(A, mode="r")), rtol=1e-9)
    A[:, 1] = A[:, 0] + 1e-4 * A[:, 1]
    assert sums.root_of(A.T @ A) is None
    assert sums.root_of(np.zeros((2, 2))) is None
