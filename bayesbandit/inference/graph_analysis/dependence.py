"""Reads a graph for what its values depend on, and how they scale.

`Influence`: the inputs that a node's values, and not only its shape, may depend on.

`Scaling`: the degree e to which a node is homogeneous in some inputs, f(c·inputs) = cᵉ f(inputs)
for every c > 0; of one positive number u it is then a power, f(u) = f(1) uᵉ.

Both are sound: what is not known depends on all that it is given, and has no degree.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.traversal import toposort
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.elemwise import CAReduce, Elemwise

from bayesbandit.inference.graph_analysis.operations import (
    COMPARISONS,
    LINEAR,
    PRODUCTS,
    PUTS,
    SHAPES,
    SOLVES,
    TAKES,
    elementwise_name,
    exponent,
    operation,
    sizes_by_value,
)

FIRST = {"SpecifyShape", "Reshape", "Unbroadcast", "SplitDims", "JoinDims"}  # then lengths
ZERO = math.inf  # the degree of 0, which is homogeneous to every degree
ANY = math.nan  # of no degree


class Influence:
    """The seeds that values between them and `outputs` may depend on."""

    def __init__(
        self, outputs: Sequence[Variable], seeds: Mapping[Variable, Collection[str]]
    ) -> None:
        self._of = {v: frozenset(names) for v, names in seeds.items()}
        self._size: dict[Variable, frozenset[str]] = {}  # what shapes may depend on
        for node in toposort(outputs, blockers=list(seeds)):
            self._visit(node)

    def of(self, variable: Variable) -> frozenset[str]:
        """The names of the seeds that a node's values may depend on."""
        return self._of.get(variable, frozenset())

    def _visit(self, node: Apply) -> None:
        op, name = operation(node)
        given = [self.of(v) for v in node.inputs]
        sized = frozenset().union(*(self._size.get(v, frozenset()) for v in node.inputs))
        if sizes_by_value(node, [len(names) for names in given]):
            sized = sized.union(*given)
        if sized:
            self._size.update(dict.fromkeys(node.outputs, sized))
        if name in SHAPES:
            given = [sized]
        elif isinstance(op, CheckAndRaise) or name in FIRST:
            given = given[:1]
        elif elementwise_name(node.outputs[0]) == "Second":
            given = given[1:]
        for v in node.outputs:
            self._of[v] = frozenset().union(*given)


class Scaling:
    """Degrees of homogeneity of all nodes between `seeds`, of degree 1, and `outputs`."""

    def __init__(self, outputs: Sequence[Variable], seeds: Mapping[Variable, float]) -> None:
        self._degree = dict(seeds)
        self._ragged: set[Variable] = set()  # whose shape may depend on the seeds
        for node in toposort(outputs, blockers=list(seeds)):
            self._visit(node)

    def of(self, variable: Variable) -> float | None:
        """The degree, `ZERO` of what is 0 throughout, None where there is none."""
        degree = self._at(variable)
        return None if math.isnan(degree) else degree

    def _at(self, variable: Variable) -> float:
        if variable in self._degree:
            return self._degree[variable]
        return ZERO if _zero(variable) else 0.0

    def _visit(self, node: Apply) -> None:
        _, name = operation(node)
        given = [self._at(v) for v in node.inputs]
        if sizes_by_value(node, [0.0 if k in (0.0, ZERO) else 1.0 for k in given]):
            self._ragged.update(node.outputs)
        if not self._ragged.isdisjoint(node.inputs):
            self._ragged.update(node.outputs)
            if name in SHAPES:
                self._degree.update(dict.fromkeys(node.outputs, ANY))
                return
        degree = scaled(node, given)
        for v in node.outputs:
            self._degree[v] = degree


def _zero(variable: Variable) -> bool:
    return isinstance(variable, Constant) and not np.any(variable.data)


def scaled(node: Apply, d: Sequence[float]) -> float:
    """The degree of a node of degrees `d`, one for each input."""
    op, name = operation(node)
    if name in SHAPES:
        return 0.0
    if isinstance(op, CheckAndRaise) or name in FIRST:
        return d[0]
    if isinstance(node.op, Elemwise):
        return _elementwise(node, d)
    if isinstance(op, CAReduce):
        plain = type(op.scalar_op).__name__ in ("Add", "Maximum", "Minimum")
        return d[0] if plain else _invariant(d)
    if name == "Alloc":
        return d[0]
    if name in LINEAR:
        return _common(d)
    if name == "CumOp" and op.mode == "add":
        return d[0]
    if name in TAKES or name in PUTS:
        values = 2 if name in PUTS else 1
        return _common(d[:values]) if all(k in (0.0, ZERO) for k in d[values:]) else ANY
    if name in PRODUCTS:
        return _product(d)
    if name in SOLVES:
        return _quotient(d[1], d[0])
    return _invariant(d)


def _elementwise(node: Apply, d: Sequence[float]) -> float:
    name = elementwise_name(node.outputs[0])
    match name:
        case "Add" | "Sub" | "Maximum" | "Minimum":
            return _common(d)
        case "Neg" | "Identity" | "Abs":
            return d[0]
        case "Cast":
            floating = str(node.outputs[0].type.dtype).startswith("float")
            return d[0] if floating else _invariant(d)
        case "Mul":
            return _product(d)
        case "Second":
            return d[1]
        case "Sqr":
            return 2.0 * d[0]
        case "Sqrt":
            return 0.5 * d[0]
        case "TrueDiv":
            return _quotient(*d)
        case "Reciprocal":
            return -d[0] if d[0] != ZERO else ANY
        case "Pow":
            k = exponent(node)
            if k is not None and d[1] in (0.0, ZERO) and not (d[0] == ZERO and k <= 0.0):
                return k * d[0]
        case "Switch":
            return _common(d[1:]) if d[0] in (0.0, ZERO) else ANY
        case "Sign":
            return 0.0 if not math.isnan(d[0]) else ANY
    if name in COMPARISONS and not math.isnan(_common(d)):
        return 0.0
    return _invariant(d)


def _common(d: Sequence[float]) -> float:
    """The one degree of all that is not 0."""
    degrees = {k for k in d if k != ZERO}
    if any(math.isnan(k) for k in degrees) or len(degrees) > 1:
        return ANY
    return degrees.pop() if degrees else ZERO


def _product(d: Sequence[float]) -> float:
    if any(math.isnan(k) for k in d):
        return ANY
    return ZERO if ZERO in d else sum(d)


def _quotient(above: float, below: float) -> float:
    if math.isnan(above) or math.isnan(below) or below == ZERO:
        return ANY
    return above - below


def _invariant(d: Sequence[float]) -> float:
    """Any function of what does not change with the scale does not either."""
    return 0.0 if all(k in (0.0, ZERO) for k in d) else ANY
