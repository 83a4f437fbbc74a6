"""Reads a graph row by row: which of its numbers depend on one row of the data alone.

An abstract interpretation beside that of the degrees (`structure`). Each node is

    CONSTANT   without rows: parameters, numbers, and what is computed of them
    ALONG      an array one axis of which are the rows; what stands at row i is the same function of
               row i's data, for every i
    SUM        a sum over the rows of such a function
    LENGTH     the number of rows, and SHAPE a shape of which it is an entry
    POSITION   0, 1, 2, … along the rows
    MIXED      anything else: shifts, sorts, means over rows, pairs of rows, a use of the number of
               rows, constants that stand beside the rows one for one

It is sound: an operation that is not in the table here makes rows mixed. A likelihood whose terms
are ALONG or SUM is a product over rows, whatever the rows are; statistics of batches then add up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.traversal import toposort
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise

from bayesbandit.inference.graph_analysis.operations import (
    PRODUCTS,
    elementwise_name,
    number,
    operation,
)
from bayesbandit.inference.graph_analysis.row_transfer import (
    ALONG,
    CONSTANT,
    LENGTH,
    MIXED,
    NONE,
    NUMBER,
    POSITION,
    RULES,
    SHAPE,
    SUM,
    TOTAL,
    Reach,
)

KEEPS = {"DeepCopyOp", "SpecifyShape", "Unbroadcast", "ViewOp", "SpecifyAssumptions", "Mark"}
SCALARS = {"ScalarFromTensor", "TensorFromScalar"}
ADDS = {"Add", "Sub", "Neg", "Identity", "Cast"}


class Rows:
    """What all nodes between `seeds` and `outputs` are."""

    def __init__(self, outputs: Sequence[Variable], seeds: Mapping[Variable, Reach]) -> None:
        self._reach: dict[Variable, Reach] = dict(seeds)
        for node in toposort(outputs, blockers=list(seeds)):
            self._visit(node)

    def of(self, variable: Variable) -> Reach:
        """What a node is."""
        return self._reach.get(variable, NONE)

    def mixed(self, variable: Variable) -> str | None:
        """Why a term of a log density is no product over rows: the operation, or None if it is."""
        reach = self.of(variable)
        if reach.kind in (CONSTANT, ALONG, SUM):
            return None
        return reach.why or "the number of rows"

    def apart(self, variable: Variable) -> str | None:
        """Why the i-th of some numbers is not one of row i alone, or None if it is."""
        if self.of(variable).kind == CONSTANT:
            return "a number that was there before for each row"
        return (
            None if self.of(variable).kind == ALONG else self.mixed(variable) or "a sum over rows"
        )

    def _visit(self, node: Apply) -> None:
        inputs = [self.of(v) for v in node.inputs]
        _, name = operation(node)
        if all(reach.kind == CONSTANT for reach in inputs):
            return
        reach = transfer(node, inputs) or _blamed(node, inputs, name)
        for v in node.outputs:
            self._reach[v] = reach


def _blamed(node: Apply, inputs: Sequence[Reach], name: str) -> Reach:
    """Rows are mixed: by this node, unless they were before."""
    before = next((r for r in inputs if r.kind == MIXED), None)
    if before is not None:
        return before
    name = elementwise_name(node.outputs[0]) or name
    if name == "TrueDiv" and [r.kind for r in inputs] == [SUM, LENGTH]:
        return Reach(MIXED, why="mean over rows")
    return Reach(MIXED, why=name.lower())


def transfer(node: Apply, reach: Sequence[Reach]) -> Reach | None:
    """What a node is, of what its inputs are; None where rows are mixed."""
    op, name = operation(node)
    if isinstance(op, CheckAndRaise) or name in KEEPS:
        return None if reach[0].kind == MIXED else reach[0]
    if name in SCALARS:
        return reach[0] if reach[0].kind in (LENGTH, SUM) else None
    if name in ("Shape", "Shape_i"):
        return _shape(node, name, reach[0])
    if any(r.kind == MIXED for r in reach):
        return None
    if isinstance(node.op, Blockwise):
        return _blockwise(node, name, reach)
    if isinstance(op, Elemwise):
        return _elementwise(node, reach)
    if isinstance(op, DimShuffle):
        return _moved(op, reach[0])
    if isinstance(op, CAReduce):
        return _reduced(op, reach[0])
    if name in PRODUCTS:
        return _product(node.inputs[0].type.ndim, node.inputs[1].type.ndim, reach)
    rule = RULES.get(name)
    return None if rule is None else rule(node, reach)


def _shape(node: Apply, name: str, reach: Reach) -> Reach | None:
    """Lengths: those of no row are constants, even of an array that is mixed but for its shape."""
    if reach.kind in (SUM, LENGTH, SHAPE):
        return NONE
    if reach.kind in (ALONG, POSITION):
        if name == "Shape":
            return Reach(SHAPE, reach.axis)
        return NUMBER if node.op.i == reach.axis else NONE
    if name == "Shape_i" and node.inputs[0].type.shape[node.op.i] is not None:
        return NONE
    return None


def _aligned(inputs: Sequence[Variable], reach: Sequence[Reach], shift: int = 0) -> Reach | None:
    """Of arrays that are broadcast together: along the one axis that is the rows' in all that have
    one, and of length 1 in the others. shift: trailing axes that are not counted."""
    axes = {r.axis for r in reach if r.kind in (ALONG, POSITION)}
    if len(axes) != 1 or any(r.kind not in (ALONG, CONSTANT) for r in reach):
        return None
    [axis] = axes
    for v, r in zip(inputs, reach, strict=True):
        if r.kind == CONSTANT and v.type.ndim > axis and v.type.shape[axis] != 1:
            return None
    return Reach(ALONG, axis)


def _elementwise(node: Apply, reach: Sequence[Reach]) -> Reach | None:
    name = elementwise_name(node.outputs[0])
    kinds = {r.kind for r in reach}
    if kinds <= {ALONG, CONSTANT}:
        return _aligned(node.inputs, reach)
    if kinds in ({LENGTH}, {SHAPE}) and name in ("Cast", "Identity"):
        return reach[0]
    if kinds == {LENGTH, CONSTANT} and name == "Mul":  # n · 1
        lengths = [r.kind == LENGTH for r in reach]
        rest = [v for v, n in zip(node.inputs, lengths, strict=True) if not n]
        return NUMBER if sum(lengths) == 1 and all(number(v) == 1.0 for v in rest) else None
    if kinds == {SUM} and name in ADDS:
        return TOTAL
    if kinds == {SUM, CONSTANT}:
        sums = [r.kind == SUM for r in reach]
        if name in ("Add", "Sub"):
            rest = [v for v, is_sum in zip(node.inputs, sums, strict=True) if not is_sum]
            return TOTAL if all(number(v) == 0.0 for v in rest) else None
        if (name == "Mul" and sum(sums) == 1) or (name == "TrueDiv" and sums == [True, False]):
            return TOTAL
        if name == "Second" and sums == [False, True]:
            return TOTAL
    return None


def _moved(op: DimShuffle, reach: Reach) -> Reach | None:
    if reach.kind in (SUM, LENGTH):
        return reach
    if reach.kind not in (ALONG, POSITION) or reach.axis not in op.new_order:
        return None
    return Reach(ALONG if reach.kind == ALONG else MIXED, list(op.new_order).index(reach.axis))


def _reduced(op: CAReduce, reach: Reach) -> Reach | None:
    name = type(op.scalar_op).__name__
    if reach.kind == SUM:
        return TOTAL if name == "Add" else None
    if reach.kind != ALONG:
        return None
    if op.axis is None or reach.axis in op.axis:
        return TOTAL if name == "Add" else None
    return Reach(ALONG, reach.axis - sum(a < reach.axis for a in op.axis))


def _product(left: int, right: int, reach: Sequence[Reach]) -> Reach | None:
    """Of a matrix or vector with another; a sum over the axis that they share."""
    a, b = reach
    inner = left - 1, max(right - 2, 0)  # the axes that are summed over
    if a.kind == ALONG and b.kind == CONSTANT:
        return Reach(ALONG, a.axis) if a.axis != inner[0] else None
    if b.kind == ALONG and a.kind == CONSTANT:
        return Reach(ALONG, left - 1 + b.axis - 1) if b.axis != inner[1] else None
    if a.kind == b.kind == ALONG and (a.axis, b.axis) == inner:
        return TOTAL
    if {a.kind, b.kind} == {SUM, CONSTANT}:
        return TOTAL
    return None


def _blockwise(node: Apply, name: str, reach: Sequence[Reach]) -> Reach | None:
    """An operation on the last axes, the same for every place along those before them."""
    op: Any = node.op
    batch = op.batch_ndim(node)
    if all(r.kind == CONSTANT or (r.kind == ALONG and r.axis < batch) for r in reach):
        return _aligned(node.inputs, reach)
    if name not in PRODUCTS or batch:
        return None
    left, right = (v.type.ndim for v in node.inputs)
    return _product(left, right, reach)
