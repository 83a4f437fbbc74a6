"""Factors of a formula, read once: a text that is allowed becomes an expression."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from bayesbandit.checks import Name
from bayesbandit.tables.formulas.expressions import (
    PLAIN,
    SETTINGS,
    SPLINES,
    Arithmetic,
    Call,
    Column,
    Expression,
    Number,
    inner_knots,
    parts,
)
from bayesbandit.tables.inputs import named

ALLOWED = (*SETTINGS, *PLAIN, "I")
OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
WORDS = ("clip", "extend", "na", "raise", "zero")  # of extrapolation
LONGEST = 1000  # characters of a factor
DEEPEST = 100  # of calls and arithmetic in each other
LARGEST = 100  # of a number of features or knots, and of an exponent
MOST_DEGREE = 20
HUGE = 1e300  # of a number


@dataclass(frozen=True)
class Reader:
    """Reads factors of these columns. quoted: the names that identifiers stand for."""

    columns: Collection[Name]
    quoted: Mapping[str, str]

    def read(self, code: str) -> tuple[str, Expression]:
        """Return a factor as it is written everywhere, and what it computes; a ValueError for one
        that is not allowed."""
        name = self.quoted.get(code, code)
        if name in self.columns:
            return name, Column(name)
        if len(code) > LONGEST:
            raise ValueError(f"a term of the formula has {len(code)} characters, over {LONGEST}")
        try:
            body = ast.parse(code.strip(), mode="eval").body
            text = code if re.fullmatch(r"[\w.]+", code) else self._text(body)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            said = f"{self._named(code)!r} in the formula cannot be read: {error}"
            raise ValueError(said) from error
        if text in self.columns:
            return text, Column(text)
        return text, self._read(body, text, 0)

    def _text(self, node: ast.AST) -> str:
        return self._named(ast.unparse(node).replace("\n", " "))

    def _named(self, code: str) -> str:
        """Return code with the quoted names again."""
        return re.sub(
            r"\w+", lambda m: f"`{self.quoted[m[0]]}`" if m[0] in self.quoted else m[0], code
        )

    def _read(self, node: ast.AST, factor: str, depth: int) -> Expression:
        if depth > DEEPEST:
            raise ValueError(f"{factor[:60]!r} in the formula is nested over {DEEPEST} deep")

        def inner(child: ast.AST) -> Expression:
            return self._read(child, factor, depth + 1)

        match node:
            case ast.Name(id=name):
                column = self.quoted.get(name, name)
                check_column(column, self.columns)
                return Column(column)
            case ast.Constant(value=bool() | int() | float() as value) if abs(value) <= HUGE:
                return Number(float(value))
            case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
                return self._arithmetic(op, (inner(operand),), factor)
            case ast.BinOp(op=op, left=left, right=right) if type(op) in OPERATORS:
                return self._arithmetic(op, (inner(left), inner(right)), factor)
            case ast.Call(func=function, args=[data, *given], keywords=keywords):
                name = self._function(function, factor)
                settings = self._settings(name, given, keywords, factor)
                return _call(name, inner(data), settings, self._text(node))
        raise ValueError(
            f"{factor!r} in the formula: {self._text(node)[:60]!r} is not allowed; "
            f"there are columns, numbers, + - * / **, and the functions {', '.join(ALLOWED)}"
        )

    def _arithmetic(self, op: ast.AST, operands: tuple[Expression, ...], factor: str) -> Expression:
        compute = OPERATORS[type(op)]
        if compute is operator.pow:
            power = operands[1]
            if not isinstance(power, Number) or abs(power.value) > LARGEST:
                said = f"{power.value:.15g}" if isinstance(power, Number) else "that is no number"
                raise ValueError(
                    f"{factor!r} in the formula has the exponent {said}; allowed are numbers "
                    f"within ±{LARGEST}"
                )
        others = [one for one in operands if not isinstance(one, Number)]
        if not others:
            return _folded(
                compute, [one.value for one in operands if isinstance(one, Number)], factor
            )
        if len(others) > 1 and any(parts(one) is not None for one in others):
            raise ValueError(
                f"{factor!r} in the formula computes with several features: a spline and poly go "
                "with numbers only"
            )
        return Arithmetic(compute, operands)

    def _function(self, function: ast.AST, factor: str) -> str:
        match function:
            case ast.Name(id=name) if name in ALLOWED and name not in self.columns:
                return name
            case ast.Attribute(value=ast.Name(id="np"), attr=name) if name in PLAIN:
                if "np" not in self.columns:
                    return name
        raise ValueError(
            f"{factor!r} in the formula: {self._text(function)[:60]} is not allowed; functions are "
            f"{', '.join(ALLOWED)}, on one column each, and are not the names of columns"
        )

    def _settings(
        self, name: str, given: list[ast.expr], keywords: list[ast.keyword], factor: str
    ) -> dict[str, Any]:
        known = SETTINGS.get(name, ())
        pairs = [*zip(known, given, strict=False), *((one.arg, one.value) for one in keywords)]
        settings: dict[str, Any] = {}
        for setting, node in pairs:
            if setting not in known or setting in settings or len(given) > len(known):
                break
            try:
                settings[setting] = value = ast.literal_eval(node)
            except (ValueError, TypeError, SyntaxError, RecursionError) as error:
                said = f"{factor!r} in the formula: {self._text(node)[:60]} is no plain setting"
                raise ValueError(said) from error
            if not _fits(setting, value):
                raise ValueError(
                    f"{factor!r} in the formula has the setting {value!r:.60} for {setting}; "
                    f"allowed are {_allowed(setting)}"
                )
        if len(settings) < len(given) + len(keywords):
            raise ValueError(
                f"{factor!r} in the formula: settings of {name} are {', '.join(known) or 'none'}"
            )
        return settings


def check_column(name: str, columns: Collection[Name]) -> None:
    if name not in columns:
        raise ValueError(
            f"the formula names {name!r}, which is no column; there are {named([*columns])}"
        )


def _folded(compute: Callable[..., Any], values: list[float], factor: str) -> Number:
    """Return the number that arithmetic of numbers is."""
    try:
        value = compute(*values)
    except ArithmeticError as error:
        raise ValueError(f"{factor!r} in the formula cannot be computed: {error}") from error
    if not isinstance(value, float) or not abs(value) <= HUGE:
        raise ValueError(f"{factor!r} in the formula has the number {value:g}")
    return Number(value)


def _fits(setting: str, value: object) -> bool:
    """Return whether a plain value is one that this setting may have."""
    match setting:
        case "df":
            return value is None or _is_size(value, LARGEST)
        case "degree":
            return _is_size(value, MOST_DEGREE)
        case "include_intercept" | "raw":
            return isinstance(value, int) and value in (0, 1)
        case "extrapolation":
            return isinstance(value, str) and value in WORDS
        case "knots":
            return value is None or _are_numbers(value)
        case "lower_bound" | "upper_bound":
            return value is None or _is_number(value)
        case "constraints":
            rows = value if isinstance(value, list | tuple) and len(value) <= LARGEST else []
            several = len(rows) > 0 and all(map(_are_numbers, rows)) and len({*map(len, rows)}) == 1
            return value is None or value == "center" or _are_numbers(value) or several
        case "ddof":
            return _is_number(value)
    return isinstance(value, bool) or _is_number(value)  # center, scale, rescale


def _allowed(setting: str) -> str:
    sizes = {"df": f"whole numbers to {LARGEST}", "degree": f"whole numbers to {MOST_DEGREE}"}
    others = {
        "include_intercept": "True and False",
        "raw": "True and False",
        "extrapolation": ", ".join(map(repr, WORDS)),
        "knots": f"lists of {LARGEST} numbers at most",
        "constraints": "'center', and lists of numbers",
    }
    return (sizes | others).get(setting, f"numbers within ±{HUGE:g}")


def _is_size(value: object, most: int) -> bool:
    return type(value) is int and 0 <= value <= most


def _is_number(value: object) -> bool:
    return (type(value) is int or type(value) is float) and abs(value) <= HUGE


def _are_numbers(value: object) -> bool:
    if not isinstance(value, list | tuple):
        return False
    return 0 < len(value) <= LARGEST and all(map(_is_number, value))


def _call(name: str, data: Expression, settings: dict[str, Any], text: str) -> Call:
    call = Call(name, data, settings, text)
    if name in (*SPLINES, "poly") and parts(data) is not None:
        raise ValueError(f"{text!r} in the formula: {name} is of one feature, not of several")
    if name in SPLINES:
        without = [settings.get("df"), settings.get("knots")].count(None)
        if without == 0 or (without == 2 and name != "bs"):
            raise ValueError(f"{text!r} in the formula needs either df or knots")
        if inner_knots(call) < 0:
            raise ValueError(f"{text!r} in the formula has too small a df")
    return call
