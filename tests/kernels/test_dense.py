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
        stored = np.zeros((D, M))
        stored[:, :D] = A
        dense.add_outer(stored.ravel(), M, -0.7, z)
        np.testing.assert_allclose(stored[:, :D], A - 0.7 * np.outer(z, z), rtol=1e-14, atol=1e-14)


@given(sizes, seeds)
def test_factor_and_solve(D, seed):
    rng = np.random.default_rng(seed)
    A, b = positive_definite(rng, D), rng.normal(size=D)
    U = upper(A)
    np.testing.assert_allclose(U, np.linalg.cholesky(A).T, rtol=1e-10, atol=1e-12)
    theta = np.full(D, np.nan)
    dense.solve(U, b, theta)
    np.testing.assert_allclose(theta, np.linalg.solve(A, b), rtol=1e-8, atol=1e-10)


def test_solve_reads_the_upper_triangle_only(rng):
    A = positive_definite(rng, 6)
    U = A.copy()
    dense.factor(U)
    U[np.tril_indices(6, -1)] = np.nan
    theta = np.empty(6)
    dense.solve(U, np.ones(6), theta)
    np.testing.assert_allclose(A @ theta, np.ones(6), atol=1e-10)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e8])
def test_copied_columns_keep_a_finite_precision(scale):
    """Two equal columns and a λ that rounding swallows: still a factor, still a finite solution."""
    x = np.repeat(np.arange(1.0, 6.0)[:, None], 3, axis=1) * scale
    A = x.T @ x
    U = upper(A)
    theta = np.empty(3)
    dense.solve(U, x.T @ np.arange(1.0, 6.0), theta)
    assert np.isfinite(theta).all()
    np.testing.assert_allclose(x @ theta, np.arange(1.0, 6.0), rtol=1e-6)


def test_a_zero_matrix_has_a_factor():
    assert np.isfinite(upper(np.zeros((2, 2)))).all()


@njit
def inlined(a, b):
    return dense.dot(a, a) + dense.dot(a, b)


@pytest.mark.slow
@given(sizes, seeds)
def test_same_bits_wherever_compiled(D, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=D), rng.normal(size=D)
    assert inlined(a, b) == dense.dot(a, a) + dense.dot(a, b)
