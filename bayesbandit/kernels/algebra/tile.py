"""out = base − left'right on one tile of 4 rows by 8 columns: what a factorisation is made of.

Compilers do not keep such a tile in registers by themselves, so it is written in LLVM's own
vectors, which every processor has in some width. `plain_tile` is the same in words of numba's. It
takes the other's place with an llvmlite that cannot make these vectors, and takes 4 to 20 times as
long. It rounds each product and each sum, where most processors round the two of the other's as
one, so that both agree to rounding: to (p + 1) ε (|base| + |left|'|right|) after p steps.
"""

import logging
from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from bayesbandit.runtime.compiling import njit

ROWS, LANES = 4, 8  # one tile: 4 registers of 8 doubles (AVX-512), or 8 of 4 (AVX2)


def vectors(builder, module):
    """Load, store, broadcast and fused multiply-add of LANES doubles, as IR."""
    double = ir.DoubleType()
    index = ir.IntType(32)
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


@njit(cache=True, error_model="numpy", nogil=True)
def plain_tile(out, base, left, right, k, i, start, stop):
    """Do as `tile`, without LLVM's vectors; where a matrix is both `out` and another, k ≥ stop."""
    for row in range(k, k + ROWS):
        for column in range(i, i + LANES):
            out[row, column] = base[row, column]
        for p in range(start, stop):
            c = left[p, row]
            for column in range(i, i + LANES):
                out[row, column] -= c * right[p, column]


def has_vectors() -> bool:
    """Return whether this llvmlite makes LLVM's vectors, and LLVM takes them."""
    module = ir.Module()
    try:
        pointer = ir.DoubleType().as_pointer()
        probe = ir.Function(module, ir.FunctionType(ir.VoidType(), [pointer]), "probe")
        builder = ir.IRBuilder(probe.append_basic_block())
        load, store, spread, multiply_add = vectors(builder, module)
        [at] = probe.args
        values = load(at)
        number = builder.extract_element(values, ir.Constant(ir.IntType(32), 0))
        store(multiply_add(spread(builder.fneg(number)), values, values), at)
        builder.ret_void()
        binding.parse_assembly(str(module)).verify()
    except (AttributeError, NotImplementedError, RuntimeError, TypeError):
        return False
    return True


subtract_tile: Any = intrinsic(tile)
if not has_vectors():
    subtract_tile = plain_tile
    logging.getLogger("bayesbandit").warning(
        "this llvmlite makes no vectors: estimates are factorised 4 to 20 times as slowly"
    )
