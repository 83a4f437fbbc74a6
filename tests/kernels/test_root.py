"""The information root of a regression against rational arithmetic, whatever the scales."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import solve_triangular

from bayesbandit.beliefs import sums
from bayesbandit.beliefs.linear import Ridge
from bayesbandit.kernels import root
from bayesbandit.kernels.arm import arm_of, arm_width, stride
from bayesbandit.kernels.moments import moments
from bayesbandit.runtime.compiling import interpreted
from tests.kernels.test_linear import arm_of as learned
from tests.oracle import exact_ridge

seeds = st.integers(0, 2**32 - 1)


def settings_of(D, **model):
    return Ridge(**{"variance": 1.0, "intercept": False} | model).settings(D, False)


def is_exact(numbers, z, r, w, lam, at, tolerance):
    """Means to this share of the posterior sd, or of what the data can say of them; variances and
    the loss to this share of themselves."""
    D = z.shape[1]
    mean, variance, loss = exact_ridge(z, r, w, lam, at)
    work = np.empty(stride(D))
    for point, m, v in zip(at, mean, variance, strict=True):
        ours, scale = moments(numbers, point, D, work)
        sd = float(v) ** 0.5
        np.testing.assert_allclose(scale, sd, rtol=tolerance)
        size = max(sd * float(w @ (r * r)) ** 0.5, abs(float(m)))  # |z'θ| ≤ sd ‖b‖ in B⁻¹
        assert abs(float(Fraction(float(ours)) - m)) <= tolerance * size
    own = interpreted(arm_of)(numbers, D).head.loss
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
    is_exact(learned(settings_of(D), z, r, w), z, r, w, 1, at, 1e-10)


@pytest.mark.parametrize("n", [3, 50])
@pytest.mark.parametrize("D", [1, 3, 4, 5, 8, 11])
def test_contexts_of_1e8(D, n):
    """Where X'WX has no digit of λ left, and with fewer rows than columns."""
    rng = np.random.default_rng(n)
    z, r, w = 1e8 * rng.normal(size=(n, D)), rng.normal(size=n), np.ones(n)
    at = np.vstack([z[:2], rng.normal(size=(2, D))])
    is_exact(learned(settings_of(D), z, r, w), z, r, w, 1, at, 1e-13)


@given(seed=seeds, D=st.integers(1, 9), n=st.integers(0, 30), first=st.integers(0, 9))
def test_two_roots_become_one_and_a_prior_is_taken_out(seed, D, n, first):
    rng = np.random.default_rng(seed)
    z, r, w = rng.normal(size=(n + 9, D)), rng.normal(size=n + 9), rng.uniform(0.1, 9.0, n + 9)
    settings = settings_of(D, ridge=0.7)
    one, other = (learned(settings, z[p], r[p], w[p]) for p in (slice(first), slice(first, None)))
    sums.merge(one, other, settings)
    at = rng.normal(size=(2, D))
    is_exact(one, z, r, w, 0.7, at, 1e-11)


@given(seed=seeds, D=st.integers(1, 9), n=st.integers(0, 30), step=st.floats(1e-3, 1e3))
def test_a_walk_adds_to_the_covariance(seed, D, n, step):
    rng = np.random.default_rng(seed)
    z, r, w = rng.normal(size=(n, D)), rng.normal(size=n), np.ones(n)
    numbers = learned(settings_of(D), z, r, w)
    arm = interpreted(arm_of)(numbers, D)
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
    one, other = learned(settings_of(D), z, r, np.ones(n)), np.zeros(arm_width(settings_of(D)))
    arm = interpreted(arm_of)(other, D)
    arm.U.reshape(D, -1)[:, :D] = np.triu(z.T @ z + np.eye(D))
    arm.t[:] = z.T @ r
    loss = root.factor(arm, r @ r)
    wanted = interpreted(arm_of)(one, D)
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
