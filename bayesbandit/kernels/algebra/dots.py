"""Four inner products at once: what a triangular system is solved by from below.

Compilers take no sum of many terms side by side by themselves, as that changes its order. So the
running sums are written in LLVM's own vectors, in one order wherever they are computed
(`tile.py`).
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from bayesbandit.kernels.algebra.tile import TILE_LANES, TILE_ROWS, vectors


def dots(typingctx, U, v, row, stride, start, stop):
    """Return Σ_j U[row + i stride + j] v[j] over start ≤ j < stop, i = 0, 1, 2, 3.

    U and v are contiguous; the entries of a matrix U are counted row by row. stop − start is a
    multiple of 8.
    """

    def codegen(context, builder, signature, args):
        row, stride, start, stop = args[2:]
        load, _, _, multiply_add = vectors(builder, builder.module)
        U, v = (
            context.make_array(kind)(context, builder, array).data
            for kind, array in zip(signature.args[:2], args[:2], strict=True)
        )
        # a vector of 8 running sums for each of the four rows
        zero = ir.Constant(ir.VectorType(ir.DoubleType(), TILE_LANES), [0.0] * TILE_LANES)
        sums = [cgutils.alloca_once_value(builder, zero) for _ in range(TILE_ROWS)]
        begins = [row]
        for _ in range(TILE_ROWS - 1):
            begins.append(builder.add(begins[-1], stride))
        step = ir.Constant(row.type, TILE_LANES)
        with cgutils.for_range_slice(builder, start, stop, step) as (j, _):
            # v is loaded once for all four
            values = load(builder.gep(v, [j]))
            for begin, total in zip(begins, sums, strict=True):
                terms = load(builder.gep(U, [builder.add(begin, j)]))
                builder.store(multiply_add(terms, values, builder.load(total)), total)
        totals = [total_of(builder, total) for total in sums]
        return context.make_tuple(builder, signature.return_type, totals)

    if not all(isinstance(a, types.Array) and a.layout == "C" for a in (U, v)):
        return None
    return types.UniTuple(types.float64, TILE_ROWS)(U, v, *[types.intp] * 4), codegen


def total_of(builder, at):
    """Return the sum of a vector: its halves, added until one number is left."""
    # 8 running sums become 4, 2 and 1: the same order, and so the same bits, on all processors
    total = builder.load(at)
    size = TILE_LANES
    while size > 1:
        size //= 2
        low, high = (
            ir.Constant(ir.VectorType(ir.IntType(32), size), list(range(i, i + size)))
            for i in (0, size)
        )
        blank = ir.Constant(total.type, ir.Undefined)
        total = builder.fadd(
            builder.shuffle_vector(total, blank, low), builder.shuffle_vector(total, blank, high)
        )
    return builder.extract_element(total, ir.Constant(ir.IntType(32), 0))


four_dots: Any = intrinsic(dots)
