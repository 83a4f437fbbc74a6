"""Bounds of a graph's values at given rows, whatever its variables are: interval arithmetic.

Each node is a pair of arrays, the least and the greatest that each of its numbers can be. A log
density that is at most −∞ is that of an impossible row. Sound: what an operation that is not in the
tables here makes of variables is not bounded. Variables and parameters are finite, so that −∞ in
a sum makes it −∞, and 0 in a product 0; NaN, of numbers that are known, is no density either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.traversal import ancestors
from pytensor.scalar import basic as scalar
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.type import TensorType

from bayesbandit.inference.graph_analysis.operations import (
    SHAPES,
    elementwise_name,
    kind,
    operation,
    reduced_by,
)
from bayesbandit.inference.graph_analysis.walk import Walk

UP, DOWN = (1,), (-1,)
MONOTONE = {  # +1: increasing in an argument, −1: decreasing; the last holds for all that follow
    **dict.fromkeys(("Exp", "Expm1", "Log", "Log2", "Log10", "Log1p", "Sqrt", "Sigmoid"), UP),
    **dict.fromkeys(("Softplus", "Tanh", "ArcTan", "Erf", "Identity", "Second", "Floor"), UP),
    **dict.fromkeys(("Ceil", "Trunc", "RoundHalfToEven", "Maximum", "Minimum", "Clip"), UP),
    **dict.fromkeys(("Add", "AND", "OR"), UP),
    **dict.fromkeys(("Neg", "Invert", "Erfc", "Log1mexp"), DOWN),
    **dict.fromkeys(("Sub", "GT", "GE"), (1, -1)),
    **dict.fromkeys(("LT", "LE"), (-1, 1)),
}
ARITHMETIC = {"Add", "Sub", "Mul", "TrueDiv", "Neg", "Sqr", "Abs", "Exp", "Log", "Log1p", "Pow"}
EDGES = (  # operations by which a support ends
    *(scalar.LogicalComparison, scalar.FixedLogicalComparison, scalar.Maximum, scalar.Minimum),
    *(scalar.Clip, scalar.Log, scalar.Log2, scalar.Log10, scalar.Log1p, scalar.Sqrt),
)


@dataclass(frozen=True)
class Interval:
    """Arrays of one shape. Each number lies between them, or is NaN if both are NaN."""

    low: np.ndarray
    high: np.ndarray

    @property
    def known(self) -> np.ndarray:
        """Where there is only one number."""
        return np.asarray((self.low == self.high) | self.lost)

    @property
    def lost(self) -> np.ndarray:
        """Where the number is NaN."""
        return np.asarray((self.low != self.low) & (self.high != self.high))

    @property
    def impossible(self) -> np.ndarray:
        """Where a log density can only be −∞ or NaN."""
        return np.asarray(self.lost | (self.high == -np.inf))


class Bounds(Walk[Interval | None]):
    """The bounds of the nodes between `given` (by variable) and `outputs`; None if not even the
    shape is known."""

    def __init__(self, outputs: Sequence[Variable], given: Mapping[Variable, Interval]) -> None:
        super().__init__(outputs, given)
        with np.errstate(all="ignore"):
            self.walk(self.nodes, self.values)

    def truth(self, variable: Variable) -> bool | None:
        """Return the one number of a condition, or None if there may be several."""
        bounds = self.of(variable)
        if bounds is None or bounds.low.size != 1 or not bounds.known.all():
            return None
        return bool(bounds.low)

    def root(self, variable: Variable) -> Interval | None:
        return point(variable.data) if isinstance(variable, Constant) else None

    def visit(self, node: Apply, given: Sequence[Interval | None]) -> Sequence[Interval | None]:
        if kind(node) == "check":
            return [given[0]]
        if kind(node) == "shape":
            return [_shape(node, *given)]
        bounds = [v for v in given if v is not None]
        if len(bounds) < len(given) or len(node.outputs) > 1:
            return [None] * len(node.outputs)
        if kind(node) != "elementwise" and all(v.known.all() for v in bounds):
            value = _computed(node, [v.low for v in bounds])
            return [None if value is None else point(value)]
        return [self.rule(node, bounds)]

    def rule(self, node: Apply, given: Sequence[Interval]) -> Interval | None:
        """Return the bounds of a node's output, given those of its inputs."""
        match kind(node), operation(node)[1]:
            case "elementwise", _:
                return _elementwise(node, elementwise_name(node.outputs[0]), given)
            case "reduction", _:
                return _reduced(node, given)
            case "put", _:
                return _moved(node, given, 2)
            case ("move", ("Join" | "MakeVector")):
                return _moved(node, given, len(given))
            case (("move" | "take" | "cumulation"), name) if name != "SpecifyAssumptions":
                return _moved(node, given, 1)
        return _unbounded(node, given)


def _shape(node: Apply, given: Interval | None) -> Interval | None:
    op, name = operation(node)
    if given is None:
        return None
    return point(np.asarray(given.low.shape[op.i] if name == "Shape_i" else given.low.shape))


def _moved(node: Apply, given: Sequence[Interval], values: int) -> Interval | None:
    """Interpret operations that rearrange or add the first inputs; the other inputs say where."""
    if not all(v.known.all() for v in given[values:]):
        return _unbounded(node, given)
    low, high = _computed(node, [v.low for v in given]), _computed(node, [v.high for v in given])
    return None if low is None or high is None else Interval(low, high)


def _unbounded(node: Apply, given: Sequence[Interval]) -> Interval | None:
    """Interpret any operation by the shape of its value alone."""
    some = [np.where(v.known, v.low, np.ones((), v.low.dtype)) for v in given]
    value = _computed(node, some)
    return None if value is None else between(value.shape, value.dtype)


def point(value: ArrayLike) -> Interval:
    """Return the interval of a known value."""
    return Interval(np.asarray(value), np.asarray(value))


def between(
    shape: tuple[int, ...], dtype: DTypeLike, low: float = -np.inf, high: float = np.inf
) -> Interval:
    """Return the interval of all numbers from low to high that the type can hold."""
    kind = np.dtype(dtype).kind
    if kind in "iub":
        ends = (0, 1) if kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        low, high = max(low, ends[0]), min(high, ends[1])
    return Interval(np.full(shape, low, dtype), np.full(shape, high, dtype))


def _computed(node: Apply, values: Sequence[np.ndarray]) -> np.ndarray | None:
    """Return a node's value; None if the operation fails, or if the value is not a plain array."""
    given = list(zip(node.inputs, values, strict=True))
    if not all(isinstance(v.type, TensorType | scalar.ScalarType) for v in node.inputs):
        return None
    storage: dict[Any, list[Any]] = {v: [np.asarray(a, v.type.dtype)] for v, a in given}
    storage |= {v: [None] for v in node.outputs}
    done = {v: [v in node.inputs] for v in storage}
    try:
        node.op.make_thunk(node, storage, done, [], impl="py")()
    except (ValueError, TypeError, NotImplementedError, IndexError, AssertionError):
        return None
    return np.asarray(storage[node.outputs[0]][0])


def _elementwise(node: Apply, name: str, given: Sequence[Interval]) -> Interval | None:
    dtype = node.outputs[0].type.dtype
    plain = _computed(node, [v.low for v in given])
    if plain is None:
        return None
    known = np.logical_and.reduce(np.broadcast_arrays(*(v.known for v in given)))
    known = np.broadcast_to(known, plain.shape)
    if known.all():
        return point(plain)
    loose = between(plain.shape, dtype)
    bounded = dtype == "bool" or np.dtype(dtype).kind == "f" or name in ("Switch", "Second")
    ends = _between(node, name, given) if bounded else None
    low, high = ends or (loose.low, loose.high)
    odd = (low != low) | (high != high)  # NaN, somewhere between the bounds
    low, high = np.where(odd, loose.low, low), np.where(odd, loose.high, high)
    if name in ("Add", "Sub"):
        for v, sign in zip(given, (1, -1 if name == "Sub" else 1, *[1] * len(given)), strict=False):
            sure = v.known & np.isinf(v.low)  # and the others are finite
            low, high = (np.where(sure, sign * v.low, end) for end in (low, high))
    if name in ARITHMETIC:
        lost = np.logical_or.reduce(np.broadcast_arrays(*(v.lost for v in given)))
        low, high = np.where(lost, np.nan, low), np.where(lost, np.nan, high)
    return Interval(np.where(known, plain, low), np.where(known, plain, high))


def _between(node: Apply, name: str, given: Sequence[Interval]) -> tuple[Any, Any] | None:
    """Return the ends of an operation on intervals; NaN if they are not known."""
    if name in MONOTONE or (name == "Cast" and node.outputs[0].type.dtype != "bool"):
        few = MONOTONE.get(name, UP)
        signs = [*few, *few[-1:] * (len(given) - len(few))]
        rising = [s > 0 for s in signs]
        lows = [v.low if up else v.high for v, up in zip(given, rising, strict=True)]
        highs = [v.high if up else v.low for v, up in zip(given, rising, strict=True)]
        return _computed(node, lows), _computed(node, highs)
    match name, given:
        case "Switch", [condition, yes, no]:
            surely, maybe = condition.low != 0, condition.high != 0
            if np.dtype(condition.low.dtype).kind != "b":
                surely, maybe = surely & condition.known, ~condition.known | maybe
            low = np.where(surely, yes.low, np.where(maybe, np.minimum(yes.low, no.low), no.low))
            high = np.where(
                surely, yes.high, np.where(maybe, np.maximum(yes.high, no.high), no.high)
            )
            return low, high
        case (("EQ" | "NEQ"), [a, b]):
            same = a.known & b.known & (a.low == b.low)
            meet = (a.low <= b.high) & (b.low <= a.high)
            return (same, meet) if name == "EQ" else (~meet, ~same)
        case "Mul", [a, *rest]:
            for b in rest:
                a = Interval(*_product(a, b))
            return a.low, a.high
        case "TrueDiv", [a, b]:
            apart = (b.low > 0) | (b.high < 0)
            low, high = _product(a, Interval(1.0 / b.high, 1.0 / b.low))
            zero = (a.low == 0) & (a.high == 0)
            low, high = (np.where(apart, end, np.where(zero, 0.0, np.nan)) for end in (low, high))
            return low, high
        case (("Sqr" | "Abs"), [a]):
            power, across = (2 if name == "Sqr" else 1), (a.low < 0) & (a.high > 0)
            one, other = np.abs(a.low) ** power, np.abs(a.high) ** power
            return np.where(across, 0.0, np.minimum(one, other)), np.maximum(one, other)
    return None


def _product(a: Interval, b: Interval) -> tuple[np.ndarray, np.ndarray]:
    ends = np.stack(
        np.broadcast_arrays(a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high)
    )
    odd = np.isnan(a.low) | np.isnan(b.low)
    ends = np.where(np.isnan(ends) & ~odd, 0.0, ends)  # 0 · ∞
    return ends.min(axis=0), ends.max(axis=0)


def _reduced(node: Apply, given: Sequence[Interval]) -> Interval | None:
    """Bound a sum, a maximum or a minimum. A product of unknown values is not bounded."""
    [v], name, axis = given, reduced_by(node), node.op.axis
    low, high = (_computed(node, [end]) for end in (v.low, v.high))
    if low is None or high is None:
        return None
    if name == "Add" and low.dtype.kind == "f":
        axes = tuple(range(v.low.ndim)) if axis is None else tuple(axis)
        odd, gone = (low != low) | (high != high), (v.high == -np.inf).any(axis=axes)
        low, high = np.where(odd | gone, -np.inf, low), np.where(odd, np.inf, high)
        high, lost = np.where(gone, -np.inf, high), v.lost.any(axis=axes)
        return Interval(np.where(lost, np.nan, low), np.where(lost, np.nan, high))
    if name in ("Maximum", "Minimum", "AND", "OR") and not v.lost.any():
        return Interval(low, high)
    return between(low.shape, low.dtype)


def edges_of(graph: Variable, reward: Variable) -> list[set[Variable]]:
    """Return what each operation depends on by which a term's support may end, of those that the
    reward enters."""
    ends = (
        v
        for v in ancestors([graph])
        if v.owner is not None
        and isinstance(v.owner.op, Elemwise)
        and isinstance(v.owner.op.scalar_op, EDGES)
    )
    shapes = {v for v in ancestors([graph]) if v.owner and operation(v.owner)[1] in SHAPES}
    above = (set(ancestors([v], blockers=shapes)) for v in ends)
    return [each for each in above if reward in each]
