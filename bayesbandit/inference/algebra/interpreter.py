"""Computes a graph in the algebra of `monomials`, with given rows.

Nodes that do not depend on a variable are numbers, which PyTensor computes. The others are sums of
monomials. An operation without a rule here raises `Leaves`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.raise_op import CheckAndRaise

from bayesbandit.inference.algebra.branches import (
    SWAPPED,
    Inside,
    Value,
    both,
    comparison,
    lifted,
    switch,
)
from bayesbandit.inference.algebra.monomials import Leaves, Sum
from bayesbandit.inference.algebra.places import joined, moves, performed, put, solved
from bayesbandit.inference.graph_analysis.operations import (
    elementwise_name,
    kind,
    operation,
    reduced_by,
)
from bayesbandit.inference.graph_analysis.walk import Walk

UNKNOWN = Sum((), ())  # in the place of values that each call gives


class Algebra(Walk[Value]):
    """Graphs whose values are computed in the algebra. Values that do not depend on the inputs are
    computed once."""

    def __init__(self, outputs: Sequence[Variable], inputs: Sequence[Variable]) -> None:
        super().__init__(outputs, dict.fromkeys(inputs, UNKNOWN))
        self.outputs, depend = list(outputs), set(inputs)
        for node in self.nodes:
            if not depend.isdisjoint(node.inputs):
                depend.update(node.outputs)
        self._fixed: dict[Variable, Value] = {}
        self.walk([node for node in self.nodes if depend.isdisjoint(node.inputs)], self._fixed)
        self.nodes = [node for node in self.nodes if not depend.isdisjoint(node.inputs)]

    def __call__(self, values: Mapping[Variable, Value]) -> list[Value]:
        """Return the outputs, given sums for inputs that are variables, and arrays for inputs that
        are data."""
        known = {**self._fixed, **values}
        with np.errstate(all="ignore"):
            self.walk(self.nodes, known)
        return [known[v] if v in known else self.root(v) for v in self.outputs]

    def root(self, variable: Variable) -> Value:
        if isinstance(variable, Constant):
            return variable.data
        raise Leaves(f"'{variable}' has no value")

    def visit(self, node: Apply, given: Sequence[Value]) -> Sequence[Value]:
        plain = [v for v in given if not isinstance(v, Sum | Inside)]
        if len(plain) == len(given):
            if isinstance(node.op, CheckAndRaise) and not all(map(np.all, plain[1:])):
                raise Leaves(f"the parameters break '{node.op.msg}'")
            return performed(node, plain)
        return [
            numbers.astype(variable.type.dtype)
            if isinstance(value, Sum) and (numbers := value.constant) is not None
            else value
            for variable, value in zip(node.outputs, self.rule(node, given), strict=True)
        ]

    def rule(self, node: Apply, given: Sequence[Value]) -> Sequence[Value]:
        """Return a node's outputs, where some of its inputs are sums or conditions."""
        op, name = operation(node)
        match kind(node):
            case "elementwise":
                return [elementwise(node, elementwise_name(node.outputs[0]), given)]
            case "check":
                if not all(isinstance(v, np.ndarray | np.bool_) and np.all(v) for v in given[1:]):
                    raise Leaves("parameter check")
                return [given[0]]
            case "reduction":
                [value], by = given, reduced_by(node)
                if isinstance(value, Inside) and by == "AND" and op.axis is None:
                    return [Inside((), value.walls)]
                if not isinstance(value, Sum) or by != "Add":
                    raise Leaves(f"reduction {name.lower()}")
                return [value.over(range(len(value.shape)) if op.axis is None else op.axis)]
            case "shape":
                shape = np.array(given[0].shape, dtype=np.int64)
                return [shape if name == "Shape" else np.asarray(shape[op.i])]
            case "move" if name in ("Join", "MakeVector"):
                return [joined(node, given)]
            case "move" | "take" if name != "AllocDiag":
                return moves(node, given, name)
            case "put":
                return [put(node, given)]
            case "product":
                return [lifted(given[0]).dot(lifted(given[1]))]
            case "solve" if isinstance(given[0], np.ndarray):
                return [solved(node, given)]
        raise Leaves(f"unrecognised operation {name}")


def elementwise(node: Apply, name: str, values: Sequence[Value]) -> Value:
    """Return the value of an elementwise operation."""
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
