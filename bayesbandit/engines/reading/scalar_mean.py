"""A mean reward that is one number for all rows, as a mean reward of each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace, vectorize_graph
from pytensor.graph.traversal import ancestors

from bayesbandit.engines.reading.operations import (
    elementwise_name,
    number,
    operands,
    operation,
)
from bayesbandit.engines.reading.rewrites import merged
from bayesbandit.engines.reading.rows import ALONG, Reach, Rows

EXPANDS = ("DimShuffle", "ExpandDims")


def by_rows(terms: list[Any], mean: Variable, m: Variable, inputs: Sequence[Variable]) -> list[Any]:
    """Terms of a log density with m (n,) in the place of the number that the mean reward is, where
    it is one; a term stays as it is where it is not proved that each row then has its own m.

    Of the others, row i's value is of m_i alone, and for equal m the same as before.
    """
    if _number(mean) is None:
        return terms
    *shared, same = merged([*terms, mean])
    scalar, seeds = _number(same), dict.fromkeys([*inputs, m], Reach(ALONG, 0))
    found = []
    for term, own in zip(terms, shared, strict=True):
        spread = [v for v in ancestors([own]) if _expands(v) and scalar in ancestors([v])]
        each = vectorize_graph([v.owner.inputs[0] for v in spread], {scalar: m}) if spread else []
        new: Any = clone_replace(own, dict(zip(spread, each, strict=True)), rebuild_strict=False)
        apart = spread and scalar not in ancestors([new])
        found.append(new if apart and Rows([new], seeds).of(new).kind == ALONG else term)
    return found


def _number(mean: Variable) -> Any:
    """The number that a mean reward is, spread over the rows by zeros; None of any other."""
    if elementwise_name(mean) != "Add":
        return None
    for zeros, spread in (operands(mean), operands(mean)[::-1]):
        if _expands(spread) and _is_zero(zeros):
            return spread.owner.inputs[0]
    return None


def _expands(v: Any) -> bool:
    """Whether a node is a number as an array of length 1."""
    if v.owner is None or operation(v.owner)[1] not in EXPANDS:
        return False
    return v.type.ndim == 1 and v.owner.inputs[0].type.ndim == 0


def _is_zero(v: Any) -> bool:
    if elementwise_name(v) == "Second":
        v = operands(v)[1]
    return number(v) == 0.0
