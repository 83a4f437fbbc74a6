"""What a factor of a formula computes: an allow-list of syntax, compiled to functions of columns.

The text is parsed by `ast` and never run. A node that is not matched in `Reader.compiled` is
refused. So what is read is what is computed: columns, numbers, arithmetic, and functions by name.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, TypeGuard

import numpy as np

from bayesbandit.checks import Array, Name
from bayesbandit.tables.inputs import named

type Columns = Mapping[Name, Array]  # each (n,)
type Compute = Callable[[Columns], Any]  # numbers (n,); of a spline and poly, several of them

ELEMENTWISE_FUNCTIONS = (
    "log",
    "log1p",
    "log2",
    "log10",
    "exp",
    "expm1",
    "sqrt",
    "abs",
    "square",
    "tanh",
    "sign",
)
FUNCTION_SETTINGS: dict[str, tuple[str, ...]] = {  # of those that learn, in formulaic's order
    "bs": ("df", "knots", "degree", "include_intercept"),
    "cr": ("df", "knots"),
    "cs": ("df", "knots"),
    "cc": ("df", "knots"),
    "poly": ("degree", "raw"),
    "center": (),
    "scale": (),
    "standardize": (),
}
SPLINES = ("bs", "cr", "cs", "cc")
FUNCTIONS = (*FUNCTION_SETTINGS, *ELEMENTWISE_FUNCTIONS, "I")
OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
MAX_CHARACTERS = 1000  # of a factor
MAX_DEPTH = 50  # of calls and arithmetic in each other
MAX_KNOTS = 100  # and features of a spline
MAX_DEGREE = 20
MAX_NUMBER = 1e300


@dataclass(frozen=True)
class Factor:
    """A factor as it is written everywhere, and the columns that it depends on.

    levels: those of a column of levels; () if the factor gives numbers.
    """

    text: str
    levels: tuple[str, ...]
    columns: frozenset[Name]
    compute: Compute


@dataclass
class Reader:
    """Reads the factors of a formula.

    levels: those of each column, () if it has numbers. state: what the functions learned, by call;
    a call that is not there learns when it is first computed. used, aliases: of one factor, its
    columns, and the names in backticks for which identifiers stand.
    """

    levels: Mapping[Name, tuple[str, ...]]
    state: dict[str, dict[str, Any]]
    used: set[Name] = field(default_factory=set)
    aliases: dict[str, str] = field(default_factory=dict)

    def column(self, name: str) -> Factor:
        """Return the factor that is a column; raise ValueError if there is none of this name."""
        if name not in self.levels:
            raise ValueError(
                f"the formula names {name!r}, which is no column; there are {named([*self.levels])}"
            )
        return Factor(name, self.levels[name], frozenset({name}), lambda columns: columns[name])

    def factor(self, code: str) -> Factor:
        """Return a factor that is an expression; raise ValueError for one that is not allowed."""
        if len(code) > MAX_CHARACTERS:
            raise ValueError(
                f"a term of the formula has {len(code)} characters, over {MAX_CHARACTERS}"
            )
        pieces = code.split("`")  # each second one is a name
        self.aliases = {f"in_backticks_{k}": name for k, name in enumerate(pieces[1::2])}
        pieces[1::2] = [f" {alias} " for alias in self.aliases]
        try:
            body = ast.parse("".join(pieces).strip(), mode="eval").body
            text = self._said(body)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ValueError(f"{code!r:.80} in the formula cannot be read: {error}") from error
        self.used = set()
        compute = self.compiled(body, 0)
        if not self.used:
            raise ValueError(f"{text!r} in the formula names no column")
        return Factor(text, (), frozenset(self.used), compute)

    def _said(self, node: ast.AST) -> str:
        """Return a part of a formula as text, with the names of columns."""
        text = ast.unparse(node).replace("\n", " ")
        names = {alias: f"`{name}`" for alias, name in self.aliases.items()}
        return re.sub(r"\w+", lambda match: names.get(match[0], match[0]), text)

    def compiled(self, node: ast.expr, depth: int) -> Compute:
        """Return what a node computes of columns; raise ValueError for one that is not allowed.

        depth: how many others it is in. A spline and poly, which give several features, are in no
        other but I().
        """
        if depth > MAX_DEPTH:
            raise ValueError(f"a term of the formula is nested over {MAX_DEPTH} deep")
        function: Callable[..., Any]
        match node:
            case ast.Name(id=identifier):
                return self._column(self.aliases.get(identifier, identifier))
            case ast.Constant(value=value) if _is_number(value):
                number = np.float64(value)  # its powers are inf or nan, never huge or complex
                return lambda _: number
            case ast.Call(func=ast.Name(id="I"), args=[data], keywords=[]):
                return self.compiled(data, depth)
            case ast.UnaryOp(op=op, operand=data) if type(op) in OPERATORS:
                function = OPERATORS[type(op)]
                inner = [data]
            case ast.BinOp(op=op, left=left, right=right) if type(op) in OPERATORS:
                function = OPERATORS[type(op)]
                inner = [left, right]
            case ast.Call(func=ast.Name(id=name), args=[data], keywords=[]) if (
                name in ELEMENTWISE_FUNCTIONS
            ):
                function = vars(np)[name]
                inner = [data]
            case ast.Call(func=ast.Name(id=name), args=[data, *_]) if name in FUNCTION_SETTINGS:
                if depth and name in (*SPLINES, "poly"):
                    raise self._refused(node, "it gives several features, and stands alone")
                learned = self.state.setdefault(self._said(node), {})
                function = partial(transforms()[name], **self._settings(node, name), _state=learned)
                inner = [data]
            case _:
                allowed = "allowed are columns, numbers, + - * / **, and of one column each "
                raise self._refused(node, allowed + ", ".join(FUNCTIONS))
        parts = [self.compiled(one, depth + 1) for one in inner]
        return lambda columns: function(*(part(columns) for part in parts))

    def _column(self, name: str) -> Compute:
        factor = self.column(name)
        if factor.levels:
            raise ValueError(f"the formula computes with {name!r}, which has levels and no numbers")
        self.used.add(name)
        return factor.compute

    def _refused(self, node: ast.AST, why: str) -> ValueError:
        return ValueError(f"{self._said(node)!r:.80} in the formula is not allowed: {why}")

    def _settings(self, node: ast.Call, name: str) -> dict[str, Any]:
        """Return the settings of a function that learns, checked; a spline continues at its edge as
        it is there."""
        names = FUNCTION_SETTINGS[name]
        pairs = [*zip(names, node.args[1:], strict=False)]
        pairs += [(one.arg or "**", one.value) for one in node.keywords]
        if len(node.args) > 1 + len(names):
            raise self._refused(node, f"{name} has {len(names)} settings")
        settings: dict[str, Any] = {}
        for setting, part in pairs:
            try:
                settings[setting] = ast.literal_eval(part)
            except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
                settings[setting] = None
            if setting not in names or not ALLOWED_SETTINGS[setting](settings[setting]):
                raise self._refused(
                    node,
                    f"{setting}: the settings of {name} are {', '.join(names) or 'none'}: whole "
                    f"numbers, df up to {MAX_KNOTS} and degree up to {MAX_DEGREE}; knots=[…], up "
                    f"to {MAX_KNOTS} numbers; True and False",
                )
        return settings | ({"extrapolation": "clip"} if name in SPLINES else {})


def _is_number(value: Any) -> TypeGuard[float]:
    """Return whether a value is a number, and neither True nor too large."""
    return type(value) in (int, float) and abs(value) <= MAX_NUMBER


ALLOWED_SETTINGS: dict[str, Callable[[Any], bool]] = {
    "df": lambda value: type(value) is int and 1 <= value <= MAX_KNOTS,
    "degree": lambda value: type(value) is int and 1 <= value <= MAX_DEGREE,
    "knots": lambda value: (
        isinstance(value, list | tuple) and len(value) <= MAX_KNOTS and all(map(_is_number, value))
    ),
    "include_intercept": lambda value: type(value) is bool,
    "raw": lambda value: type(value) is bool,
}


@cache
def transforms() -> dict[str, Callable[..., Any]]:
    """Return formulaic's functions that learn. They return the same for a row as for a table."""
    from formulaic.transforms import TRANSFORMS

    def poly(x: Array, degree: int = 1, raw: bool = False, *, _state: dict[str, Any]) -> Any:
        most = degree if raw or _state else len(np.unique(x)) - 1
        if most < degree:  # the last of the polynomials would be rounding errors
            raise ValueError(f"poly of degree {degree} needs {degree + 1} different values")
        powers = TRANSFORMS["poly"](x, degree, raw, _state=_state)
        return dict(enumerate(np.asarray(powers).T))

    return {name: TRANSFORMS[name] for name in FUNCTION_SETTINGS} | {"poly": poly}
