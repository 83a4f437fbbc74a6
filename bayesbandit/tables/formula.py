"""Contexts by a formula: read against an allow-list, expanded by formulaic, and then frozen.

formulaic's parser evaluates calls on the left of ~ as it reads them. Therefore it sees no text of
the user but operators, 0 and 1: each factor is read in `expressions`, and stands as f0, f1, … in
what formulaic expands. What remains is a list of products of factors, which are computed here.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import Array, Name, shown
from bayesbandit.tables import fitting
from bayesbandit.tables.columns import (
    Column,
    LeftOut,
    Levels,
    Number,
    Used,
    codes_of,
    unique,
)
from bayesbandit.tables.expressions import Factor, Reader

if TYPE_CHECKING:
    import pandas as pd

MAX_CHARACTERS = 10_000  # of a formula
MAX_TERMS = 50_000  # that an operator goes through
MAX_FEATURES = 5000
POOLED = "other"
BROKEN = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError)  # by odd values

PART = re.compile(r"f(\d+)(?:\[(T\.)?(\d+)\])?")  # of the name of a column of formulaic's design

type Parts = list[dict[str, Array]]  # of each factor by their names there, each (n,)


@dataclass(frozen=True, eq=False)
class Formula:
    """A formula and what its functions learned (`state`, by call).

    columns: those that it uses. products: for each feature the factors that are multiplied, with
    the name of their part. features: the names. uses: the columns of each. constant: whether the
    text names the constant term.
    """

    text: str
    columns: tuple[Used, ...]
    state: Mapping[str, dict[str, Any]] = field(repr=False)
    factors: tuple[Factor, ...]
    products: tuple[tuple[tuple[int, str], ...], ...]
    features: tuple[str, ...]
    uses: tuple[frozenset[Name], ...]
    constant: bool

    def encoded(self, codes: Array) -> Array:
        """Return features (n, d) of the codes (n, c) of the columns."""
        parts = computed(self.text, self.factors, _by_name(self.columns, codes))
        features = np.empty((len(codes), len(self.features)))
        with np.errstate(all="ignore"):  # `Encoder.transform` refuses what is not finite
            for j, chosen in enumerate(self.products):
                features[:, j] = math.prod(parts[k][part] for k, part in chosen)
        return features

    def stored(self) -> dict[str, Any]:
        """Return the formula as plain values, for a file."""
        return {"text": self.text, "state": plain(self.state), "features": list(self.features)}


def learned(text: str, table: pd.DataFrame) -> tuple[tuple[Column, ...], Formula]:
    """Return the columns of a table as a formula uses them, and the formula with its state."""
    factors = read(text, dict.fromkeys(table.columns, ()), {})[1]  # levels are not known yet
    used = {name for factor in factors for name in factor.columns}
    needed = [name for name in table.columns if name in used]
    if not needed:
        raise ValueError(f"the formula {text!r} names no column")
    by_name: dict[Name, Any] = {one.name: one for one in fitting.fit(table[needed], (), needed)}
    if left := [column for column in by_name.values() if isinstance(column, LeftOut)]:
        raise ValueError(f"column {left[0].name!r} of the formula: {left[0].why}")
    every = tuple(by_name.get(name, LeftOut(name, "not in the formula")) for name in table.columns)
    columns = tuple(by_name.values())
    return every, formula_of(text, columns, {}, codes_of(columns, table))


def formula_of(
    text: str,
    columns: tuple[Used, ...],
    state: dict[str, dict[str, Any]],
    codes: Array | None = None,
) -> Formula:
    """Return the formula of a text; raise ValueError for one that is not allowed.

    columns: those that it uses. codes: those of a table, from which its functions learn. Without it
    they have learned: the state is tried on one row, the medians and first levels of the fit.
    """
    levels = {column.name: _levels(column) for column in columns}
    skeleton, factors = read(text, levels, state)
    if codes is not None:
        computed(text, factors, _by_name(columns, codes))
    before = plain(state)
    usual = [one.median if isinstance(one, Number) else 0.0 for one in columns]
    row = _by_name(columns, np.array([usual], dtype=np.float64))
    parts = computed(text, factors, row)
    sizes = {part.shape for several in parts for part in several.values()}
    if sizes != {(1,)} or before != plain(state):
        raise ValueError(f"the formula {text!r} is broken: its state is not whole")
    terms = _expanded(text, skeleton, factors)
    widths = {f"f{k}": max(2, len(several)) for k, several in enumerate(parts)} | {"1": 1}
    most = sum(math.prod(widths[one.expr] for one in term.factors) for term in terms)
    if most > MAX_FEATURES:
        raise ValueError(
            f"the formula {shown(text)[:80]} may have {most:,} features; at most {MAX_FEATURES:,}"
        )
    names = []
    uses = []
    products = []
    for feature in _design(terms, factors, row):
        chosen = [(int(k), reduced, part) for k, reduced, part in PART.findall(feature)]
        if not chosen:  # the constant
            continue
        names.append(":".join(_label(factors[k], [*parts[k]], *one) for k, *one in chosen))
        uses.append(frozenset[Name]().union(*(factors[k].columns for k, *_ in chosen)))
        products.append(tuple((k, part) for k, _, part in chosen))
    if not names:
        raise ValueError(f"the formula {text!r} has no feature")
    written = _parsed(skeleton, implied=False)
    constant = any([one.expr for one in term.factors] == ["1"] for term in written)
    return Formula(
        text, columns, state, factors, tuple(products), unique(names), tuple(uses), constant
    )


# ---- the text ------------------------------------------------------------------------------------


def read(
    text: object, levels: Mapping[Name, tuple[str, ...]], state: dict[str, dict[str, Any]]
) -> tuple[str, tuple[Factor, ...]]:
    """Return a formula with f0, f1, … for its factors, and these. levels: those of each column."""
    from formulaic.errors import FormulaicError
    from formulaic.parser.algos.tokenize import tokenize

    if not isinstance(text, str):
        raise TypeError(f"a formula is a text, as '~ age * country'; got {shown(text)}")
    if len(text) > MAX_CHARACTERS:
        raise ValueError(
            f"the formula {text[:60]!r}… has {len(text):,} characters; at most {MAX_CHARACTERS:,}"
        )
    reader = Reader(levels, state)
    factors: dict[tuple[str, bool], Factor] = {}
    parts: list[str] = []
    try:
        tokens = [(token.kind.value, token.token) for token in tokenize(text)]
    except FormulaicError as error:
        raise _unread(text, error) from error
    for i, (kind, text_of_token) in enumerate(tokens):
        if kind == "operator" and i == 0:
            text_of_token = text_of_token.removeprefix("~")
        if kind in ("name", "python") and text_of_token != ".":
            is_column = kind == "name" or text_of_token.isidentifier()
            factor = (reader.column if is_column else reader.factor)(text_of_token)
            key = (factor.text, is_column)
            factors.setdefault(key, factor)
            parts.append(f"f{[*factors].index(key)}")
        elif kind == "operator" and ("~" in text_of_token or "|" in text_of_token):
            raise ValueError(f"a formula has one side, as '~ age * country'; got {text!r}")
        elif text_of_token in ("0", "1", "(", ")", "") or (
            (kind == "operator" and re.fullmatch(r"[-+*/:^]{1,20}", text_of_token))
            or (parts and parts[-1] in ("**", "^") and re.fullmatch("[1-9][0-9]?", text_of_token))
        ):
            parts.append(text_of_token)
        else:
            raise _unread(text, f"there is {text_of_token[:20]!r}")
    return " ".join(parts), tuple(factors.values())


def _parsed(skeleton: str, implied: bool = True) -> Any:
    """Return what formulaic expands a formula of symbols to.

    implied: whether there is a constant term unless the formula takes it away.
    """
    from formulaic import Formula as Expanded
    from formulaic.parser import DefaultFormulaParser

    parser = DefaultFormulaParser(include_intercept=implied)
    _size(parser.get_ast(skeleton))
    return Expanded(skeleton, _parser=parser)


def _expanded(text: str, skeleton: str, factors: Sequence[Factor]) -> Any:
    """Return the terms of a formula, as formulaic has them."""
    from formulaic.errors import FormulaicError

    try:
        return _parsed(skeleton)
    except (FormulaicError, SyntaxError, *BROKEN, RecursionError) as error:
        reason = re.sub(r"\bf(\d+)", lambda number: factors[int(number[1])].text, str(error))
        raise _unread(text, reason) from error


def _size(node: Any) -> int:
    """Return how many terms a node of formulaic's syntax tree has, or goes through, at most.

    Raise ValueError for too many.
    """
    symbol = getattr(getattr(node, "operator", None), "symbol", None)
    if symbol is None:
        return 1
    if symbol in ("**", "^"):
        base, exponent = node.args
        total = _size(base) ** int(str(exponent))
    else:
        sizes = [_size(one) for one in node.args]
        more = symbol != ":"  # the terms themselves are beside their products
        total = sum(sizes) if symbol in "+-" else math.prod(size + more for size in sizes)
    if total > MAX_TERMS:
        raise ValueError("it may have too many terms")
    return total


def _unread(text: str, why: object, done: str = "read") -> ValueError:
    reason = (str(why).splitlines() or [type(why).__name__])[0]
    return ValueError(f"the formula {text!r} cannot be {done}: {reason}")


# ---- the design ----------------------------------------------------------------------------------


def _design(terms: Any, factors: Sequence[Factor], row: Mapping[Name, Array]) -> list[str]:
    """Return the columns' names of formulaic's design, in which none follows from the others.

    row: the columns of one row. A level is named by its place.
    """
    import pandas as pd
    from formulaic import ModelSpec

    with np.errstate(all="ignore"):
        values = {
            f"f{k}": pd.Categorical(["0"], [str(place) for place in range(len(factor.levels))])
            if factor.levels
            else factor.compute(row)
            for k, factor in enumerate(factors)
        }
        spec = ModelSpec(formula=terms, na_action="ignore", output="pandas")
        return list(spec.get_model_matrix(pd.DataFrame(index=[0]), context=values).columns)


def computed(text: str, factors: Sequence[Factor], columns: Mapping[Name, Array]) -> Parts:
    """Return what each factor computes of columns: its parts, one for each of its features.

    Of levels there is a part of 0 and 1 for each.
    """
    parts: Parts = []
    with np.errstate(all="ignore"):
        for factor in factors:
            try:
                value = factor.compute(columns)
                if factor.levels:
                    value = {place: value == place for place in range(len(factor.levels))}
                several = value if isinstance(value, Mapping) else {"": value}
                parts.append({str(k): np.asarray(one, np.float64) for k, one in several.items()})
            except BROKEN as error:
                raise _unread(text, error, "computed") from error
    return parts


def _label(factor: Factor, parts: Sequence[str], reduced: str, part: str) -> str:
    """Return the name of a factor's feature. reduced: formulaic's mark if the first is left out."""
    if factor.levels:
        return f"{factor.text}[{reduced}{factor.levels[int(part)]}]"
    return factor.text if len(parts) == 1 else f"{factor.text}[{1 + parts.index(part)}]"


def _by_name(columns: Sequence[Used], codes: Array) -> dict[Name, Array]:
    """Return the codes (n,) of each column; raise ValueError for a missing value."""
    gaps = np.isnan(codes)
    if gaps.any():
        j = int(np.argmax(gaps.any(axis=0)))
        raise ValueError(
            f"column {columns[j].name!r} of the formula has no value in row "
            f"{np.argmax(gaps[:, j])}: fill it, or use Encoder.fit, which takes the median"
        )
    return {column.name: codes[:, j] for j, column in enumerate(columns)}


def _levels(column: Used) -> tuple[str, ...]:
    """Return the levels of the fit, and the pooled one where there is one; () of numbers."""
    if not isinstance(column, Levels):
        return ()
    other = POOLED if POOLED not in column.levels else f"({POOLED})"
    return (*column.levels, other) if column.pooled else column.levels


# ---- what was learned, in files ------------------------------------------------------------------


def restored(stored: dict[str, Any], columns: tuple[Used, ...]) -> Formula:
    """Return the formula that `Formula.stored` describes; raise ValueError for another.

    columns: those that it uses.
    """
    state = {
        call: {  # poly learns numbers by degree
            name: {int(key): one for key, one in value.items()}
            if isinstance(value, dict)
            else value
            for name, value in learned.items()
        }
        for call, learned in stored["state"].items()
    }
    formula = formula_of(stored["text"], columns, state)
    if list(formula.features) != stored["features"]:
        raise ValueError(f"the formula {formula.text!r} is broken: its features are others")
    return formula


def plain(state: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return what functions learned, by call, as values that JSON holds."""
    values: dict[str, dict[str, Any]] = json.loads(json.dumps(state, default=np.ndarray.tolist))
    return values
