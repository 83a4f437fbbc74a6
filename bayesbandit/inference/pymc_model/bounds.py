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
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.traversal import ancestors, toposort
from pytensor.raise_op import CheckAndRaise
from pytensor.scalar import basic as scalar
from pytensor.tensor.elemwise import CAReduce, Elemwise
from pytensor.tensor.type import TensorType

from bayesbandit.inference.graph_analysis.operations import (
    LINEAR,
    PUTS,
    SHAPES,
    TAKES,
    elementwise_name,
    number,
    operation,
)

UP, DOWN = (1,), (-1,)
MONOTONE = {  # +1: increasing in an argument, −1: decreasing; the last holds for all that follow
    **dict.fromkeys(("Exp", "Expm1", "Log", "Log2", "Log10", "Log1p", "Sqrt", "Sigmoid"), UP),
    **dict.fromkeys(("Softplus", "Tanh", "ArcTan", "Erf", "Identity", "Second", "Floor"), UP),
    **dict.fromkeys(("Ceil", "Trunc", "RoundHalfToEven", "Maximum", "Minimum", "Clip"), UP),
    **dict.fromkeys(("Add", "AND", "OR"), UP),
    **dict.fromkeys(("Neg", "Invert", "Erfc", "Log1mexp"), DOWN),
    **dict.fromkeys(("Sub", "GT", "GE"), (1, -1)),
    **dict.fromkeys(("LT", "LE"), (-1, 1)),
}  # fmt: skip
ARITHMETIC = {"Add", "Sub", "Mul", "TrueDiv", "Neg", "Sqr", "Abs", "Exp", "Log", "Log1p", "Pow"}
MOVED = (LINEAR | TAKES | PUTS | {"CumOp"}) - {"SpecifyAssumptions"}
ARRAYS = {"Join": None, "MakeVector": None} | dict.fromkeys(PUTS, 2)  # arguments that are values


EDGES = (
    scalar.LogicalComparison, scalar.FixedLogicalComparison, scalar.Maximum, scalar.Minimum,
    scalar.Clip, scalar.Log, scalar.Log2, scalar.Log10, scalar.Log1p, scalar.Sqrt,
)  # fmt: skip  # operations by which a support ends


@dataclass(frozen=True)
class Interval:
    """Arrays of one shape: each number is between them, or NaN where both are."""

    low: np.ndarray
    high: np.ndarray

    @property
    def known(self) -> np.ndarray:
        """Where there is one number alone."""
        return np.asarray((self.low == self.high) | self.lost)

    @property
    def lost(self) -> np.ndarray:
        """Where it is NaN."""
        return np.asarray((self.low != self.low) & (self.high != self.high))

    @property
    def impossible(self) -> np.ndarray:
        """Where a log density is −∞ or NaN, and nothing else."""
        return np.asarray(self.lost | (self.high == -np.inf))


class Bounds:
    """Bounds of the nodes between `given`, by variable, and `outputs`."""

    def __init__(self, outputs: Sequence[Variable], given: Mapping[Variable, Interval]) -> None:
        self._of: dict[Variable, Interval | None] = dict(given)
        with np.errstate(all="ignore"):
            for node in toposort(outputs, blockers=list(given)):
                found = _visited(node, [self.of(v) for v in node.inputs])
                for v, interval in zip(node.outputs, found, strict=True):
                    self._of[v] = interval

    def of(self, variable: Variable) -> Interval | None:
        """A node's bounds; None where not even its shape is known."""
        if isinstance(variable, Constant) and variable not in self._of:
            return point(variable.data)
        return self._of.get(variable)


def point(value: Any) -> Interval:
    """A value that is known."""
    return Interval(np.asarray(value), np.asarray(value))


def between(
    shape: tuple[int, ...], dtype: Any, low: float = -np.inf, high: float = np.inf
) -> Interval:
    """Return all numbers from low to high that the type can hold."""
    kind = np.dtype(dtype).kind
    if kind in "iub":
        ends = (0, 1) if kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        low, high = max(low, ends[0]), min(high, ends[1])
    return Interval(np.full(shape, low, dtype), np.full(shape, high, dtype))


def _visited(node: Apply, given: Sequence[Interval | None]) -> Sequence[Interval | None]:
    op, name = operation(node)
    unknown: Sequence[Interval | None] = [None] * len(node.outputs)
    if name == "Shape_i" and given[0] is not None:
        return [point(np.asarray(given[0].low.shape[op.i]))]
    if name == "Shape" and given[0] is not None:
        return [point(np.asarray(given[0].low.shape))]
    if isinstance(op, CheckAndRaise):
        return given[:1]
    found = [v for v in given if v is not None]
    if len(found) < len(given) or len(node.outputs) > 1:
        return unknown
    if isinstance(node.op, Elemwise):
        return (_elementwise(node, found),)
    if all(v.known.all() for v in found):
        value = _computed(node, [v.low for v in found])
        return unknown if value is None else [point(value)]
    if isinstance(op, CAReduce):
        return (_reduced(node, found),)
    if name in MOVED:
        values = found[: ARRAYS.get(name, 1)]
        if all(v.known.all() for v in found[len(values) :]):
            low, high = (_computed(node, [getattr(v, e) for v in found]) for e in ("low", "high"))
            return unknown if low is None or high is None else [Interval(low, high)]
    some = [np.where(v.known, v.low, np.ones((), v.low.dtype)) for v in found]
    value = _computed(node, some)  # for its shape
    return unknown if value is None else [between(value.shape, value.dtype)]


def _computed(node: Apply, values: Sequence[np.ndarray]) -> np.ndarray | None:
    """A node's value; None where the operation fails or has no value of plain arrays."""
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


def _elementwise(node: Any, given: list[Interval]) -> Interval | None:
    name, dtype = elementwise_name(node.outputs[0]), node.outputs[0].type.dtype
    plain = _computed(node, [v.low for v in given])
    if plain is None:
        return None
    known = np.broadcast_to(np.logical_and.reduce(np.broadcast_arrays(*(v.known for v in given))),
                            plain.shape)  # fmt: skip
    if known.all():
        return point(plain)
    loose = between(plain.shape, dtype)
    bounded = dtype == "bool" or np.dtype(dtype).kind == "f" or name in ("Switch", "Second")
    low, high = _between(node, name, given) or (loose.low, loose.high) if bounded else (
        loose.low, loose.high
    )  # fmt: skip
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


def _between(node: Any, name: str, given: list[Interval]) -> tuple[Any, Any] | None:
    """The ends of an operation on intervals, NaN where they are not known."""
    if name in MONOTONE or (name == "Cast" and node.outputs[0].type.dtype != "bool"):
        few = MONOTONE.get(name, UP)
        signs = [*few, *few[-1:] * (len(given) - len(few))]
        ends = [
            _computed(node, [v.low if s * end > 0 else v.high
                             for v, s in zip(given, signs, strict=True)])
            for end in (1, -1)
        ]  # fmt: skip
        return ends[0], ends[1]
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


def _reduced(node: Any, given: list[Interval]) -> Interval | None:
    """Of a sum, a greatest or a least; a product of what is not known is not bounded."""
    [v], name, axis = given, type(node.op.scalar_op).__name__, node.op.axis
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


def support(variable: Any, transform: Any) -> tuple[float, float]:
    """Between what a free variable is, by its transform."""
    name = getattr(transform, "name", "")
    if name == "interval":
        ends = [None if v is None else number(v) for v in transform.args_fn(*variable.owner.inputs)]
        low, high = ends
        return -np.inf if low is None else low, np.inf if high is None else high
    return {"log": (0.0, np.inf), "logodds": (0.0, 1.0), "simplex": (0.0, 1.0)}.get(
        name, (-np.inf, np.inf)
    )


def edges_of(graph: Any, reward: Any) -> list[set[Any]]:
    """What each operation depends on by which a term's support may end, of those that the reward
    enters."""
    ends = (
        v for v in ancestors([graph])
        if v.owner is not None
        and isinstance(v.owner.op, Elemwise)
        and isinstance(v.owner.op.scalar_op, EDGES)
    )  # fmt: skip
    shapes = {v for v in ancestors([graph]) if v.owner and operation(v.owner)[1] in SHAPES}
    above = (set(ancestors([v], blockers=shapes)) for v in ends)
    return [each for each in above if reward in each]
