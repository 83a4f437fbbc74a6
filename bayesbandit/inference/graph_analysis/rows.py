"""An analysis of rows: which numbers of a graph depend on a single row of the data.

Each variable is

    CONSTANT   without rows: parameters, numbers, and what is computed of them
    ALONG      an array with one axis for the rows; the value at row i is a function of row i's
               data, the same for every i
    SUM        a sum over the rows of such a function
    LENGTH     the number of rows, and SHAPE a shape of which it is an entry
    POSITION   0, 1, 2, … along the rows
    MIXED      anything else: shifts, sorts, means over rows, pairs of rows, a use of the number of
               rows, constants that stand beside the rows one for one

It is sound: an operation without a rule makes rows mixed. A likelihood whose terms are ALONG or SUM
is a product over rows, whatever the rows are; statistics of batches then add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.subtensor import indices_from_subtensor

from bayesbandit.inference.graph_analysis.operations import (
    MATRIX_PRODUCTS,
    elementwise_name,
    kind,
    number,
    operation,
    reduced_by,
)
from bayesbandit.inference.graph_analysis.walk import Walk

if TYPE_CHECKING:
    from bayesbandit.inference.graph_analysis.density import Density

CONSTANT = "constant"
ALONG = "along"
SUM = "sum"
LENGTH = "length"
SHAPE = "shape"
POSITION = "position"
MIXED = "mixed"


@dataclass(frozen=True)
class Reach:
    """How a node depends on rows: its kind, see above.

    axis: the axis of the rows, for ALONG; or the entry of a shape that is their number. why: the
    operation that mixed rows.
    """

    kind: str
    axis: int = 0
    why: str = ""


NONE = Reach(CONSTANT)
TOTAL = Reach(SUM)
NUMBER = Reach(LENGTH)
COUNT = Reach(POSITION)
DATA_ROW = Reach(ALONG, 0)


def _filled(node: Apply, reach: Sequence[Reach]) -> Reach | None:
    """Interpret Alloc: a value repeated to given lengths, one of which may be the number of
    rows."""
    # at most one length may be that of the rows: an array (n, n) pairs rows
    value, *lengths = reach
    lead = len(lengths) - node.inputs[0].type.ndim
    at = [i for i, r in enumerate(lengths) if r.kind != CONSTANT]
    if any(lengths[i].kind != LENGTH for i in at) or len(at) > 1:
        return None
    if value.kind == ALONG:
        return Reach(ALONG, value.axis + lead) if at in ([], [value.axis + lead]) else None
    if value.kind != CONSTANT or not at:
        return None
    axis = at[0] - lead
    repeated = axis < 0 or node.inputs[0].type.shape[axis] == 1
    return Reach(ALONG, at[0]) if repeated else None


def _reshaped(node: Apply, reach: Sequence[Reach]) -> Reach | None:
    """Interpret a reshape that keeps the axis of the rows first, except for axes of length 1."""
    array, shape = reach
    if array.kind == POSITION:
        return COUNT if _is_column(node.inputs[1]) else None
    if array.kind != ALONG or any(k != 1 for k in node.inputs[0].type.shape[: array.axis]):
        return None
    if shape.kind == SHAPE:
        return Reach(ALONG, 0) if shape.axis == 0 else None
    target = node.outputs[0].type.shape[1:]
    source = node.inputs[0].type.shape[array.axis + 1 :]
    if shape.kind != CONSTANT or not isinstance(node.inputs[1], Constant):
        return None
    # (−1, k, …): −1 takes what is left, which is n if the other axes hold as much as before
    sizes = [int(k) for k in node.inputs[1].data]
    known = None not in source and None not in target and sizes[:1] == [-1]
    return Reach(ALONG, 0) if known and np.prod(source) == np.prod(target) else None


def _is_column(shape: Variable) -> bool:
    """Return whether a shape is (−1, 1, …, 1)."""
    sizes = shape.data.tolist() if isinstance(shape, Constant) else []
    return bool(sizes) and sizes == [-1] + [1] * (len(sizes) - 1)


def taken(node: Apply, reach: Sequence[Reach]) -> Reach | None:
    """Interpret parts of an array that are taken by constants, or of parameters by each row's own
    index."""
    array = reach[0]
    indices = list(indices_from_subtensor(node.inputs[1:], node.op.idx_list))
    by = dict(zip(node.inputs[1:], reach[1:], strict=True))
    slices = [index for index in indices if isinstance(index, slice)]
    bounds = {v for index in slices for v in (index.start, index.stop, index.step)} - {None}
    if any(by[v].kind != CONSTANT for v in bounds):
        return None
    picked = {i: v for i, v in enumerate(indices) if not isinstance(v, slice)}
    at = {i: by[v] for i, v in picked.items()}
    fixed = all(r.kind == CONSTANT for r in at.values())
    if array.kind == SHAPE:
        return _entry(indices, array.axis, node.inputs[0].type.shape[0])
    if array.kind == SUM:
        return TOTAL if fixed else None
    arrays = [i for i, v in picked.items() if v.type.ndim]
    if array.kind == ALONG:
        row = array.axis
        if len(indices) <= row or indices[row] == slice(None):
            # constants pick along other axes, the same for every row
            plain = fixed and (not arrays or len(at) == 1)
            moved = sum(v.type.ndim - 1 for i, v in picked.items() if i < row)
            return Reach(ALONG, row + moved) if plain else None
        # x[i, k_i] for row i: 0, 1, 2, … along the rows beside an index of each
        picks = list(at) == arrays == [row, row + 1] and at[row].kind == POSITION
        return Reach(ALONG, row) if picks and _one_each(indices, at[row + 1], row) else None
    adjacent = bool(at) and max(at) - min(at) + 1 == len(at)
    if array.kind != CONSTANT or not arrays or not adjacent:
        return None
    # θ[k_i]: parameters picked by each row's own index, such as its arm
    found = _aligned([picked[i] for i in arrays], [at[i] for i in arrays])
    apart = found is not None and all(r.kind == CONSTANT for i, r in at.items() if i not in arrays)
    return Reach(ALONG, min(at) + found.axis) if found and apart else None


def _one_each(indices: list[Any], reach: Reach, row: int) -> bool:
    """Return whether row i takes the element at its own index: x[0, 1, 2, …; k_0, k_1, k_2, …].

    The numbers of the rows may be a column (n, 1), as in `take_along_axis`.
    """
    ndim = indices[row].type.ndim
    other = indices[row + 1].type
    if reach.kind == CONSTANT:
        return bool(ndim == 1 and other.shape == (1,))
    return bool(reach.kind == ALONG and ndim == other.ndim and reach.axis == 0)


def _entry(indices: list[Any], at: int, length: int | None) -> Reach | None:
    """Interpret one entry of a shape."""
    if len(indices) != 1 or isinstance(indices[0], slice) or length is None:
        return None
    k = number(indices[0])
    if k is None or not -length <= k < length:
        return None
    return NUMBER if k % length == at else NONE


ROW_PRESERVING = {
    "DeepCopyOp",
    "SpecifyShape",
    "Unbroadcast",
    "ViewOp",
    "SpecifyAssumptions",
    "Mark",
}
ADDITIVE = {"Add", "Sub", "Neg", "Identity", "Cast"}

Given = Sequence[Reach]


class RowWalk(Walk[Reach]):
    """The kinds of all nodes between `seeds` and `outputs`."""

    constant = NONE

    def mixed(self, variable: Variable) -> str | None:
        """Return the operation that keeps a term of a log density from being a product over rows,
        if any."""
        reach = self.of(variable)
        if reach.kind in (CONSTANT, ALONG, SUM):
            return None
        return reach.why or "the number of rows"

    def apart(self, variable: Variable) -> str | None:
        """Return why the i-th of some numbers does not depend on row i alone; None if it does."""
        reach = self.of(variable)
        if reach.kind == CONSTANT:
            return "a number that was there before for each row"
        return None if reach.kind == ALONG else self.mixed(variable) or "a sum over rows"

    def visit(self, node: Apply, given: Given) -> Given:
        # what no row enters is the same whatever the rows are
        if all(reach.kind == CONSTANT for reach in given):
            return [NONE] * len(node.outputs)
        return [self.rule(node, given) or _blamed(node, given)] * len(node.outputs)

    def rule(self, node: Apply, given: Given) -> Reach | None:
        """Return the kind of a node's outputs given those of its inputs; None if it mixes rows."""
        op, name = operation(node)
        what = kind(node)
        if what == "check" or name in ROW_PRESERVING:
            return None if given[0].kind == MIXED else given[0]
        if what == "shape":
            return _length(node, *given)
        if any(reach.kind == MIXED for reach in given):
            return None
        if isinstance(node.op, Blockwise):
            return _blockwise(node, node.op, given)
        match what:
            case "elementwise":
                return _elementwise(node, given)
            case "reduction":
                return _reduced(given[0], op.axis, reduced_by(node) == "Add")
            case "take":
                return taken(node, given)
            case "product":
                return _product(node, given)
            case "cumulation":
                [reach] = given
                # sums along another axis than the rows are of each row alone
                along = op.axis is not None and reach.kind == ALONG and op.axis != reach.axis
                return reach if along else None
        first, *others = given
        match name:
            case "ScalarFromTensor" | "TensorFromScalar":
                return first if first.kind in (LENGTH, SUM) else None
            case "DimShuffle":
                return _transposed(op, first)
            case "Alloc":
                return _filled(node, given)
            case "Reshape":
                return _reshaped(node, given)
            case "Join" | "Split":
                # side by side along another axis, row i stands beside row i
                apart = first.kind == ALONG and op.axis != first.axis
                beside = first if name == "Join" else NONE  # of a split, the lengths of its parts
                return first if apart and all(r == beside for r in others) else None
            case "MakeVector":  # sums give a vector of sums, lengths a shape
                at = [i for i, r in enumerate(given) if r.kind != CONSTANT]
                if all(r.kind == SUM for r in given):
                    return TOTAL
                return Reach(SHAPE, at[0]) if len(at) == 1 and given[at[0]] == NUMBER else None
            case "ARange":  # 0, 1, 2, … up to the number of rows
                start, _, step = map(number, node.inputs)
                return COUNT if (start, given[1], step) == (0.0, NUMBER, 1.0) else None
        return None


def _blockwise(node: Apply, op: Blockwise, given: Given) -> Reach | None:
    """Interpret an operation on the last axes that is the same along the axes before."""
    batch = op.batch_ndim(node)
    # the rows are among the axes along which the operation repeats: once for each row
    if all(r.kind == CONSTANT or (r.kind == ALONG and r.axis < batch) for r in given):
        return _aligned(node.inputs, given)
    plain = operation(node)[1] in MATRIX_PRODUCTS and not batch
    return _product(node, given) if plain else None


def _elementwise(node: Apply, given: Given) -> Reach | None:
    """Interpret an operation on numbers, applied to broadcast arrays."""
    name = elementwise_name(node.outputs[0])
    constants = [number(v) for v, r in zip(node.inputs, given, strict=True) if r.kind == CONSTANT]
    kinds = {r.kind for r in given} - {CONSTANT}
    alone = len(given) - len(constants) == 1
    if kinds == {ALONG}:
        return _aligned(node.inputs, given)
    if kinds in ({LENGTH}, {SHAPE}, {POSITION}):
        # n + 1 or n / 2 would tell rows apart by how many there are; n alone is a length
        same = name in ("Cast", "Identity") or (name == "Mul" and set(constants) == {1.0})
        return next(r for r in given if r.kind != CONSTANT) if same and alone else None
    if kinds != {SUM}:
        return None
    # Σ f + Σ g = Σ (f + g); but 2 + Σ f counts its 2 once, however many batches there are
    if name in ADDITIVE:
        return TOTAL if set(constants) <= {0.0} else None
    last = given[-1].kind == SUM
    # c Σ f = Σ c f; the product of two sums pairs all rows
    multiple = name == "Mul" or (name == "TrueDiv" and not last) or (name == "Second" and last)
    return TOTAL if multiple and alone else None


def _reduced(reach: Reach, axes: Sequence[int] | None, adds: bool) -> Reach | None:
    if reach.kind == SUM:
        return TOTAL if adds else None
    if reach.kind != ALONG:
        return None
    # a sum over the rows adds up over batches; a product, a maximum or a mean does not
    if axes is None or reach.axis in axes:
        return TOTAL if adds else None
    return Reach(ALONG, reach.axis - sum(a < reach.axis for a in axes))


def _length(node: Apply, reach: Reach) -> Reach | None:
    """Interpret a shape or one of its numbers. Lengths of other axes than the rows are constants,
    even if rows are mixed."""
    op, name = operation(node)
    if reach.kind in (SUM, LENGTH, SHAPE):
        return NONE
    if reach.kind in (ALONG, POSITION):
        if name == "Shape":
            return Reach(SHAPE, reach.axis)
        return NUMBER if op.i == reach.axis else NONE
    if name == "Shape_i" and node.inputs[0].type.shape[op.i] is not None:
        return NONE
    return None


def _product(node: Apply, given: Given) -> Reach | None:
    """Interpret a sum over the axis that two arrays share."""
    a, b = given
    left, right = (v.type.ndim for v in node.inputs)
    inner = left - 1, max(right - 2, 0)  # the axes that are summed over
    if a.kind == ALONG and b.kind == CONSTANT:
        return Reach(ALONG, a.axis) if a.axis != inner[0] else None
    if b.kind == ALONG and a.kind == CONSTANT:
        return Reach(ALONG, left - 1 + b.axis - 1) if b.axis != inner[1] else None
    # Σ_i a_i b_i, over the axis of the rows: a sum; over another axis both would have to be apart
    if a.kind == b.kind == ALONG and (a.axis, b.axis) == inner:
        return TOTAL
    # A Σ_i f_i = Σ_i A f_i
    return TOTAL if {a.kind, b.kind} == {SUM, CONSTANT} else None


def _blamed(node: Apply, given: Given) -> Reach:
    """Return the kind of mixed rows: by this node, unless they were mixed before."""
    before = next((r for r in given if r.kind == MIXED), None)
    if before is not None:
        return before
    name = elementwise_name(node.outputs[0]) or operation(node)[1]
    if name == "TrueDiv" and [r.kind for r in given] == [SUM, LENGTH]:
        return Reach(MIXED, why="mean over rows")
    return Reach(MIXED, why=name.lower())


def _aligned(inputs: Sequence[Variable], given: Given) -> Reach | None:
    """Return the kind of arrays that are broadcast together.

    The axis of the rows must be the same in all arrays that have one, and of length 1 in the
    others.
    """
    # broadcast together, row i meets row i if all arrays have the rows along one axis
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
    if reach.kind == SHAPE and not op.new_order:  # of a vector
        return NUMBER
    if reach.kind not in (ALONG, POSITION) or reach.axis not in op.new_order:
        return None
    # axes of length 1 come and go; that of the rows has a new place
    return Reach(ALONG if reach.kind == ALONG else MIXED, list(op.new_order).index(reach.axis))


def not_additive(density: Density) -> str:
    """Return why statistics of batches of rows do not add up; "" where they do, whatever the rows
    are."""
    if why := not_apart(density):
        return f"the mean reward of a row depends on other rows: {why}"
    if why := mixed([term.graph for term in density.terms if term.on_data], density):
        return f"the likelihood of rows together is not the product of theirs apart: {why}"
    return ""


def not_apart(density: Density) -> str | None:
    """Return the operation by which a row's mean reward is not of this row alone, if there is
    one."""
    seeds = dict.fromkeys(density.inputs.values(), DATA_ROW)
    return RowWalk([density.mean], seeds).apart(density.mean)


def mixed(graphs: list[Variable], density: Density) -> str | None:
    """Return the operation that mixes the rows in one of these graphs, if there is one."""
    # a variable with a value for each row is as one of their data
    by_row = [v for v in density.values.values() if v.type.shape == (None,)]
    along = [*density.inputs.values(), density.mean_input, *by_row]
    rows = RowWalk(graphs, dict.fromkeys(along, DATA_ROW))
    return next((why for g in graphs if (why := rows.mixed(g))), None)
