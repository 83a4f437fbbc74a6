"""Small systems side by side, against NumPy's."""

import numpy as np
import pytest

from bayesbandit.kernels.algebra.lanes import factor, solve


def lanes(A):
    """Matrices or vectors (L, …) with the lanes last."""
    return np.moveaxis(A, 0, -1).copy()


@pytest.mark.parametrize(("D", "L"), [(1, 1), (2, 3), (5, 16), (9, 8), (30, 7)])
def test_every_lane_is_solved_as_by_itself(D, L, rng):
    root = rng.normal(size=(L, D, D + 2)) * 10.0 ** rng.uniform(-3, 3, size=(L, 1, 1))
    A, b = root @ root.transpose(0, 2, 1), rng.normal(size=(L, D))
    U, x = lanes(A), lanes(b)
    factor(U, np.empty((D, L)))
    solve(U, x)
    expected = np.linalg.solve(A, b[..., None])[..., 0]
    np.testing.assert_allclose(x.T, expected, rtol=1e-6)


def test_a_singular_lane_stays_finite_and_troubles_no_other(rng):
    A, b = np.stack([np.ones((3, 3)), np.eye(3)]), rng.normal(size=(2, 3))
    U, x = lanes(A), lanes(b)
    factor(U, np.empty((3, 2)))
    solve(U, x)
    assert np.isfinite(x).all()
    np.testing.assert_array_equal(x.T[1], b[1])
