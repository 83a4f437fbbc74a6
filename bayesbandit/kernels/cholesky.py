"""Cholesky factorisation for loops that factor one small matrix after another.

At d = 20 to 200 a call of LAPACK's dpotrf spends much of its time on packing and on narrow panels.
Here everything is one register tile of 4 rows by 8 columns, the same for every size, cached by
numba like any other kernel, and with the same bits whatever threads BLAS may use.

Matrices are stored row after row in the shape `room(D, extra)`: rows up to a multiple of 4, columns
up to a multiple of 8. Columns from `padded(D)` on hold right-hand sides, which the factorisation
carries along: from [A b] it leaves [U U'⁻¹b], A = U'U. What is below the diagonal is never read.
"""

import math
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

ROWS, LANES = 4, 8  # one tile: 4 registers of 8 doubles (AVX-512), or 8 of 4 (AVX2)
PANEL = 64  # rows whose part in a tile is subtracted at once: what the first caches hold

kernel = njit(cache=True, error_model="numpy", nogil=True)


def padded(D: int) -> int:
    """Rows that a matrix of D rows takes; where its right-hand sides begin."""
    return -(-D // ROWS) * ROWS


def room(D: int, extra: int = 1) -> tuple[int, int]:
    """Shape that a D × D matrix with `extra` right-hand sides takes."""
    return padded(D), -(-(padded(D) + extra) // LANES) * LANES


def vectors(builder, module):
    """Load, store, broadcast and fused multiply-add of LANES doubles, as IR."""
    double, index = ir.DoubleType(), ir.IntType(32)
    vector = ir.VectorType(double, LANES)
    blank = ir.Constant(vector, ir.Undefined)
    first = ir.Constant(ir.VectorType(index, LANES), [0] * LANES)
    fma = cgutils.get_or_insert_function(
        module, ir.FunctionType(vector, [vector] * 3), f"llvm.fmuladd.v{LANES}f64"
    )

    def load(at):
        return builder.load(builder.bitcast(at, vector.as_pointer()), align=8)

    def store(value, at):
        builder.store(value, builder.bitcast(at, vector.as_pointer()), align=8)

    def spread(number):
        one = builder.insert_element(blank, number, ir.Constant(index, 0))
        return builder.shuffle_vector(one, blank, first)

    def multiply_add(a, b, c):
        return builder.call(fma, [a, b, c])

    return load, store, spread, multiply_add


def tile(typingctx, out, base, left, right, k, i, start, stop):
    """out[k:k+4, i:i+8] = base[k:k+4, i:i+8] − Σ_p left[p, k:k+4]' right[p, i:i+8].

    p runs over start … stop − 1; the four matrices are contiguous and may be the same. Compilers do
    not keep such a tile in registers by themselves, so it is written in LLVM's own vectors, which
    every processor has in some width.
    """

    def codegen(context, builder, signature, args):
        k, i, start, stop = args[4:]
        load, store, spread, multiply_add = vectors(builder, builder.module)
        word = k.type
        views = [
            context.make_array(kind)(context, builder, array)
            for kind, array in zip(signature.args[:4], args[:4], strict=True)
        ]
        out, base, left, right = (
            (view.data, cgutils.unpack_tuple(builder, view.shape, 2)[1]) for view in views
        )

        def at(matrix, row, column):
            return builder.gep(matrix[0], [builder.add(builder.mul(row, matrix[1]), column)])

        rows = [builder.add(k, ir.Constant(word, r)) for r in range(ROWS)]
        sums = [cgutils.alloca_once_value(builder, load(at(base, row, i))) for row in rows]
        with cgutils.for_range_slice(builder, start, stop, ir.Constant(word, 1)) as (p, _):
            values = load(at(right, p, i))
            for row, total in zip(rows, sums, strict=True):
                minus = builder.fneg(builder.load(at(left, p, row)))
                builder.store(multiply_add(spread(minus), values, builder.load(total)), total)
        for row, total in zip(rows, sums, strict=True):
            store(builder.load(total), at(out, row, i))
        return context.get_dummy_value()

    matrices = (out, base, left, right)
    if not all(isinstance(a, types.Array) and a.layout == "C" and a.ndim == 2 for a in matrices):
        return None
    return types.void(*matrices, *[types.intp] * 4), codegen


subtract_tile: Any = intrinsic(tile)


@kernel
def finish_rows(W, k, floor):
    """Rows k … k + 3 of U, from which all rows above have been subtracted."""
    start = k - k % LANES
    for r in range(k, k + ROWS):
        row = W[r, start:]
        for q in range(k, r):
            c, above = W[q, r], W[q, start:]
            for i in range(row.size):
                row[i] -= c * above[i]
        pivot = math.sqrt(max(W[r, r], floor[r], 1e-300))
        W[r, r] = pivot * pivot
        scale = 1.0 / pivot
        for i in range(row.size):
            row[i] *= scale


@kernel
def factor(A, shift, W):
    """W = [U U'⁻¹B] with U'U = A + diag(shift), from the upper triangle of [A B]; A may be W.

    `shift` (rows,) must be 1 where the rows are padding. A pivot that rounding has brought to zero
    is lifted to D·ε of its diagonal entry, so that copied columns keep a finite, tiny precision.
    """
    D, M = W.shape
    floor = shift.copy()
    for j in range(D):
        floor[j] = 2.3e-16 * D * (A[j, j] + shift[j])
    base = A
    for start in range(0, D, PANEL):
        stop = min(start + PANEL, D)
        for k in range(start, D, ROWS):
            for i in range(k - k % LANES, M, LANES):
                subtract_tile(W, base, W, W, k, i, start, min(k, stop))
            if start == 0:
                for r in range(k, k + ROWS):
                    W[r, r] += shift[r]
            if k < stop:
                finish_rows(W, k, floor)
        base = W


@kernel
def add_gram(base, left, right, W):
    """W = base − left'right in its upper triangle, for left and right (p, as base)."""
    D, M = W.shape
    for start in range(0, left.shape[0], PANEL):
        stop = min(start + PANEL, left.shape[0])
        for k in range(0, D, ROWS):
            for i in range(k - k % LANES, M, LANES):
                subtract_tile(W, base, left, right, k, i, start, stop)
        base = W


@kernel
def solve_upper(W, v):
    """v ← U⁻¹v, in 8 running sums."""
    D = v.size
    for j in range(D - 1, -1, -1):
        u = W[j]
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
        first = j + 1
        whole = first + (D - first) // 8 * 8
        for i in range(first, whole, 8):
            s0 += u[i] * v[i]
            s1 += u[i + 1] * v[i + 1]
            s2 += u[i + 2] * v[i + 2]
            s3 += u[i + 3] * v[i + 3]
            s4 += u[i + 4] * v[i + 4]
            s5 += u[i + 5] * v[i + 5]
            s6 += u[i + 6] * v[i + 6]
            s7 += u[i + 7] * v[i + 7]
        rest = v[j]
        for i in range(whole, D):
            rest -= u[i] * v[i]
        v[j] = (rest - (((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7)))) / u[j]


@kernel
def solve_lower(W, v):
    """v ← U'⁻¹v."""
    D = v.size
    for j in range(D):
        u = W[j]
        v[j] /= u[j]
        c = v[j]
        for i in range(j + 1, D):
            v[i] -= c * u[i]
