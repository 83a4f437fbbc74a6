"""Computes a graph in the algebra of `monomials`, on the rows at hand.

Nodes that do not depend on a variable are numbers, which PyTensor computes as it always would; the
others are sums of monomials. An operation that is not in the tables here raises `Leaves`: nothing
is concluded from trial.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.traversal import toposort
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.elemwise import CAReduce, Elemwise

from bayesbandit.inference.algebra.branches import (
    SWAPPED,
    Inside,
    Value,
    both,
    comparison,
    lifted,
    switch,
)
from bayesbandit.inference.algebra.monomials import Sum
from bayesbandit.inference.algebra.places import joined, moves, put, solved
from bayesbandit.inference.algebra.terms import Leaves
from bayesbandit.inference.graph_analysis.operations import elementwise_name, operation

MOVES = {  # one tensor's elements, elsewhere; further inputs are shapes and indices
    *("Alloc", "DeepCopyOp", "DimShuffle", "ExpandDims", "ExtractDiag", "JoinDims", "Repeat"),
    *("Reshape", "ScalarFromTensor", "SpecifyAssumptions", "SpecifyShape", "Split", "SplitDims"),
    *("Squeeze", "Subtensor", "AdvancedSubtensor", "AdvancedSubtensor1", "TensorFromScalar"),
    *("TensorFromXTensor", "Unbroadcast", "ViewOp", "XTensorFromTensor", "Rename"),
}
JOINS = {"Join", "MakeVector"}  # several tensors' elements
PRODUCTS = {"Dot", "Dot22", "Matmul", "BatchedDot"}


class Algebra:
    """Graphs whose values are computed in the algebra; what does not depend on any of their inputs
    is computed once."""

    def __init__(self, outputs: Sequence[Variable], inputs: Sequence[Variable]) -> None:
        self.outputs, given = list(outputs), list(inputs)
        self.nodes = list(toposort(self.outputs, blockers=given))
        self._fixed: dict[Variable, Value] = {}
        depend = set(given)
        for node in self.nodes:
            if depend.isdisjoint(node.inputs):
                compute(node, self._fixed)
            else:
                depend.update(node.outputs)
        self.nodes = [node for node in self.nodes if not depend.isdisjoint(node.inputs)]

    def __call__(self, values: Mapping[Variable, Value]) -> list[Value]:
        """The outputs, given sums for the inputs that are variables and arrays for the data."""
        known = dict(self._fixed)
        known.update(values)
        with np.errstate(all="ignore"):
            for node in self.nodes:
                compute(node, known)
        return [lookup(v, known) for v in self.outputs]


def lookup(variable: Variable, known: Mapping[Variable, Value]) -> Value:
    """A node's value, or a constant's."""
    if variable in known:
        return known[variable]
    if isinstance(variable, Constant):
        return variable.data
    raise Leaves(f"'{variable}' has no value")


def compute(node: Apply, known: dict[Variable, Value]) -> None:
    """Adds the values of a node's outputs."""
    values = [lookup(v, known) for v in node.inputs]
    if not any(isinstance(v, Sum | Inside) for v in values):
        storage: list[list[Any]] = [[None] for _ in node.outputs]
        op: Any = node.op
        if isinstance(op, CheckAndRaise) and not all(np.all(v) for v in values[1:]):
            raise Leaves(f"the parameters break '{op.msg}'")
        op.perform(node, values, storage)
        known.update(zip(node.outputs, (s[0] for s in storage), strict=True))
        return
    results = apply(node, values)
    for variable, value in zip(node.outputs, results, strict=True):
        if isinstance(value, Sum) and (numbers := value.constant) is not None:
            value = numbers.astype(variable.type.dtype)
        known[variable] = value


def apply(node: Apply, values: list[Value]) -> list[Value]:
    """The values of a node's outputs, some of whose inputs are sums or conditions."""
    op, name = operation(node)
    if isinstance(node.op, Elemwise):
        return [elementwise(node, values)]
    if isinstance(op, CheckAndRaise):
        if not all(isinstance(v, np.ndarray | np.bool_) and np.all(v) for v in values[1:]):
            raise Leaves("parameter check")
        return [values[0]]
    if name in ("Shape", "Shape_i"):
        shape = np.array(values[0].shape, dtype=np.int64)
        return [shape if name == "Shape" else np.asarray(shape[op.i])]
    if isinstance(op, CAReduce):
        return [reduction(op, values[0], name)]
    if name in MOVES:
        return moves(node, values, name)
    if name in JOINS:
        return [joined(node, values)]
    if name in PRODUCTS:
        return [lifted(values[0]).dot(lifted(values[1]))]
    if name in ("Solve", "SolveTriangular") and isinstance(values[0], np.ndarray):
        return [solved(op, values)]
    if name in ("IncSubtensor", "AdvancedIncSubtensor", "AdvancedIncSubtensor1"):
        return [put(node, op, values)]
    raise Leaves(f"unrecognised operation {name}")


def elementwise(node: Apply, values: list[Value]) -> Value:
    """An elementwise operation."""
    name = elementwise_name(node.outputs[0])
    if name == "Switch":
        return switch(*values)
    if name == "AND":
        return both(values)
    if name in SWAPPED:
        return comparison(name, *values)
    if name == "Second":
        shape = np.broadcast_shapes(*(v.shape for v in values))
        return lifted(values[1]).broadcast(shape)
    a, *rest = (lifted(v) for v in values)
    match name:
        case "Add":
            for b in rest:
                a = a + b
        case "Mul" if len(values) == 2 and node.inputs[0] is node.inputs[1]:
            a = a.squared()
        case "Mul":
            for b in rest:
                a = a * b
        case "Sub":
            a = a + -rest[0]
        case "TrueDiv":
            a = a * rest[0].reciprocal()
        case "Neg":
            a = -a
        case "Identity":
            pass
        case "Cast" if node.outputs[0].type.dtype == "float64":
            pass
        case "Reciprocal":
            a = a.reciprocal()
        case "Sqrt":
            a = a.power(0.5)
        case "Sqr":
            a = a.squared()
        case "Log":
            a = a.log()
        case "Exp":
            a = a.exp()
        case "Pow" if (e := rest[0].constant) is not None and e.size:
            if (e != e.flat[0]).any():
                raise Leaves("power that differs between elements")
            a = a.broadcast(np.broadcast_shapes(a.shape, e.shape)).power(float(e.flat[0]))
        case "Abs" if a.above_zero:
            pass
        case "Sign" if a.above_zero:
            return np.ones(a.shape)
        case _:
            raise Leaves(f"function {name.lower()}")
    return a


def reduction(op: Any, value: Value, name: str) -> Value:
    """A sum over axes, or whether all conditions hold."""
    kind = type(op.scalar_op).__name__
    if isinstance(value, Inside) and kind == "AND" and op.axis is None:
        return Inside((), value.walls)
    if not isinstance(value, Sum) or kind != "Add":
        raise Leaves(f"reduction {name.lower()}")
    return value.over(range(len(value.shape)) if op.axis is None else op.axis)
