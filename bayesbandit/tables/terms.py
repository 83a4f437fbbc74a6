"""What the terms of a formula may compute: a few functions of columns, and no other code."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable
from functools import cache, wraps
from typing import Any

import numpy as np

SPLINES = ("bs", "cr", "cs", "cc")
STATEFUL = (*SPLINES, "poly", "center", "scale", "standardize")
PLAIN = ("log", "log1p", "log2", "log10", "exp", "expm1", "sqrt", "abs", "square", "tanh", "sign")
ALLOWED = (*STATEFUL, *PLAIN, "I")
OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.USub, ast.UAdd)
LONGEST = 1000  # characters of a factor
LARGEST = 100  # of an integer that is a setting of a function, or an exponent
BOUNDS = ("lower_bound", "upper_bound")
QUOTED = r"`([^`]*)`"


class Numpy:
    """np.log and the like, and nothing else of NumPy."""


for _name in PLAIN:
    setattr(Numpy, _name, staticmethod(getattr(np, _name)))


@cache
def context() -> dict[str, Any]:
    """What names mean in a factor, beside the columns."""
    from formulaic.transforms import TRANSFORMS

    known = {name: TRANSFORMS[name] for name in (*STATEFUL, "I")}
    known |= {name: _clipped(known[name]) for name in SPLINES}
    return known | {name: getattr(np, name) for name in PLAIN} | {"np": Numpy}


def _clipped(spline: Callable[..., Any]) -> Callable[..., Any]:
    """A spline that goes on, outside the fit's range, as at its edge, unless told otherwise."""

    @wraps(spline)
    def clipped(*args: Any, **settings: Any) -> Any:
        return spline(*args, **{"extrapolation": "clip", **settings})

    return clipped


def names_in(factor: str, columns: Collection[Any]) -> set[str]:
    """The columns of which a factor is a function; an error of one that is not allowed."""
    if factor in columns:
        return {factor}
    if len(factor) > LONGEST:
        raise ValueError(f"a term of the formula has {len(factor)} characters, over {LONGEST}")
    quoted: list[str] = re.findall(QUOTED, factor)
    stand_in = {f"quoted_{i}_": name for i, name in enumerate(quoted)}
    code = factor
    for name in stand_in:
        code = re.sub(QUOTED, name, code, count=1)
    try:
        tree = ast.parse(code, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"{factor!r} in the formula cannot be read: {error}") from error
    found: set[str] = set()
    _check(tree.body, factor, columns, stand_in, found)
    return found


def check_alike(columns: Iterable[str], factors: Iterable[str]) -> None:
    """That no two columns are one to formulaic, which writes what is no letter in a quoted name as
    _, where a function of a quoted one has a state."""
    stateful = re.compile(rf"\b({'|'.join(STATEFUL)})\(.*`")
    if not any(stateful.search(factor) for factor in factors):
        return
    first: dict[str, str] = {}
    for name in columns:
        if (other := first.setdefault(re.sub(r"\W", "_", name), name)) != name:
            raise ValueError(
                f"the columns {other!r} and {name!r} cannot be told apart by a formula: rename one"
            )


def _check(
    node: ast.AST, factor: str, columns: Collection[Any], stand_in: dict[str, str], found: set[str]
) -> None:
    """That a node is a column, a number, arithmetic or a call of what is allowed."""

    def inner(child: ast.AST) -> None:
        _check(child, factor, columns, stand_in, found)

    match node:
        case ast.Name(id=name):
            column = stand_in.get(name, name)
            if column not in columns:
                raise ValueError(
                    f"the formula names {column!r}, which is no column; there are "
                    f"{', '.join(map(repr, columns))}"
                )
            found.add(column)
        case ast.Constant(value=bool() | int() | float() | str() | None):
            pass
        case ast.UnaryOp(op=op, operand=operand) if isinstance(op, OPERATORS):
            inner(operand)
        case ast.BinOp(op=ast.Pow(), left=left, right=ast.Constant(value=int() | float() as power)):
            if abs(power) > LARGEST or isinstance(left, ast.Constant):
                raise ValueError(f"{factor!r} in the formula has the exponent {power!r}")
            inner(left)
        case ast.BinOp(op=op, left=left, right=right) if isinstance(
            op, OPERATORS
        ) and not isinstance(op, ast.Pow):
            inner(left)
            inner(right)
        case ast.Call(func=function, args=[data, *settings], keywords=named):
            _check_function(function, factor, columns)
            inner(data)
            for setting in settings:
                _check_setting(setting, factor)
            for keyword in named:
                _check_setting(keyword.value, factor, keyword.arg in BOUNDS)
        case _:
            raise ValueError(
                f"{factor!r} in the formula: {ast.unparse(node)[:60]!r} is not allowed; "
                f"there are columns, numbers, + - * / **, and the functions {', '.join(ALLOWED)}"
            )


def _check_function(function: ast.AST, factor: str, columns: Collection[Any]) -> None:
    match function:
        case ast.Name(id=name) if name in ALLOWED and name not in columns:
            return
        case ast.Attribute(value=ast.Name(id="np"), attr=name) if name in PLAIN:
            if "np" not in columns:
                return
    raise ValueError(
        f"{factor!r} in the formula: {ast.unparse(function)[:60]} is not allowed; functions are "
        f"{', '.join(ALLOWED)}, on one column each, and are not the names of columns"
    )


def _check_setting(node: ast.AST, factor: str, any_size: bool = False) -> None:
    """A plain value; an integer, which may be a number of features, of no more than LARGEST."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError) as error:
        said = ast.unparse(node)[:60]
        raise ValueError(f"{factor!r} in the formula: {said} is no plain setting") from error
    many = type(value) is int and abs(value) > LARGEST and not any_size
    if many or not isinstance(value, bool | int | float | str | list | tuple | None):
        raise ValueError(
            f"{factor!r} in the formula has the setting {value!r}; allowed are integers within "
            f"±{LARGEST}, other numbers with a point, texts, and lists of numbers"
        )
