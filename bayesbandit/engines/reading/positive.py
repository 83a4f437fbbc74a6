"""What is positive wherever it is: the sign by which a density guards its support."""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.basic import get_underlying_scalar_constant_value
from pytensor.tensor.elemwise import CAReduce, Elemwise
from pytensor.tensor.exceptions import NotScalarConstantError

from bayesbandit.engines.reading.operations import MOVES, bare, operation


def guards_support(node: Apply, positive: Collection[Variable]) -> bool:
    """Whether a comparison is of what is positive with what is not, or of its logarithm with an
    infinity."""
    for subject, bound in (node.inputs, node.inputs[::-1]):
        try:
            limit = float(get_underlying_scalar_constant_value(bound))
        except NotScalarConstantError:
            continue
        inside = bare(subject)
        logarithm = inside.owner is not None and isinstance(inside.owner.op, Elemwise)
        if math.isinf(limit) and logarithm and inside.owner is not None:
            is_log = type(inside.owner.op.scalar_op).__name__ == "Log"
            return is_log and inside.owner.inputs[0] in positive
        return limit <= 0 and subject in positive
    return False


def keeps_positive(node: Apply, positive: Collection[Variable]) -> bool:
    """Whether a node is positive where `positive` ones, the weights and its constants are."""

    def sure(v: Variable) -> bool:
        if isinstance(v, Constant):
            return lower_bound(v) > 0.0
        return v in positive or (v.owner is None and v.name == "weight")

    op, name = operation(node)
    if isinstance(op, Elemwise):
        name = type(op.scalar_op).__name__
        if name in ("Exp", "Sigmoid", "Softplus", "Erfc"):
            return True
        if name == "Sub" and below_one(node.inputs[1]):
            return lower_bound(node.inputs[0]) >= 1.0
        if name == "Pow":
            return sure(node.inputs[0])
        kept = {"Add", "Mul", "TrueDiv", "Sqrt", "Sqr", "Abs", "Identity", "Reciprocal", "Maximum"}
        return name in kept and all(map(sure, node.inputs))
    if isinstance(op, CAReduce):
        return type(op.scalar_op).__name__ in ("Add", "Mul") and sure(node.inputs[0])
    return (name in MOVES or isinstance(op, CheckAndRaise)) and sure(node.inputs[0])


def lower_bound(variable: Variable) -> float:
    """The least number of a constant, −∞ of what is none."""
    while (node := variable.owner) is not None and (
        operation(node)[1] in ("DimShuffle", "ExpandDims")
        or (
            isinstance(node.op, Elemwise)
            and type(node.op.scalar_op).__name__ == "Cast"
            and node.outputs[0].type.dtype == "float64"
        )
    ):
        [variable] = node.inputs
    return float(np.min(variable.data)) if isinstance(variable, Constant) else -math.inf


def below_one(variable: Variable) -> bool:
    """Whether a node is a sigmoid."""
    op = variable.owner.op if variable.owner is not None else None
    return isinstance(op, Elemwise) and type(op.scalar_op).__name__ == "Sigmoid"
