"""Reads a graph row by row: which of its numbers depend on one row of the data alone.

Each node is

    CONSTANT   without rows: parameters, numbers, and what is computed of them
    ALONG      an array one axis of which are the rows; what stands at row i is the same function of
               row i's data, for every i
    SUM        a sum over the rows of such a function
    LENGTH     the number of rows, and SHAPE a shape of which it is an entry
    POSITION   0, 1, 2, … along the rows
    MIXED      anything else: shifts, sorts, means over rows, pairs of rows, a use of the number of
               rows, constants that stand beside the rows one for one

It is sound: an operation without a rule makes rows mixed. A likelihood whose terms are ALONG or SUM
is a product over rows, whatever the rows are; statistics of batches then add up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle

from bayesbandit.inference.graph_analysis.operations import (
    PRODUCTS,
    elementwise_name,
    kind,
    number,
    operation,
    reduced_by,
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
    put,
    taken,
)
from bayesbandit.inference.graph_analysis.walk import Walk

KEEPS = {"DeepCopyOp", "SpecifyShape", "Unbroadcast", "ViewOp", "SpecifyAssumptions", "Mark"}
SCALARS = {"ScalarFromTensor", "TensorFromScalar"}
ADDS = {"Add", "Sub", "Neg", "Identity", "Cast"}

Given = Sequence[Reach]


class Rows(Walk[Reach, Reach | None]):
    """What all nodes between `seeds` and `outputs` are. A rule says None where it mixes rows."""

    def __init__(self, outputs: Sequence[Variable], seeds: Mapping[Variable, Reach]) -> None:
        super().__init__(outputs, seeds)
        self.walk(self.nodes, self.values)

    def root(self, variable: Variable) -> Reach:
        return NONE

    def mixed(self, variable: Variable) -> str | None:
        """Return the operation by which a term of a log density is no product over rows, if any."""
        reach = self.of(variable)
        if reach.kind in (CONSTANT, ALONG, SUM):
            return None
        return reach.why or "the number of rows"

    def apart(self, variable: Variable) -> str | None:
        """Return why the i-th of some numbers is not of row i alone, or None if it is."""
        reach = self.of(variable)
        if reach.kind == CONSTANT:
            return "a number that was there before for each row"
        return None if reach.kind == ALONG else self.mixed(variable) or "a sum over rows"

    def visit(self, node: Apply, given: Given) -> Given:
        if all(reach.kind == CONSTANT for reach in given):
            return [NONE] * len(node.outputs)
        return [self.rule(node, given) or _blamed(node, given)] * len(node.outputs)

    def rule(self, node: Apply, given: Given) -> Reach | None:
        if kind(node) in ("check", "shape") or operation(node)[1] in KEEPS:
            return super().rule(node, given)
        if any(reach.kind == MIXED for reach in given):
            return None
        if isinstance(node.op, Blockwise):
            return self.blockwise(node, given)
        return super().rule(node, given)

    # ---- operations ------------------------------------------------------------------------------

    def blockwise(self, node: Apply, given: Given) -> Reach | None:
        """Interpret an operation on the last axes, the same for every place along those before
        them."""
        op: Any = node.op
        batch = op.batch_ndim(node)
        if all(r.kind == CONSTANT or (r.kind == ALONG and r.axis < batch) for r in given):
            return _aligned(node.inputs, given)
        plain = operation(node)[1] in PRODUCTS and not batch
        return self.product(node, given) if plain else None

    def elementwise(self, node: Apply, name: str, given: Given) -> Reach | None:
        kinds = {r.kind for r in given}
        if kinds <= {ALONG, CONSTANT}:
            return _aligned(node.inputs, given)
        if kinds in ({LENGTH}, {SHAPE}) and name in ("Cast", "Identity"):
            return given[0]
        if kinds == {LENGTH, CONSTANT} and name == "Mul":  # n · 1
            lengths = [r.kind == LENGTH for r in given]
            rest = [v for v, n in zip(node.inputs, lengths, strict=True) if not n]
            return NUMBER if sum(lengths) == 1 and all(number(v) == 1.0 for v in rest) else None
        if kinds == {SUM} and name in ADDS:
            return TOTAL
        if kinds == {SUM, CONSTANT}:
            sums = [r.kind == SUM for r in given]
            if name in ("Add", "Sub"):
                rest = [v for v, is_sum in zip(node.inputs, sums, strict=True) if not is_sum]
                return TOTAL if all(number(v) == 0.0 for v in rest) else None
            if (name == "Mul" and sum(sums) == 1) or (name == "TrueDiv" and sums == [True, False]):
                return TOTAL
            if name == "Second" and sums == [False, True]:
                return TOTAL
        return None

    def check(self, node: Apply, given: Given) -> Reach | None:
        return None if given[0].kind == MIXED else given[0]

    def reduction(self, node: Apply, given: Given) -> Reach | None:
        [reach], axes, adds = given, operation(node)[0].axis, reduced_by(node) == "Add"
        if reach.kind == SUM:
            return TOTAL if adds else None
        if reach.kind != ALONG:
            return None
        if axes is None or reach.axis in axes:
            return TOTAL if adds else None
        return Reach(ALONG, reach.axis - sum(a < reach.axis for a in axes))

    def shape(self, node: Apply, given: Given) -> Reach | None:
        """Interpret lengths; other axes' than the rows' are constants, even where rows are
        mixed."""
        [reach], op, name = given, *operation(node)
        if reach.kind in (SUM, LENGTH, SHAPE):
            return NONE
        if reach.kind in (ALONG, POSITION):
            if name == "Shape":
                return Reach(SHAPE, reach.axis)
            return NUMBER if op.i == reach.axis else NONE
        if name == "Shape_i" and node.inputs[0].type.shape[op.i] is not None:
            return NONE
        return None

    def take(self, node: Apply, given: Given) -> Reach | None:
        return taken(node, given)

    def put(self, node: Apply, given: Given) -> Reach | None:
        return put(node, given)

    def product(self, node: Apply, given: Given) -> Reach | None:
        """Interpret a sum over the axis that two arrays share."""
        (a, b), (left, right) = given, (v.type.ndim for v in node.inputs)
        inner = left - 1, max(right - 2, 0)  # the axes that are summed over
        if a.kind == ALONG and b.kind == CONSTANT:
            return Reach(ALONG, a.axis) if a.axis != inner[0] else None
        if b.kind == ALONG and a.kind == CONSTANT:
            return Reach(ALONG, left - 1 + b.axis - 1) if b.axis != inner[1] else None
        if a.kind == b.kind == ALONG and (a.axis, b.axis) == inner:
            return TOTAL
        return TOTAL if {a.kind, b.kind} == {SUM, CONSTANT} else None

    def cumulation(self, node: Apply, given: Given) -> Reach | None:
        [reach], axis = given, operation(node)[0].axis
        return reach if axis is not None and reach.kind == ALONG and axis != reach.axis else None

    def other(self, node: Apply, given: Given) -> Reach | None:
        op, name = operation(node)
        if name in KEEPS:
            return self.check(node, given)
        if name in SCALARS:
            return given[0] if given[0].kind in (LENGTH, SUM) else None
        if isinstance(op, DimShuffle):
            return _transposed(op, given[0])
        return RULES[name](node, given) if name in RULES else None


def _blamed(node: Apply, given: Given) -> Reach:
    """Return that rows are mixed: by this node, unless they were before."""
    before = next((r for r in given if r.kind == MIXED), None)
    if before is not None:
        return before
    name = elementwise_name(node.outputs[0]) or operation(node)[1]
    if name == "TrueDiv" and [r.kind for r in given] == [SUM, LENGTH]:
        return Reach(MIXED, why="mean over rows")
    return Reach(MIXED, why=name.lower())


def _aligned(inputs: Sequence[Variable], given: Given) -> Reach | None:
    """Return what arrays are that are broadcast together: along the one axis that is the rows' in
    all that have one, and of length 1 in the others."""
    axes = {r.axis for r in given if r.kind in (ALONG, POSITION)}
    if len(axes) != 1 or any(r.kind not in (ALONG, CONSTANT) for r in given):
        return None
    [axis] = axes
    for v, r in zip(inputs, given, strict=True):
        if r.kind == CONSTANT and v.type.ndim > axis and v.type.shape[axis] != 1:
            return None
    return Reach(ALONG, axis)


def _transposed(op: DimShuffle, reach: Reach) -> Reach | None:
    if reach.kind in (SUM, LENGTH):
        return reach
    if reach.kind not in (ALONG, POSITION) or reach.axis not in op.new_order:
        return None
    return Reach(ALONG if reach.kind == ALONG else MIXED, list(op.new_order).index(reach.axis))
