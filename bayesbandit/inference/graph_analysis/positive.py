"""What is positive wherever it is: the sign by which a density guards its support."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import numpy as np
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.elemwise import CAReduce, Elemwise

from bayesbandit.inference.graph_analysis.operations import (
    MOVES,
    bare,
    elementwise_name,
    number,
    operation,
)


def guards_support(node: Apply, positive: Collection[Variable]) -> bool:
    """Whether a comparison is of what is positive with what is not, or of its logarithm with an
    infinity."""
    for subject, bound in (node.inputs, node.inputs[::-1]):
        limit = number(bound)
        if limit is None:
            continue
        inside: Any = bare(subject)
        if math.isinf(limit) and (name := elementwise_name(inside)):
            return name == "Log" and inside.owner.inputs[0] in positive
        return limit <= 0 and subject in positive
    return False


def keeps_positive(node: Apply, positive: Collection[Variable]) -> bool:
    """Whether a node is positive where `positive` ones, the weights and its constants are."""

    def sure(v: Variable) -> bool:
        if isinstance(v, Constant):
            return bool(np.all(v.data > 0.0))
        return v in positive or (v.owner is None and v.name == "weight")

    op, name = operation(node)
    if isinstance(op, Elemwise):
        name = elementwise_name(node.outputs[0])
        if name in ("Exp", "Sigmoid", "Softplus", "Erfc"):
            return True
        if name == "Sub":
            one, rest = number(node.inputs[0]), elementwise_name(node.inputs[1])
            return one is not None and one >= 1.0 and rest == "Sigmoid"
        if name == "Pow":
            return sure(node.inputs[0])
        kept = {"Add", "Mul", "TrueDiv", "Sqrt", "Sqr", "Abs", "Identity", "Reciprocal", "Maximum"}
        return name in kept and all(map(sure, node.inputs))
    if isinstance(op, CAReduce):
        return type(op.scalar_op).__name__ in ("Add", "Mul") and sure(node.inputs[0])
    return (name in MOVES or isinstance(op, CheckAndRaise)) and sure(node.inputs[0])
