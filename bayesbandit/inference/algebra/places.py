"""Operations that move elements (indexing, reshapes, joins), in the algebra of `monomials`.

PyTensor performs the operation on an array of element numbers. The result says where each element
goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from pytensor.graph.basic import Apply

from bayesbandit.inference.algebra.branches import Inside, Value, lifted
from bayesbandit.inference.algebra.monomials import Leaves, Sum, Term, Wall, constant
from bayesbandit.inference.graph_analysis.operations import operation


def performed(node: Apply, values: Sequence[Value]) -> list[Value]:
    """Return the outputs of a node, computed by PyTensor from inputs that are numbers."""
    storage: list[list[Any]] = [[None] for _ in node.outputs]
    node.op.perform(node, list(values), storage)
    return [value for [value] in storage]


def moves(node: Apply, values: Sequence[Value], name: str) -> list[Value]:
    """Return the elements of the first input, rearranged."""
    index = 1 if name == "Split" and not isinstance(values[0], Sum) else 0
    first, rest = values[index], values[index + 1 :]
    if any(isinstance(v, Sum | Inside) for v in rest):
        raise Leaves("index")
    if isinstance(first, Inside):
        if name not in ("DimShuffle", "ExpandDims", "ViewOp", "ScalarFromTensor", "Squeeze"):
            raise Leaves("condition")
        return [Inside((), first.walls) if first.shape == () else first]

    def move(which: int, places: np.ndarray) -> np.ndarray:
        return np.asarray(performed(node, [places, *rest])[which])

    return [lifted(first).moved(partial(move, k)) for k in range(len(node.outputs))]


def joined(node: Apply, values: Sequence[Value]) -> Sum:
    """Return the elements of several inputs, concatenated."""
    parts = [lifted(v) for v in values]
    ends = np.cumsum([p.size for p in parts])
    places = [
        np.arange(end - p.size, end, dtype=np.float64).reshape(p.shape)
        for p, end in zip(parts, ends, strict=True)
    ]
    return placed(np.asarray(performed(node, places)[0]), parts)


def placed(where: np.ndarray, parts: Sequence[Sum]) -> Sum:
    """Return the tensor of the elements at `where` in the concatenation of all parts."""
    flat, start = where.ravel().astype(np.intp), 0
    terms: list[Term] = []
    walls: tuple[Wall, ...] = ()
    for part in parts:
        inside = (flat >= start) & (flat < start + part.size)
        if part.size:
            local = np.where(inside, flat - start, 0)
            terms += [t.gathered(local, inside) for t in part.terms]
        walls += part.walls
        start += part.size
    return Sum(where.shape, tuple(terms), walls)


def put(node: Apply, values: Sequence[Value]) -> Sum:
    """Return x with some of its elements replaced by those of y."""
    if any(isinstance(v, Sum | Inside) for v in values[2:]):
        raise Leaves("index")
    if not operation(node)[0].set_instead_of_inc:
        raise Leaves("addition in place")
    x, y = lifted(values[0]), lifted(values[1])
    places = np.arange(x.size, dtype=np.float64).reshape(x.shape)
    other = (x.size + np.arange(y.size, dtype=np.float64)).reshape(y.shape)
    return placed(np.asarray(performed(node, [places, other, *values[2:]])[0]), [x, y])


def solved(node: Apply, values: Sequence[Value]) -> Sum:
    """Return A⁻¹b for numbers A, one matrix; b may be many vectors, or one matrix."""
    op, A, b = operation(node)[0], np.asarray(values[0]), lifted(values[1])
    A = A.reshape(A.shape[-2:]) if A.size == A.shape[-1] * A.shape[-2] else A
    if A.ndim != 2 or (op.b_ndim == 2 and len(b.shape) != 2):
        raise Leaves("solution of many systems")
    whole, unit = type(op)(**(op._props_dict() | {"b_ndim": 2})), np.eye(len(A))
    inverse = np.asarray(performed(whole.make_node(A, unit), [A, unit])[0])
    return constant(inverse).dot(b) if op.b_ndim == 2 else b.dot(constant(inverse.T))
