"""What a factor of a formula computes: columns, numbers, arithmetic and a few functions.

These nodes are interpreted. No text is given to `eval`, Python's or formulaic's: what `reading`
checked is what is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import Name

if TYPE_CHECKING:
    import pandas as pd

SPLINE = ("df", "knots", "lower_bound", "upper_bound", "constraints", "extrapolation")
SETTINGS: dict[str, tuple[str, ...]] = {  # of the functions that learn, in formulaic's order
    "bs": (
        "df",
        "knots",
        "degree",
        "include_intercept",
        "lower_bound",
        "upper_bound",
        "extrapolation",
    ),
    "cr": SPLINE,
    "cs": SPLINE,
    "cc": SPLINE,
    "poly": ("degree", "raw"),
    "center": (),
    "scale": ("center", "scale", "ddof"),
    "standardize": ("center", "rescale", "ddof"),
}
SPLINES = ("bs", "cr", "cs", "cc")
PLAIN = ("log", "log1p", "log2", "log10", "exp", "expm1", "sqrt", "abs", "square", "tanh", "sign")


@dataclass(frozen=True)
class Column:
    name: str


@dataclass(frozen=True)
class Number:
    value: float


@dataclass(frozen=True)
class Arithmetic:
    compute: Callable[..., Any]
    operands: tuple[Expression, ...]


@dataclass(frozen=True)
class Call:
    """A function of data with settings. text: as it is written, which is the name of its state."""

    function: str
    data: Expression
    settings: Mapping[str, Any]
    text: str


type Expression = Column | Number | Arithmetic | Call


def inner_knots(call: Call) -> int:
    """Return how many knots a spline has between its bounds."""
    df, knots = call.settings.get("df"), call.settings.get("knots")
    if call.function == "bs":
        degree, constant = call.settings.get("degree", 3), call.settings.get("include_intercept", 0)
        return df - degree - bool(constant) if df else len(knots or ())
    if df is None:
        return len(set(knots or ()))
    return df - 2 + constraints_of(call) + (call.function == "cc")


def constraints_of(call: Call) -> int:
    constraints = call.settings.get("constraints")
    if constraints is None or constraints == "center":
        return int(constraints is not None)
    return len(constraints) if isinstance(constraints[0], list | tuple) else 1


def parts(expression: Expression) -> range | None:
    """Return the names of the columns that a factor gives; None where it is one without a name."""
    match expression:
        case Arithmetic(operands=operands):
            return next((found for one in operands if (found := parts(one)) is not None), None)
        case Call(function="bs", settings=settings) as call:
            first = 0 if settings.get("include_intercept") else 1
            return range(first, inner_knots(call) + settings.get("degree", 3) + 1)
        case Call(function="cr" | "cs" | "cc" as function) as call:
            return range(1, inner_knots(call) + 3 - (function == "cc") - constraints_of(call))
        case Call(function="poly", settings=settings):
            return range(settings.get("degree", 1))
        case Call(data=data):
            return parts(data)
    return None


def inside(expression: Expression) -> Iterator[Expression]:
    """Return the expression and all that it is made of."""
    yield expression
    match expression:
        case Arithmetic(operands=operands):
            for one in operands:
                yield from inside(one)
        case Call(data=data):
            yield from inside(data)


def columns_of(expression: Expression) -> set[str]:
    """Return the columns that a factor depends on."""
    return {one.name for one in inside(expression) if isinstance(one, Column)}


def width(expression: Expression, levels: Mapping[Name, int]) -> int:
    """Return how many features a factor gives at most, 2 at least of one that may span the
    constant: then their product bounds formulaic's work too. levels: how many each column has."""
    several = parts(expression)
    if several is not None:
        return max(2, len(several))
    return max((levels[name] for name in columns_of(expression)), default=1)


@cache
def functions() -> dict[str, Callable[..., Any]]:
    from formulaic.transforms import TRANSFORMS

    known = {name: TRANSFORMS[name] for name in (*SETTINGS, "I")}
    return known | {name: vars(np)[name] for name in PLAIN}


def value_of(expression: Expression, frame: pd.DataFrame, state: dict[str, Any]) -> Any:
    """Compute a factor of columns. state: what its functions learned, by call; a call that is not
    there learns now."""
    match expression:
        case Column(name):
            return frame[name]
        case Number(value):
            return value
        case Arithmetic(compute, operands):
            return compute(*(value_of(one, frame, state) for one in operands))
        case Call(function, data, settings, text):
            known = value_of(data, frame, state)
            if function not in SETTINGS:
                return functions()[function](known)
            outside = {"extrapolation": "clip"} if function in SPLINES else {}  # as at the edge
            learned = state.setdefault(text, {})
            return functions()[function](known, **{**outside, **settings}, _state=learned)
