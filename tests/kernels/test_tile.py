"""LLVM's vectors and the plain loop in their place: both subtract the same tile, to rounding."""

import os
import subprocess
import sys

import numpy as np
import pytest
from numba import njit

from bayesbandit.kernels.algebra import dots, tile

SYSTEM = """
import numpy as np

def system(D):
    rng = np.random.default_rng(D)
    P, M = cholesky.room(D, 2)
    root = rng.normal(size=(D + 3, D))
    room, shift = np.zeros((P, M)), np.ones(P)
    room[:D, :D], room[:D, P:P + 2], shift[:D] = root.T @ root, rng.normal(size=(D, 2)), 0.5
    cholesky.factor(room, shift, room)
    return np.triu(room)
"""
WITHOUT_VECTORS = """
import sys
from llvmlite import ir

class Untaken(ir.VectorType):
    def __str__(self):
        return "<no such type>"

import numba
taken, ir.VectorType = ir.VectorType, Untaken
from bayesbandit.kernels.algebra import cholesky, tile
ir.VectorType = taken
assert tile.subtract_tile is tile.plain_tile
"""


@njit
def vector_tile(out, base, left, right, k, i, start, stop):
    tile.subtract_tile(out, base, left, right, k, i, start, stop)


def test_this_llvmlite_has_vectors():
    assert tile.has_vectors()
    assert tile.subtract_tile is not tile.plain_tile


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (0, 1), (3, 20), (0, 64)])
@pytest.mark.parametrize(("k", "i"), [(0, 0), (4, 8)])
def test_both_agree_to_rounding(k, i, start, stop):
    rng = np.random.default_rng(stop)
    base, left, right = (
        rng.normal(size=(8, 16)),
        rng.normal(size=(64, 8)),
        rng.normal(size=(64, 16)),
    )
    ours, plain = np.full((2, 8, 16), 7.0)
    vector_tile(ours, base, left, right, k, i, start, stop)
    tile.plain_tile(plain, base, left, right, k, i, start, stop)
    here, size = np.s_[k : k + tile.ROWS, i : i + tile.LANES], stop - start + 1
    expected = base - left[start:stop].T @ right[start:stop]
    scale = np.abs(base) + np.abs(left[start:stop]).T @ np.abs(right[start:stop])
    for out in (ours, plain):
        rest = np.ones(out.shape, dtype=bool)
        rest[here] = False
        assert (out[rest] == 7.0).all()
        assert (np.abs(out - expected)[here] <= size * np.finfo(float).eps * scale[here]).all()


@pytest.mark.slow
def test_a_factorisation_without_vectors(tmp_path):
    """In a process whose llvmlite makes vectors that LLVM does not take."""
    script = WITHOUT_VECTORS + SYSTEM + "np.save(sys.argv[1], system(37))"
    path = tmp_path / "factor.npy"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", script, str(path)], check=True, env=environment)
    from bayesbandit.kernels.algebra import cholesky

    names = {"cholesky": cholesky}
    exec(SYSTEM, names)
    np.testing.assert_allclose(np.load(path), names["system"](37), rtol=1e-10, atol=1e-12)


@njit
def vector_dots(U, v, row, stride, start, stop):
    return dots.four_dots(U, v, row, stride, start, stop)


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (8, 16), (0, 40)])
def test_both_take_the_same_four_inner_products_to_rounding(start, stop):
    rng = np.random.default_rng(stop)
    U, v = rng.normal(size=(6, 40)), rng.normal(size=40)
    assert dots.four_dots is not dots.plain_dots
    at = U.ravel(), v, 40, 40, start, stop
    wanted = U[1:5, start:stop] @ v[start:stop]
    for take in (vector_dots, dots.plain_dots):
        np.testing.assert_allclose(take(*at), wanted, rtol=1e-12, atol=1e-13)
