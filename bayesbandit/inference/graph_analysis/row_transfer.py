"""How rows fare where an array is filled, joined, reshaped, indexed or set: see `rows`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pytensor.graph.basic import Apply, Constant
from pytensor.tensor.subtensor import indices_from_subtensor

from bayesbandit.inference.graph_analysis.operations import PUTS, TAKES, number

CONSTANT, ALONG, SUM, LENGTH, SHAPE, POSITION, MIXED = (
    *("constant", "along", "sum", "length", "shape", "position", "mixed"),
)


@dataclass(frozen=True)
class Reach:
    """What a node is. axis: of the rows, where it is ALONG them, or of a shape's entry that is
    their number. why: the operation that mixed them."""

    kind: str
    axis: int = 0
    why: str = ""


NONE, TOTAL, NUMBER, COUNT = Reach(CONSTANT), Reach(SUM), Reach(LENGTH), Reach(POSITION)


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
    """A reshape that leaves the rows, the first axis but for axes of length 1, alone."""
    array, shape = reach
    if array.kind == SUM and shape.kind == CONSTANT:
        return TOTAL
    if array.kind != ALONG or any(k != 1 for k in node.inputs[0].type.shape[: array.axis]):
        return None
    if shape.kind == SHAPE:
        return Reach(ALONG, 0) if shape.axis == 0 else None
    target = node.outputs[0].type.shape[1:]
    source = node.inputs[0].type.shape[array.axis + 1 :]
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
    k = number(indices[0])
    if k is None or k < 0:
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
    first, _, by = node.inputs
    return COUNT if (number(first), number(by)) == (0.0, 1.0) else None


def _cumulated(node: Apply, reach: Sequence[Reach]) -> Reach | None:
    axis = node.op.axis
    other = axis is not None and reach[0].kind == ALONG and axis != reach[0].axis
    return reach[0] if other else None


RULES = {
    "Alloc": _filled, "ARange": _counted, "CumOp": _cumulated, "Join": _joined,
    "MakeVector": _stacked, "Reshape": _reshaped, "Split": _split,
    **dict.fromkeys(TAKES, _taken), **dict.fromkeys(PUTS, _put),
}  # fmt: skip
