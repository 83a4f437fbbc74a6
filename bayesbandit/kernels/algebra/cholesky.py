"""Cholesky factorisation for loops that factor one small matrix after another.

At d = 20 to 200 a call of LAPACK's dpotrf spends much of its time on packing and on narrow panels.
Here everything is one register tile of 4 rows by 8 columns (`tile.py`), the same for every
size, cached by numba like any other kernel, and with the same bits whatever threads BLAS may use.

Matrices are stored row after row in the shape `room(D, extra)`: rows up to a multiple of 4, columns
up to a multiple of 8. Columns from `padded(D)` on hold right-hand sides, which the factorisation
carries along: from [A b] it leaves [U U'⁻¹b], A = U'U. What is below the diagonal is never read.
"""

import math

from bayesbandit.kernels.algebra.dense import LOST_PIVOT, add_scaled, dot
from bayesbandit.kernels.algebra.dots import four_dots
from bayesbandit.kernels.algebra.tile import TILE_LANES, TILE_ROWS, subtract_tile
from bayesbandit.runtime.compiling import njit

PANEL_ROWS = 64  # rows whose part is subtracted at once: what the first caches hold

compiled = njit(cache=True, error_model="numpy", nogil=True)


def padded(D: int) -> int:
    """Return how many rows a matrix of D rows takes; its right-hand sides begin there."""
    return -(-D // TILE_ROWS) * TILE_ROWS


def room(D: int, extra: int = 1) -> tuple[int, int]:
    """Return the shape that a D × D matrix with `extra` right-hand sides takes."""
    return padded(D), -(-(padded(D) + extra) // TILE_LANES) * TILE_LANES


@compiled
def finish_rows(W, k, floor):
    """Finish rows k … k + 3 of U, from which all rows above have been subtracted."""
    start = k - k % TILE_LANES
    # within the four rows, one after another: u_ri ← (a_ri − Σ_q u_qr u_qi) / u_rr
    for r in range(k, k + TILE_ROWS):
        row = W[r, start:]
        for q in range(k, r):
            add_scaled(row, -W[q, r], W[q, start:])
        # a lost pivot: its row becomes 0, and its direction keeps a tiny precision
        lifted = max(floor[r], 1e-300)
        pivot = math.sqrt(max(W[r, r], lifted))
        scale = 1.0 / pivot if W[r, r] > lifted else 0.0
        for i in range(row.size):
            row[i] *= scale
        # rounded as the rest of its row is
        W[r, r] = pivot * pivot * (1.0 / pivot)


@compiled
def factor(A, diagonal, W):
    """Fill W with [U U'⁻¹B], where U'U = A + diag(diagonal), from the upper triangle of [A B].

    A may be W. `diagonal` (rows,) must be 1 where the rows are padding. A pivot that rounding has
    brought to zero is lifted as by `root.factor`, so that copied columns keep a finite, tiny
    precision.
    """
    D, M = W.shape
    floor = diagonal.copy()
    for j in range(D):
        # rounding of a sum of D products is a share D ε of its largest terms, which A_jj bounds
        floor[j] = LOST_PIVOT * D * (A[j, j] + diagonal[j])
    for k in range(0, D, TILE_ROWS):
        # rows k … k + 3 of A and B, less what all rows above have of them
        for i in range(k - k % TILE_LANES, M, TILE_LANES):
            subtract_tile(W, A, W, W, k, i, 0, k)
        for r in range(k, k + TILE_ROWS):
            # 1 where rows are padding, 0 in A: there U has the rows of I
            W[r, r] += diagonal[r]
        finish_rows(W, k, floor)


@compiled
def subtract_gram(base, left, right, W):
    """Fill the upper triangle of W with base − left'right, for left and right (p, as base)."""
    D, M = W.shape
    # a panel of rows at a time, so that it stays in the cache while all tiles use it
    for start in range(0, left.shape[0], PANEL_ROWS):
        stop = min(start + PANEL_ROWS, left.shape[0])
        for k in range(0, D, TILE_ROWS):
            for i in range(k - k % TILE_LANES, M, TILE_LANES):
                subtract_tile(W, base, left, right, k, i, start, stop)
        base = W


@compiled
def solve_upper(W, v, D):
    """Solve in place: v ← U⁻¹v for the first D numbers of v (columns,); the others are 0."""
    P, M = W.shape
    for k in range(P - TILE_ROWS, -1, -TILE_ROWS):
        b0 = v[k]
        b1 = v[k + 1]
        b2 = v[k + 2]
        b3 = v[k + 3]
        v[k : k + TILE_ROWS] = 0.0
        # u_jj v_j = b_j − Σ_{i>j} u_ji v_i, from below: what has been solved, for four rows at
        # once, and then a triangle of 4 × 4
        s0, s1, s2, s3 = four_dots(W, v, k * M, M, (k + TILE_ROWS) // TILE_LANES * TILE_LANES, M)
        U = W[k : k + TILE_ROWS, k : k + TILE_ROWS]
        v3 = (b3 - s3) / U[3, 3]
        v2 = ((b2 - s2) - U[2, 3] * v3) / U[2, 2]
        v1 = (((b1 - s1) - U[1, 3] * v3) - U[1, 2] * v2) / U[1, 1]
        v[k] = ((((b0 - s0) - U[0, 3] * v3) - U[0, 2] * v2) - U[0, 1] * v1) / U[0, 0]
        v[k + 1] = v1
        v[k + 2] = v2
        v[k + 3] = v3
    # they are 0 already, unless U has infinities or NaN
    v[D:] = 0.0


@compiled
def multiply(A, v, out):
    """Fill out, as far as A has rows, with the products Av, for A (rows, columns)."""
    n, M = A.shape
    blocks = n - n % TILE_ROWS
    for i in range(0, blocks, TILE_ROWS):
        out[i], out[i + 1], out[i + 2], out[i + 3] = four_dots(A, v, i * M, M, 0, M)
    for i in range(blocks, n):
        out[i] = dot(A[i], v)
