"""Reads a graph for how its values scale: the degree e to which a node is homogeneous in some
inputs, f(c·inputs) = cᵉ f(inputs) for every c > 0.

A function of one positive number u is then a power, f(u) = f(1) uᵉ. It is sound: an operation
without a rule gives no degree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.elemwise import CAReduce, Elemwise

from bayesbandit.inference.graph_analysis.operations import (
    COMPARISONS,
    LINEAR,
    MATRICES,
    PRODUCTS,
    PUTS,
    SHAPES,
    SOLVES,
    TAKES,
    elementwise_name,
    exponent,
    kind,
    operation,
    reduced_by,
)
from bayesbandit.inference.graph_analysis.walk import Walk

SIZED = {"SpecifyShape", "Reshape", "Unbroadcast", "SplitDims", "JoinDims"}  # x, then lengths
FIXED = {
    *(LINEAR | PUTS | SHAPES | PRODUCTS | SOLVES | MATRICES),
    *("CumOp", "IfElse", "Mark", "Eye", "SortOp", "ArgSortOp"),
}  # whose outputs are as large as the shapes of their inputs say


def sizes_by_value(node: Apply, d: Sequence[float]) -> bool:
    """Return whether the shape of a node's outputs depends on values that have a degree; d: the
    degrees of its inputs."""
    op, name = operation(node)
    sizes = {"Repeat": 1, "Alloc": 1, "Reshape": 1, "AllocEmpty": 0} | dict.fromkeys(TAKES, 1)
    known = name in FIXED or isinstance(op, Elemwise | CAReduce | CheckAndRaise)
    first = sizes.get(name, len(d) if known else 0)
    return max(d[first:], default=0) > 0


ZERO = math.inf  # the degree of 0, which is homogeneous to every degree
ANY = math.nan  # of no degree


class Scaling(Walk[float]):
    """Degrees of homogeneity of all nodes between `seeds`, of degree 1, and `outputs`."""

    def __init__(self, outputs: Sequence[Variable], seeds: Mapping[Variable, float]) -> None:
        super().__init__(outputs, seeds)
        self.ragged: set[Variable] = set()
        self.walk(self.nodes, self.values)

    def resized(self, node: Apply, depends: Sequence[float]) -> bool:
        """Return whether the shape of a node's first input depends on the seeds; record the same of
        its outputs.

        depends: for each input, more than 0 if its value depends on the seeds.
        """
        inherited = not self.ragged.isdisjoint(node.inputs)
        if inherited or sizes_by_value(node, depends):
            self.ragged.update(node.outputs)
        return inherited and node.inputs[0] in self.ragged

    def degree(self, variable: Variable) -> float | None:
        """Return the degree; `ZERO` for a node that is 0 everywhere, None if there is none."""
        degree = self.of(variable)
        return None if math.isnan(degree) else degree

    def root(self, variable: Variable) -> float:
        zero = isinstance(variable, Constant) and not np.any(variable.data)
        return ZERO if zero else 0.0

    def visit(self, node: Apply, given: Sequence[float]) -> Sequence[float]:
        ragged = self.resized(node, [0.0 if k in (0.0, ZERO) else 1.0 for k in given])
        degree = ANY if ragged and kind(node) == "shape" else self.rule(node, given)
        return [degree] * len(node.outputs)

    def rule(self, node: Apply, given: Sequence[float]) -> float:
        """Return the degree of a node's outputs, given those of its inputs."""
        op, name = operation(node)
        match kind(node):
            case "elementwise":
                return _elementwise(node, given)
            case "check":
                return given[0]
            case "reduction" if reduced_by(node) in ("Add", "Maximum", "Minimum"):
                return given[0]
            case "shape":
                return 0.0
            case "move":
                return given[0] if name in {*SIZED, "Alloc"} else _common(given)
            case "take":
                return given[0] if all(map(_fixed, given[1:])) else ANY
            case "put":
                return _common(given[:2]) if all(map(_fixed, given[2:])) else ANY
            case "product":
                return _product(given)
            case "solve":
                return _quotient(given[1], given[0])
            case "cumulation" if op.mode == "add":
                return given[0]
        return _function(given)


def _elementwise(node: Apply, given: Sequence[float]) -> float:
    """Return the degree of an operation on numbers, applied to arrays of one shape."""
    name = elementwise_name(node.outputs[0])
    match name:
        case "Add" | "Sub" | "Maximum" | "Minimum":
            return _common(given)
        case "Neg" | "Identity" | "Abs":
            return given[0]
        case "Cast" if str(node.outputs[0].type.dtype).startswith("float"):
            return given[0]
        case "Mul":
            return _product(given)
        case "Second":
            return given[1]
        case "Sqr":
            return 2.0 * given[0]
        case "Sqrt":
            return 0.5 * given[0]
        case "TrueDiv":
            return _quotient(*given)
        case "Reciprocal":
            return -given[0] if given[0] != ZERO else ANY
        case "Pow":
            k = exponent(node)
            if k is not None and _fixed(given[1]) and not (given[0] == ZERO and k <= 0.0):
                return k * given[0]
        case "Switch":
            return _common(given[1:]) if _fixed(given[0]) else ANY
        case "Sign":
            return 0.0 if not math.isnan(given[0]) else ANY
    if name in COMPARISONS and not math.isnan(_common(given)):
        return 0.0
    return _function(given)


def _function(given: Sequence[float]) -> float:
    """Return the degree of a function about which nothing is known: it is constant if its inputs
    are."""
    return 0.0 if all(map(_fixed, given)) else ANY


def _product(given: Sequence[float]) -> float:
    if any(math.isnan(k) for k in given):
        return ANY
    return ZERO if ZERO in given else sum(given)


def _fixed(degree: float) -> bool:
    """Return whether a value of this degree does not change with the scale."""
    return degree in (0.0, ZERO)


def _common(degrees: Sequence[float]) -> float:
    """Return the one degree of all values that are not 0."""
    known = {k for k in degrees if k != ZERO}
    if any(math.isnan(k) for k in known) or len(known) > 1:
        return ANY
    return known.pop() if known else ZERO


def _quotient(above: float, below: float) -> float:
    if math.isnan(above) or math.isnan(below) or below == ZERO:
        return ANY
    return above - below
