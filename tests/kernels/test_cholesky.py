"""The tiled factorisation against NumPy, at every remainder of its tiles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesbandit.kernels.algebra import cholesky

seeds = st.integers(0, 2**32 - 1)
sizes = st.one_of(st.integers(1, 23), st.sampled_from([63, 64, 65, 68, 129, 150]))


def system(rng, D, extra):
    """[A B] in its room, nothing below the diagonal, a shift that is 1 where rows are padding."""
    root = rng.normal(size=(D + 3, D))
    A, B = root.T @ root, rng.normal(size=(D, extra))
    shift = np.ones(cholesky.padded(D))
    shift[:D] = rng.random(D)
    room = np.zeros(cholesky.room(D, extra))
    room[:D, :D] = np.triu(A)
    room[:D, len(room) : len(room) + extra] = B
    return room, shift, A + np.diag(shift[:D]), B


@given(sizes, st.integers(0, 9), seeds)
def test_factor_carries_right_hand_sides_along(D, extra, seed):
    room, shift, A, B = system(np.random.default_rng(seed), D, extra)
    W = np.full(room.shape, 7.0)
    cholesky.factor(room, shift, W)
    U = np.linalg.cholesky(A).T
    np.testing.assert_allclose(np.triu(W[:D, :D]), U, rtol=1e-8, atol=1e-10)
    P = len(room)
    expected = np.linalg.solve(U.T, B)
    np.testing.assert_allclose(W[:D, P : P + extra], expected, rtol=1e-7, atol=1e-8)
    np.testing.assert_array_equal(W[D:, P:], 0.0)
    cholesky.factor(room, shift, room)  # in place
    np.testing.assert_array_equal(np.triu(room[:, :P]), np.triu(W[:, :P]))


@given(sizes, seeds)
def test_a_triangle_is_solved(D, seed):
    rng = np.random.default_rng(seed)
    room, shift, A, _ = system(rng, D, 1)
    cholesky.factor(room, shift, room)
    U, b = np.linalg.cholesky(A).T, rng.normal(size=D)
    upper = np.zeros(room.shape[1])
    upper[:D] = b
    cholesky.solve_upper(room, upper, D)
    np.testing.assert_allclose(U @ upper[:D], b, rtol=1e-7, atol=1e-8)
    np.testing.assert_array_equal(upper[D:], 0.0)


@given(st.integers(0, 23), sizes, seeds)
def test_a_product(n, D, seed):
    rng = np.random.default_rng(seed)
    M = cholesky.room(D)[1]
    A, v = rng.normal(size=(n, M)), rng.normal(size=M)
    out = np.full(n + 1, 7.0)
    cholesky.multiply(A, v, out)
    np.testing.assert_allclose(out[:n], A @ v, rtol=1e-10, atol=1e-11)
    assert out[n] == 7.0


@given(sizes, st.integers(1, 140), seeds)
def test_gram(D, depth, seed):
    rng = np.random.default_rng(seed)
    P, M = cholesky.room(D, 2)
    base, W = rng.normal(size=(P, M)), np.empty((P, M))
    left, right = rng.normal(size=(depth, P)), rng.normal(size=(depth, M))
    cholesky.subtract_gram(base, left, right, W)
    expected = base - left.T @ right
    rows, columns = np.triu_indices(P, 0, M)
    np.testing.assert_allclose(W[rows, columns], expected[rows, columns], rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e8])
def test_copied_columns_keep_a_finite_precision(scale):
    x = np.repeat(np.arange(1.0, 6.0)[:, None], 3, axis=1) * scale
    room, shift = np.zeros(cholesky.room(3)), np.array([0.0, 0.0, 0.0, 1.0])
    room[:3, :3], room[:3, 4] = x.T @ x, x.T @ np.arange(1.0, 6.0)
    cholesky.factor(room, shift, room)
    theta = np.zeros(room.shape[1])
    theta[:3] = room[:3, 4]
    cholesky.solve_upper(room, theta, 3)
    np.testing.assert_allclose(x @ theta[:3], np.arange(1.0, 6.0), rtol=1e-6)
