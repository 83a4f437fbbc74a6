"""Reads a graph for how its values scale: the degree e to which a node is homogeneous in some
inputs, f(c·inputs) = cᵉ f(inputs) for every c > 0.

In one positive number u it is then a power, f(u) = f(1) uᵉ. Sound: what is not known has no degree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from pytensor.graph.basic import Apply, Constant, Variable

from bayesbandit.inference.graph_analysis.operations import (
    COMPARISONS,
    SIZED,
    exponent,
    kind,
    operation,
    reduced_by,
)
from bayesbandit.inference.graph_analysis.walk import Walk

ZERO = math.inf  # the degree of 0, which is homogeneous to every degree
ANY = math.nan  # of no degree


class Scaling(Walk[float, float]):
    """Degrees of homogeneity of all nodes between `seeds`, of degree 1, and `outputs`."""

    def __init__(self, outputs: Sequence[Variable], seeds: Mapping[Variable, float]) -> None:
        super().__init__(outputs, seeds)
        self.walk(self.nodes, self.values)

    def degree(self, variable: Variable) -> float | None:
        """Return the degree, `ZERO` of what is 0 throughout, None where there is none."""
        degree = self.of(variable)
        return None if math.isnan(degree) else degree

    def root(self, variable: Variable) -> float:
        zero = isinstance(variable, Constant) and not np.any(variable.data)
        return ZERO if zero else 0.0

    def visit(self, node: Apply, given: Sequence[float]) -> Sequence[float]:
        ragged = self.resized(node, [0.0 if k in (0.0, ZERO) else 1.0 for k in given])
        degree = ANY if ragged and kind(node) == "shape" else self.rule(node, given)
        return [degree] * len(node.outputs)

    # ---- operations ------------------------------------------------------------------------------

    def elementwise(self, node: Apply, name: str, given: Sequence[float]) -> float:
        match name:
            case "Add" | "Sub" | "Maximum" | "Minimum":
                return _common(given)
            case "Neg" | "Identity" | "Abs":
                return given[0]
            case "Cast":
                floating = str(node.outputs[0].type.dtype).startswith("float")
                return given[0] if floating else self.other(node, given)
            case "Mul":
                return self.product(node, given)
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
        return self.other(node, given)

    def check(self, node: Apply, given: Sequence[float]) -> float:
        return given[0]

    def reduction(self, node: Apply, given: Sequence[float]) -> float:
        plain = reduced_by(node) in ("Add", "Maximum", "Minimum")
        return given[0] if plain else self.other(node, given)

    def shape(self, node: Apply, given: Sequence[float]) -> float:
        return 0.0

    def move(self, node: Apply, given: Sequence[float]) -> float:
        first = operation(node)[1] in {*SIZED, "Alloc"}
        return given[0] if first else _common(given)

    def take(self, node: Apply, given: Sequence[float]) -> float:
        return given[0] if all(map(_fixed, given[1:])) else ANY

    def put(self, node: Apply, given: Sequence[float]) -> float:
        return _common(given[:2]) if all(map(_fixed, given[2:])) else ANY

    def product(self, node: Apply, given: Sequence[float]) -> float:
        if any(math.isnan(k) for k in given):
            return ANY
        return ZERO if ZERO in given else sum(given)

    def solve(self, node: Apply, given: Sequence[float]) -> float:
        return _quotient(given[1], given[0])

    def cumulation(self, node: Apply, given: Sequence[float]) -> float:
        return given[0] if operation(node)[0].mode == "add" else self.other(node, given)

    def other(self, node: Apply, given: Sequence[float]) -> float:
        """Interpret any function: where its inputs do not change with the scale, nor does it."""
        return 0.0 if all(map(_fixed, given)) else ANY


def _fixed(degree: float) -> bool:
    """Return whether a value of this degree does not change with the scale."""
    return degree in (0.0, ZERO)


def _common(degrees: Sequence[float]) -> float:
    """Return the one degree of all that is not 0."""
    found = {k for k in degrees if k != ZERO}
    if any(math.isnan(k) for k in found) or len(found) > 1:
        return ANY
    return found.pop() if found else ZERO


def _quotient(above: float, below: float) -> float:
    if math.isnan(above) or math.isnan(below) or below == ZERO:
        return ANY
    return above - below
