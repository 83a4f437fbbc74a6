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
from dataclasses import dataclass
from typing import Any

import numpy as np
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.traversal import toposort
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.basic import get_underlying_scalar_constant_value
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.exceptions import NotScalarConstantError
from pytensor.tensor.subtensor import indices_from_subtensor

from bayesbandit.engines.structure import PRODUCTS, PUTS, TAKES, operation

CONSTANT, ALONG, SUM, LENGTH, SHAPE, POSITION, MIXED = (
    *("constant", "along", "sum", "length", "shape", "position", "mixed"),
)
KEEPS = {"DeepCopyOp", "SpecifyShape", "Unbroadcast", "ViewOp", "SpecifyAssumptions", "Mark"}
SCALARS = {"ScalarFromTensor", "TensorFromScalar"}
ADDS = {"Add", "Sub", "Neg", "Identity", "Cast"}


@dataclass(frozen=True)
class Reach:
    """What a node is. axis: of the rows, where it is ALONG them, or of a shape's entry that is
    their number. why: the operation that mixed them."""

    kind: str
    axis: int = 0
    why: str = ""


NONE, TOTAL, NUMBER, COUNT = Reach(CONSTANT), Reach(SUM), Reach(LENGTH), Reach(POSITION)


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

    def _visit(self, node: Apply) -> None:
        inputs = [self.of(v) for v in node.inputs]
        op, name = operation(node)
        if all(reach.kind == CONSTANT for reach in inputs):
            return
        if isinstance(op, OpFromGraph) and not isinstance(node.op, Blockwise):
            inner = Rows(op.inner_outputs, dict(zip(op.inner_inputs, inputs, strict=True)))
            for outer, v in zip(node.outputs, op.inner_outputs, strict=True):
                self._reach[outer] = inner.of(v)
            return
        reach = transfer(node, inputs) or _blamed(node, inputs, name)
        for v in node.outputs:
            self._reach[v] = reach


def _blamed(node: Apply, inputs: Sequence[Reach], name: str) -> Reach:
    """Rows are mixed: by this node, unless they were before."""
    before = next((r for r in inputs if r.kind == MIXED), None)
    if before is not None:
        return before
    if isinstance(node.op, Elemwise):
        name = type(node.op.scalar_op).__name__
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
    rule = _RULES.get(name)
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
    name = type(node.op.scalar_op).__name__
    kinds = {r.kind for r in reach}
    if kinds <= {ALONG, CONSTANT}:
        return _aligned(node.inputs, reach)
    if kinds == {LENGTH} and name in ("Cast", "Identity"):
        return NUMBER
    if kinds == {SUM} and name in ADDS:
        return TOTAL
    if kinds == {SUM, CONSTANT}:
        sums = [r.kind == SUM for r in reach]
        if name in ("Add", "Sub"):
            rest = [v for v, is_sum in zip(node.inputs, sums, strict=True) if not is_sum]
            return TOTAL if all(_zero(v) for v in rest) else None
        if (name == "Mul" and sum(sums) == 1) or (name == "TrueDiv" and sums == [True, False]):
            return TOTAL
        if name == "Second" and sums == [False, True]:
            return TOTAL
    return None


def _zero(variable: Variable) -> bool:
    try:
        return float(get_underlying_scalar_constant_value(variable)) == 0.0
    except NotScalarConstantError:
        return False


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


def _filled(node: Apply, reach: Sequence[Reach]) -> Reach | None:
    """Alloc: a value, repeated to lengths of which one may be the number of rows."""
    value, *lengths = reach
    lead = len(lengths) - node.inputs[0].type.ndim
    at = [i for i, r in enumerate(lengths) if r.kind != CONSTANT]
    if any(lengths[i].kind != LENGTH for i in at) or len(at) > 1:
        return None
    if value.kind == ALONG:
        return Reach(ALONG, value.axis + lead) if at in ([], [value.axis + lead]) else None
    if value.kind != CONSTANT or not at:
        return None
    own = at[0] - lead
    repeated = own < 0 or node.inputs[0].type.shape[own] == 1
    return Reach(ALONG, at[0]) if repeated else None


def _joined(node: Apply, reach: Sequence[Reach]) -> Reach | None:
    axes = {r.axis for r in reach}
    if any(r.kind != ALONG for r in reach) or axes == {node.op.axis} or len(axes) != 1:
        return None
    return reach[0]


def _split(node: Apply, reach: Sequence[Reach]) -> Reach | None:
    if reach[0].kind != ALONG or any(r.kind != CONSTANT for r in reach[1:]):
        return None
    return reach[0] if node.op.axis != reach[0].axis else None


def _stacked(node: Apply, reach: Sequence[Reach]) -> Reach | None:
    """MakeVector: of lengths a shape, of sums a vector of sums."""
    if all(r.kind in (SUM,) for r in reach):
        return TOTAL
    at = [i for i, r in enumerate(reach) if r.kind != CONSTANT]
    return Reach(SHAPE, at[0]) if len(at) == 1 and reach[at[0]].kind == LENGTH else None


def _reshaped(node: Apply, reach: Sequence[Reach]) -> Reach | None:
    """A reshape that leaves the rows, the first axis, alone."""
    array, shape = reach
    if array.kind == SUM and shape.kind == CONSTANT:
        return TOTAL
    if array.kind != ALONG or array.axis != 0:
        return None
    if shape.kind == SHAPE:
        return Reach(ALONG, 0) if shape.axis == 0 else None
    target = node.outputs[0].type.shape[1:]
    source = node.inputs[0].type.shape[1:]
    if shape.kind != CONSTANT or not isinstance(node.inputs[1], Constant):
        return None
    sizes = [int(k) for k in node.inputs[1].data]
    known = None not in source and None not in target and sizes[:1] == [-1]
    return Reach(ALONG, 0) if known and np.prod(source) == np.prod(target) else None


def _full(index: Any) -> bool:
    """Whether an index takes all, in order."""
    return isinstance(index, slice) and index == slice(None)


def _indices(node: Apply, values: int, reach: Sequence[Reach]) -> tuple[list[Any], list[Reach]]:
    """A node's indices, and what those that are not slices are; slices' bounds must be constant."""
    found = list(indices_from_subtensor(node.inputs[values:], node.op.idx_list))
    by = dict(zip(node.inputs[values:], reach[values:], strict=True))
    for index in found:
        if isinstance(index, slice):
            for bound in (index.start, index.stop, index.step):
                if bound is not None and by[bound].kind != CONSTANT:
                    return [], []
    return found, [NONE if isinstance(i, slice) else by[i] for i in found]


def _taken(node: Apply, reach: Sequence[Reach]) -> Reach | None:
    """Parts of an array by constants, and of parameters by each row's own index."""
    array = reach[0]
    indices, kinds = _indices(node, 1, reach)
    if not indices:
        return None
    if array.kind == SHAPE:
        return _entry(indices, array.axis)
    if array.kind == SUM:
        return TOTAL if all(r.kind == CONSTANT for r in kinds) else None
    arrays = [i for i, v in enumerate(indices) if not isinstance(v, slice) and v.type.ndim]
    scalars = [i for i, v in enumerate(indices) if not isinstance(v, slice) and not v.type.ndim]
    if array.kind == ALONG:
        row = array.axis
        if len(indices) > row and not _full(indices[row]):
            picks = kinds[row].kind == POSITION and arrays == [row, row + 1]
            own = picks and kinds[row + 1].kind in (ALONG, CONSTANT) and not scalars
            return Reach(ALONG, row) if own and _one_each(indices, kinds, row) else None
        if any(r.kind != CONSTANT for r in kinds) or len(arrays) > 1 or (arrays and scalars):
            return None
        before = sum(indices[i].type.ndim - 1 for i in arrays if i < row)
        return Reach(ALONG, row + before - sum(i < row for i in scalars))
    if array.kind != CONSTANT or not arrays or scalars or arrays[-1] - arrays[0] + 1 != len(arrays):
        return None
    widest = max(indices[i].type.ndim for i in arrays)
    joint = []
    for i in arrays:
        r = kinds[i]
        if r.kind == ALONG:
            joint.append(Reach(ALONG, r.axis + widest - indices[i].type.ndim))
        elif r.kind == CONSTANT and indices[i].type.shape[0] == 1 and indices[i].type.ndim == 1:
            continue
        else:
            return None
    if len(set(joint)) != 1:
        return None
    return Reach(ALONG, arrays[0] + joint[0].axis)


def _one_each(indices: list[Any], kinds: list[Reach], row: int) -> bool:
    """Whether row i takes what its own index says: x[0, 1, 2, …; k_0, k_1, k_2, …]."""
    other, reach = indices[row + 1], kinds[row + 1]
    if reach.kind == CONSTANT and other.type.shape != (1,):
        return False
    return bool(indices[row].type.ndim == 1 and other.type.ndim == 1)


def _entry(indices: list[Any], at: int) -> Reach | None:
    """One entry of a shape."""
    if len(indices) != 1 or isinstance(indices[0], slice):
        return None
    try:
        k = int(get_underlying_scalar_constant_value(indices[0]))
    except NotScalarConstantError:
        return None
    if k < 0:
        return None
    return NUMBER if k == at else NONE


def _put(node: Apply, reach: Sequence[Reach]) -> Reach | None:
    """Columns of an array along the rows, set by what is along them too."""
    array, value = reach[:2]
    indices, kinds = _indices(node, 2, reach)
    if not indices or array.kind != ALONG or any(r.kind != CONSTANT for r in kinds):
        return None
    row = array.axis
    if len(indices) > row and not _full(indices[row]):
        return None
    if value.kind == CONSTANT:
        flat = node.inputs[1].type.ndim == 0 or set(node.inputs[1].type.shape) == {1}
        return array if flat else None
    whole = all(isinstance(i, slice) or not i.type.ndim for i in indices)
    dropped = sum(not isinstance(i, slice) for i in indices[:row])
    left = node.inputs[0].type.ndim - sum(not isinstance(i, slice) for i in indices)
    same = node.inputs[1].type.ndim == left and value.axis == row - dropped
    return array if value.kind == ALONG and whole and same else None


def _counted(node: Apply, reach: Sequence[Reach]) -> Reach | None:
    """ARange: 0, 1, 2, … as far as there are rows."""
    start, stop, step = reach
    if (start.kind, stop.kind, step.kind) != (CONSTANT, LENGTH, CONSTANT):
        return None
    try:
        first, by = (float(get_underlying_scalar_constant_value(node.inputs[i])) for i in (0, 2))
    except NotScalarConstantError:
        return None
    return COUNT if (first, by) == (0.0, 1.0) else None


def _cumulated(node: Apply, reach: Sequence[Reach]) -> Reach | None:
    axis = node.op.axis
    other = axis is not None and reach[0].kind == ALONG and axis != reach[0].axis
    return reach[0] if other else None


_RULES = {
    "Alloc": _filled, "ARange": _counted, "CumOp": _cumulated, "Join": _joined,
    "MakeVector": _stacked, "Reshape": _reshaped, "Split": _split,
    **dict.fromkeys(TAKES, _taken), **dict.fromkeys(PUTS, _put),
}  # fmt: skip
