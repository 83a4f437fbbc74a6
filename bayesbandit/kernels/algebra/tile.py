"""out = base − left'right on one tile of 4 rows by 8 columns: what a factorisation is made of.

Compilers do not keep such a tile in registers by themselves, so it is written in LLVM's own
vectors, which every processor has in some width. LAPACK takes 10 times as long at D = 50 to 100,
and plain loops 3 to 6 times.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

TILE_ROWS, TILE_LANES = 4, 8  # one tile: 4 registers of 8 doubles (AVX-512), or 8 of 4 (AVX2)


def vectors(builder, module):
    """Load, store, broadcast and fused multiply-add of LANES doubles, as IR."""
    double = ir.DoubleType()
    index = ir.IntType(32)
    vector = ir.VectorType(double, TILE_LANES)
    blank = ir.Constant(vector, ir.Undefined)
    first = ir.Constant(ir.VectorType(index, TILE_LANES), [0] * TILE_LANES)
    fma = cgutils.get_or_insert_function(
        module, ir.FunctionType(vector, [vector] * 3), f"llvm.fmuladd.v{TILE_LANES}f64"
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
    """Fill out[k:k+4, i:i+8] with base[k:k+4, i:i+8] − Σ_p left[p, k:k+4]' right[p, i:i+8].

    p runs over start … stop − 1; the four matrices are contiguous and may be the same.
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

        # the tile: four vectors of 8 numbers, which stay in registers while p runs
        rows = [builder.add(k, ir.Constant(word, r)) for r in range(TILE_ROWS)]
        sums = [cgutils.alloca_once_value(builder, load(at(base, row, i))) for row in rows]
        with cgutils.for_range_slice(builder, start, stop, ir.Constant(word, 1)) as (p, _):
            values = load(at(right, p, i))
            for row, total in zip(rows, sums, strict=True):
                # one number of left against eight of right: total ← total − left_pr right_p
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
