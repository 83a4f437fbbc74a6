"""A tile and four inner products against NumPy."""

import numpy as np
import pytest
from numba import njit

from bayesbandit.kernels.algebra import dots, tile


@njit
def vector_tile(out, base, left, right, k, i, start, stop):
    tile.subtract_tile(out, base, left, right, k, i, start, stop)


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (3, 20), (0, 64)])
@pytest.mark.parametrize(("k", "i"), [(0, 0), (4, 8)])
def test_a_tile(k, i, start, stop, rng):
    base, left, right = (rng.normal(size=shape) for shape in ((8, 16), (64, 8), (64, 16)))
    out = np.full((8, 16), 7.0)
    vector_tile(out, base, left, right, k, i, start, stop)
    expected = np.full((8, 16), 7.0)
    here = np.s_[k : k + tile.TILE_ROWS, i : i + tile.TILE_LANES]
    expected[here] = (base - left[start:stop].T @ right[start:stop])[here]
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-13)


@njit
def vector_dots(U, v, row, stride, start, stop):
    return dots.four_dots(U, v, row, stride, start, stop)


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (8, 16), (0, 40)])
def test_four_inner_products(start, stop, rng):
    U, v = rng.normal(size=(6, 40)), rng.normal(size=40)
    wanted = U[1:5, start:stop] @ v[start:stop]
    found = vector_dots(U.ravel(), v, 40, 40, start, stop)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)
