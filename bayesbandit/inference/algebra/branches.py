"""Conditions and branches in the algebra of `monomials`.

A comparison is decided if its result is the same for all values of the variables: of a positive
one with 0, or of a finite one with ∞. A comparison of a variable with a number becomes a wall
(element, low, high), a bound of the support. Any other raises `Leaves`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bayesbandit.inference.algebra.monomials import Leaves, Sum, Wall, constant

SWAPPED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE", "EQ": "EQ", "NEQ": "NEQ"}


@dataclass(frozen=True)
class Inside:
    """A condition: some elements are within these walls.

    single: whether each element of the condition is about one wall.
    """

    shape: tuple[int, ...]
    walls: tuple[Wall, ...]
    single: bool = False

    def negated(self) -> Inside:
        """Return the opposite condition: that they are not within the walls."""
        if not self.single:
            raise Leaves("branch")
        above = [(i, high, np.inf) for i, low, high in self.walls if low == -np.inf]
        below = [(i, -np.inf, low) for i, low, _ in self.walls if low > -np.inf]
        return Inside(self.shape, (*above, *below), True)


Value = np.ndarray | Sum | Inside


def lifted(value: Value) -> Sum:
    """Return a value as a sum."""
    if isinstance(value, Inside):
        raise Leaves("arithmetic with a condition")
    return value if isinstance(value, Sum) else constant(value)


def switch(condition: Value, yes: Value, no: Value) -> Value:
    """Return one value or the other; −∞ where a condition on variables fails becomes a wall."""
    yes, no = lifted(yes), lifted(no)
    if isinstance(condition, Inside):
        if not nowhere(no):
            if not nowhere(yes):
                raise Leaves("branch")
            condition, yes, no = condition.negated(), no, yes
        shape = np.broadcast_shapes(condition.shape, yes.shape, no.shape)
        yes = yes.broadcast(shape)
        return Sum(shape, yes.terms, yes.walls + condition.walls)
    if isinstance(condition, Sum):
        raise Leaves("branch")
    shape = np.broadcast_shapes(condition.shape, yes.shape, no.shape)
    chosen = np.broadcast_to(condition, shape)
    if chosen.all():
        return yes.broadcast(shape)
    if not chosen.any():
        return no.broadcast(shape)
    places, inside = np.arange(chosen.size), chosen.ravel()
    parts = []
    for value, where in ((yes, inside), (no, ~inside)):
        if value.walls:
            raise Leaves("branch between walls")
        whole = value.broadcast(shape)
        parts.append(Sum(shape, tuple(t.gathered(places, where) for t in whole.terms)))
    return parts[0] + parts[1]


def nowhere(value: Sum) -> bool:
    """Return whether a value is −∞."""
    numbers = value.constant
    return numbers is not None and bool((numbers == -np.inf).all())


def both(values: Sequence[Value]) -> Value:
    """Return whether all conditions hold."""
    shape = np.broadcast_shapes(*(v.shape for v in values))
    walls: tuple[Wall, ...] = ()
    whole = np.ones(shape, dtype=bool)
    for value in values:
        if isinstance(value, Inside):
            walls += value.walls
        elif isinstance(value, Sum):
            raise Leaves("condition")
        else:
            whole = whole & np.asarray(value, dtype=bool)
    if not whole.all():
        if whole.any():
            raise Leaves("condition that holds of some rows")
        return whole
    return Inside(shape, walls) if walls else whole


def comparison(name: str, a: Value, b: Value) -> Value:
    """Return whether a comparison holds, if a sum is positive or finite whatever its variables are;
    else a wall."""
    a, b = lifted(a), lifted(b)
    shape = np.broadcast_shapes(a.shape, b.shape)
    if a.constant is not None:
        a, b, name = b, a, SWAPPED[name]
    limit = b.constant
    if limit is None or np.isnan(limit).any() or a.walls:
        raise Leaves(f"comparison {name.lower()}")
    known = np.isinf(limit).all() and (limit == limit.flat[0]).all()
    if a.above_zero and (limit <= 0.0).all():
        return np.full(shape, name in ("GT", "GE", "NEQ"))
    if known:
        more = bool(limit.flat[0] < 0.0)
        return np.full(shape, name == "NEQ" or (name != "EQ" and (name in ("GT", "GE")) == more))
    elements = a.element()
    if elements is None or name in ("EQ", "NEQ"):
        raise Leaves(f"comparison {name.lower()}")
    low, high = (limit, np.inf) if name in ("GT", "GE") else (-np.inf, limit)
    places = np.broadcast_to(elements.reshape(a.shape), shape).ravel()
    low, high = (np.broadcast_to(v, shape).ravel() for v in (low, high))
    walls = zip(places.tolist(), low.tolist(), high.tolist(), strict=True)
    return Inside(shape, tuple(dict.fromkeys(walls)), True)
