"""Small dense linear algebra against NumPy, at every remainder of the unrolled loops."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bayesbandit.kernels.algebra import dense

sizes = st.integers(1, 23)
seeds = st.integers(0, 2**32 - 1)


def positive_definite(rng, D):
    root = rng.normal(size=(D + 3, D))
    return root.T @ root + 0.1 * np.eye(D)


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
