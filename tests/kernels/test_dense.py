"""Small dense linear algebra against NumPy, at every remainder of the unrolled loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from bayesbandit.kernels.algebra import dense

sizes = st.integers(1, 23)
seeds = st.integers(0, 2**32 - 1)


def positive_definite(rng, D):
    root = rng.normal(size=(D + 3, D))
    return root.T @ root + 0.1 * np.eye(D)


def upper(A):
    """What `factor` leaves in the upper triangle."""
    U = A.copy()
    dense.factor(U)
    return np.triu(U)


@given(sizes, seeds)
def test_vectors(D, seed):
    rng = np.random.default_rng(seed)
    a, b, c = rng.normal(size=D), rng.normal(size=D), rng.normal()
    np.testing.assert_allclose(dense.dot(a, b), a @ b, rtol=1e-12, atol=1e-13)
    v = a.copy()
    dense.add_scaled(v, c, b)
    np.testing.assert_allclose(v, a + c * b, rtol=1e-15, atol=1e-15)


@given(sizes, seeds)
def test_matrices(D, seed):
    rng = np.random.default_rng(seed)
    A, z = positive_definite(rng, D), rng.normal(size=D)
    for M in (D, D + 5):  # stored rows may be longer than the matrix is wide
        stored, v = np.zeros((D, M)), np.full(M, np.nan)
        stored[:, :D] = A
        dense.symmetric_times(stored.ravel(), z, v)
        np.testing.assert_allclose(v[:D], A @ z, rtol=1e-12, atol=1e-12)
        assert (v[D:] == 0).all()
        row, column = np.indices((D, M)) // 4
        stored[column > row] = np.nan
        dense.half_times(stored.ravel(), z, v)
        np.testing.assert_allclose(v[:D] @ z, z @ A @ z, rtol=1e-12)
        stored[:, :D] = A
        dense.add_outer(stored.ravel(), M, -0.7, z)
        np.testing.assert_allclose(stored[:, :D], A - 0.7 * np.outer(z, z), rtol=1e-14, atol=1e-14)


@given(sizes, seeds)
def test_factor_solve_invert(D, seed):
    rng = np.random.default_rng(seed)
    A, b = positive_definite(rng, D), rng.normal(size=D)
    U = upper(A)
    np.testing.assert_allclose(U, np.linalg.cholesky(A).T, rtol=1e-10, atol=1e-12)
    theta, P = np.full(D, np.nan), np.full((D, D), np.nan)
    dense.solve(U, b, theta)
    np.testing.assert_allclose(theta, np.linalg.solve(A, b), rtol=1e-8, atol=1e-10)
    dense.invert(U, P)
    np.testing.assert_allclose(P, np.linalg.inv(A), rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(P, P.T)


def test_solve_and_invert_read_the_upper_triangle_only(rng):
    A = positive_definite(rng, 6)
    U = A.copy()
    dense.factor(U)
    U[np.tril_indices(6, -1)] = np.nan
    theta, P = np.empty(6), np.empty((6, 6))
    dense.solve(U, np.ones(6), theta)
    dense.invert(U, P)
    np.testing.assert_allclose(A @ theta, np.ones(6), atol=1e-10)
    np.testing.assert_allclose(A @ P, np.eye(6), atol=1e-10)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e8])
def test_copied_columns_keep_a_finite_precision(scale):
    """Two equal columns and a λ that rounding swallows: still a factor, still a finite solution."""
    x = np.repeat(np.arange(1.0, 6.0)[:, None], 3, axis=1) * scale
    A = x.T @ x
    U = upper(A)
    theta, P = np.empty(3), np.empty((3, 3))
    dense.solve(U, x.T @ np.arange(1.0, 6.0), theta)
    dense.invert(U, P)
    assert np.isfinite(theta).all()
    assert np.isfinite(P).all()
    np.testing.assert_allclose(x @ theta, np.arange(1.0, 6.0), rtol=1e-6)


def test_a_zero_matrix_has_a_factor():
    assert np.isfinite(upper(np.zeros((2, 2)))).all()


@njit
def inlined(a, b, A, v):
    dense.symmetric_times(A, a, v)
    return dense.dot(v, b) + dense.dot(a, b)


@pytest.mark.slow
@given(sizes, seeds)
def test_same_bits_wherever_compiled(D, seed):
    rng = np.random.default_rng(seed)
    a, b, A = rng.normal(size=D), rng.normal(size=D), positive_definite(rng, D)
    A, v = A.ravel(), np.empty(D)
    dense.symmetric_times(A, a, v)
    assert inlined(a, b, A, np.empty(D)) == dense.dot(v, b) + dense.dot(a, b)
