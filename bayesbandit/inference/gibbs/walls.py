"""Walls: bounds of positive variables that a log density says, by −∞ beyond them.

pt.switch(s < 5, f(s), −∞)    is    f(s), for s < 5
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from pytensor.graph.basic import Variable
from pytensor.tensor.elemwise import CAReduce

from bayesbandit.inference.graph_analysis.operations import (
    bare,
    elementwise_name,
    number,
    operands,
    reduced_by,
)

Interval = tuple[float, float]
Bounds = dict[Variable, Interval]

BOUND_IS_LOWER = {"GT": True, "GE": True, "LT": False, "LE": False}


def within(a: Interval, b: Interval) -> Interval:
    """Return the interval that two intervals share."""
    return max(a[0], b[0]), min(a[1], b[1])


def unwalled(graph: Variable, variables: Mapping[Variable, str]) -> tuple[Variable, Bounds]:
    """Return a log density inside its walls, and the walls of variables."""
    if elementwise_name(graph) != "Switch":
        return graph, {}
    condition, yes, no = operands(graph)
    for value, other, holds in ((yes, no, True), (no, yes, False)):
        whole = value.type.broadcastable == graph.type.broadcastable or number(value) is not None
        if number(other) == -math.inf and whole:
            walls = bounds(condition, holds, variables)
            if walls is not None:
                return value, walls
    return graph, {}


def bounds(condition: Variable, holds: bool, variables: Mapping[Variable, str]) -> Bounds | None:
    """Return the bounds of variables by which a condition holds, or does not; None where it is no
    matter of such bounds."""
    condition = bare(condition)
    name, inputs = elementwise_name(condition), operands(condition)
    node = condition.owner
    if node is not None and isinstance(node.op, CAReduce):
        every = "AND" if holds else "OR"
        return bounds(inputs[0], holds, variables) if reduced_by(node) == every else None
    if name == ("AND" if holds else "OR"):
        found: Bounds = {}
        for one in inputs:
            walls = bounds(one, holds, variables)
            if walls is None:
                return None
            for v, interval in walls.items():
                found[v] = within(interval, found.get(v, interval))
        return found
    if name not in BOUND_IS_LOWER:
        return None
    above = BOUND_IS_LOWER[name] == holds
    for subject, limit in (inputs, inputs[::-1]):
        v, value = bare(subject), number(limit)
        if v in variables and value is not None:
            return {v: (value, math.inf) if above else (-math.inf, value)}
        above = not above
    return None
