"""Contexts by a formula: read against an allow-list, expanded by formulaic, and then frozen.

formulaic's parser evaluates calls on the left of ~ as it reads them. Therefore it sees no text of
the user but operators, 0 and 1: each factor is read in `expressions`, and stands as f0, f1, … in
what formulaic expands. What remains is a list of products of factors, which are computed here.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import Name, shown
from bayesbandit.tables import fitting
from bayesbandit.tables.columns import (
    MISSING_VALUE,
    UNSEEN_LEVEL,
    Column,
    LeftOut,
    Levels,
    Used,
    Values,
    unique,
)
from bayesbandit.tables.expressions import Factor, Reader

if TYPE_CHECKING:
    import pandas as pd

MAX_CHARACTERS = 10_000  # of a formula
MAX_TERMS = 50_000  # that an operator goes through
MAX_FACTORS = 6  # of a term
MAX_FEATURES = 5000
MAX_LEARNED = 250  # numbers of one kind that a function learns
POOLED = "other"
BROKEN = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError)  # by odd values
FORMULA_FIELDS = {"text", "state", "features"}

type Products = tuple[tuple[tuple[int, bool], ...], ...]  # of factors; whether without their first


@dataclass(frozen=True, eq=False)
class Formula:
    """A formula and what its functions learned (`state`, by call).

    products: the numbers of the factors that are multiplied; True if the first level is left out.
    constant: whether the text names the constant term.
    """

    text: str
    state: Mapping[str, dict[str, Any]] = field(repr=False)
    factors: tuple[Factor, ...]
    products: Products
    constant: bool
    features: tuple[str, ...]
    uses: tuple[frozenset[Name], ...]  # the columns of each feature

    def encoded(self, columns: Sequence[Used], values: Mapping[Name, Values]) -> np.ndarray:
        """Return features (n, d) of columns' values."""
        typed = {column.name: _typed(column, values[column.name]) for column in columns}
        parts = computed(self.text, self.factors, typed)
        features = np.empty((len(next(iter(typed.values()))), len(self.features)))
        start = 0
        with np.errstate(all="ignore"):  # `Encoder.transform` refuses what is not finite
            for factors in self.products:
                kept = [parts[k][first:] for k, first in factors]
                for chosen in product(*reversed(kept)):  # as formulaic: the first changes fastest
                    features[:, start] = math.prod(reversed(chosen))
                    start += 1
        return features

    def features_of(self, column: Name) -> list[str]:
        """Return the names of the features that use a column."""
        pairs = zip(self.features, self.uses, strict=True)
        return [name for name, used in pairs if column in used]

    def stored(self) -> dict[str, Any]:
        """Return the formula as plain values, for a file."""
        return {"text": self.text, "state": _plain(self.state), "features": list(self.features)}


def learned(text: str, table: pd.DataFrame) -> tuple[tuple[Column, ...], Formula]:
    """Return the columns of a table as a formula uses them, and the formula with its state."""
    factors = read(text, dict.fromkeys(table.columns, ()), {})[1]  # levels are not known yet
    used = {name for factor in factors for name in factor.columns}
    needed = [name for name in table.columns if name in used]
    if not needed:
        raise ValueError(f"the formula {text!r} names no column")
    known = {column.name: column for column in fitting.fit(table[needed], (), needed)}
    if left := [column for column in known.values() if isinstance(column, LeftOut)]:
        raise ValueError(f"column {left[0].name!r} of the formula: {left[0].why}")
    inputs: list[Any] = list(known.values())
    every = tuple(known.get(name, LeftOut(name, "not in the formula")) for name in table.columns)
    return every, formula_of(text, inputs, {}, {name: table[name] for name in needed})


def formula_of(
    text: str,
    columns: Sequence[Used],
    state: dict[str, dict[str, Any]],
    values: Mapping[Name, Values] | None = None,
) -> Formula:
    """Return the formula of a text; raise ValueError for one that is not allowed.

    columns: those that it uses. values: a table from which its functions learn. Without it they
    have learned: the state is tried on one row, the medians and first levels of the fit.
    """
    levels = {column.name: _levels(column) for column in columns}
    skeleton, factors = read(text, levels, state)
    if {name for factor in factors for name in factor.columns} != levels.keys():
        raise ValueError(f"the formula {text!r} is broken: it uses other columns than {[*levels]}")
    if values is not None:
        computed(text, factors, {one.name: _typed(one, values[one.name]) for one in columns})
    before = _plain(state)
    usual = {one.name: _usual(one) for one in columns}
    parts = computed(text, factors, usual)
    sizes = {part.shape for several in parts for part in several}
    if sizes != {(1,)} or before != _plain(state):
        raise ValueError(f"the formula {text!r} is broken: its state is not whole")
    expanded = _expanded(text, skeleton, factors)
    widths = {f"f{k}": max(2, len(part)) for k, part in enumerate(parts)} | {"1": 1}
    most = sum(math.prod(widths[one.expr] for one in term.factors) for term in expanded)
    if most > MAX_FEATURES:
        raise ValueError(
            f"the formula {shown(text)[:80]} may have {most:,} features; at most {MAX_FEATURES:,}"
        )
    products = _products(expanded, factors, usual)
    names, uses = [], []
    for chosen in products:
        several = [_labels(factors[k], len(parts[k]), first) for k, first in chosen]
        found = [":".join(reversed(one)) for one in product(*reversed(several))]
        names += found
        uses += [frozenset[Name]().union(*(factors[k].columns for k, _ in chosen))] * len(found)
    if not names:
        raise ValueError(f"the formula {text!r} has no feature")
    written = _parsed(skeleton, implied=False)
    constant = any([one.expr for one in term.factors] == ["1"] for term in written)
    return Formula(text, state, factors, products, constant, unique(names), tuple(uses))


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
    code, aliases = _without_backticks(text)
    reader = Reader(levels, aliases, state)
    places: dict[tuple[str, bool], int] = {}
    factors: list[Factor] = []
    parts: list[str] = []
    try:
        tokens = [(token.kind.value, token.token) for token in tokenize(code)]
    except FormulaicError as error:
        raise _unread(text, error) from error
    for i, (kind, said) in enumerate(tokens):
        if kind == "operator" and i == 0:
            said = said.removeprefix("~")
        if kind in ("name", "python") and said != ".":
            factor = reader.factor(said)
            place = places.setdefault(
                (factor.text, aliases.get(said, said) in levels), len(factors)
            )
            if place == len(factors):
                factors.append(factor)
            parts.append(f"f{place}")
        elif kind == "operator" and ("~" in said or "|" in said):
            raise ValueError(f"a formula has one side, as '~ age * country'; got {text!r}")
        elif said in ("0", "1", "(", ")", "") or (
            (kind == "operator" and re.fullmatch(r"[-+*/:^]{1,20}", said))
            or (parts and parts[-1] in ("**", "^") and re.fullmatch("[1-9][0-9]?", said))
        ):
            parts.append(said)
        else:
            raise _unread(text, f"there is {said[:20]!r}")
    return " ".join(parts), tuple(factors)


def _without_backticks(text: str) -> tuple[str, dict[str, str]]:
    """Return a formula with an identifier for each name in backticks, and what these stand for."""
    stem = "quoted"
    while stem in unicodedata.normalize("NFKC", text):
        stem += "_"
    aliases: dict[str, str] = {}

    def identifier(found: re.Match[str]) -> str:
        alias = f"{stem}{len(aliases)}"
        aliases[alias] = found[1]
        return f" {alias} "

    code = re.sub("`([^`]*)`", identifier, text)
    if quote := re.search("[`'\"]", code):
        raise _unread(text, f"there is {quote[0]}; names stand in backticks, `as this`")
    return code, aliases


def _parsed(skeleton: str, implied: bool = True) -> Any:
    """Return what formulaic expands a formula of symbols to.

    implied: whether there is a constant term unless the formula takes it away.
    """
    from formulaic import Formula as Expanded
    from formulaic.parser import DefaultFormulaParser

    parser = DefaultFormulaParser(include_intercept=implied)
    if _size(parser.get_ast(skeleton)) > MAX_TERMS:
        raise ValueError("it may have too many terms")
    return Expanded(skeleton, _parser=parser)


def _expanded(text: str, skeleton: str, factors: Sequence[Factor]) -> Any:
    """Return the terms of a formula, as formulaic has them."""
    from formulaic.errors import FormulaicError

    try:
        found = _parsed(skeleton)
    except (FormulaicError, SyntaxError, *BROKEN, RecursionError) as error:
        said = re.sub(r"\bf(\d+)", lambda number: factors[int(number[1])].text, str(error))
        raise _unread(text, said) from error
    if (most := max((len(term.factors) for term in found), default=0)) > MAX_FACTORS:
        raise ValueError(f"a term of the formula has {most} factors; at most {MAX_FACTORS}")
    return found


def _size(node: Any) -> int:
    """Return how many terms a node of formulaic's syntax tree has, or goes through, at most."""
    symbol = getattr(getattr(node, "operator", None), "symbol", None)
    if symbol is None:
        return 1
    if symbol in ("**", "^"):
        base, exponent = node.args
        found = _size(base) ** int(str(exponent))
    else:
        sizes = [_size(one) for one in node.args]
        more = symbol != ":"  # the terms themselves are beside their products
        found = sum(sizes) if symbol in "+-" else math.prod(size + more for size in sizes)
    if found > MAX_TERMS:
        raise ValueError("it may have too many terms")
    return found


def _unread(text: str, why: object) -> ValueError:
    said = (str(why).splitlines() or [type(why).__name__])[0]
    return ValueError(f"the formula {text!r} cannot be read: {said}")


# ---- the design ----------------------------------------------------------------------------------


def _products(
    expanded: Any, factors: Sequence[Factor], usual: Mapping[Name, np.ndarray]
) -> Products:
    """Return the products of factors of which formulaic's design consists, so that no column
    follows from others. usual: the columns of one row."""
    import pandas as pd
    from formulaic import ModelSpec

    spec = ModelSpec(formula=expanded, na_action="ignore", output="pandas")
    with np.errstate(all="ignore"):
        row = {
            f"f{k}": pd.Categorical.from_codes([0], pd.Index(factor.levels))
            if factor.levels
            else factor.compute(usual)
            for k, factor in enumerate(factors)
        }
        design = spec.get_model_matrix(pd.DataFrame(index=[0]), context=row).model_spec
    return tuple(
        tuple((int(one.factor.expr[1:]), one.reduced) for one in scoped.factors)
        for term in design.structure
        for scoped in term.scoped_terms
        if scoped.factors
    )


def computed(
    text: str, factors: Sequence[Factor], typed: Mapping[Name, np.ndarray]
) -> list[list[np.ndarray]]:
    """Return what each factor computes of typed columns: arrays (n,), one for each of its features.

    Of levels there is an array of 0 and 1 for each; all are 0 for −1.
    """
    parts = []
    with np.errstate(all="ignore"):
        for factor in factors:
            try:
                found = factor.compute(typed)
                if factor.levels:
                    parts.append([(found == k) * 1.0 for k in range(len(factor.levels))])
                elif isinstance(getattr(found, "__wrapped__", found), dict):
                    parts.append([np.asarray(one, dtype=np.float64) for one in found.values()])
                else:
                    parts.append(list(np.atleast_2d(np.asarray(found, dtype=np.float64).T)))
            except BROKEN as error:
                said = (str(error).splitlines() or [type(error).__name__])[0]
                raise ValueError(f"the formula {text!r} cannot be computed: {said}") from error
    return parts


def _labels(factor: Factor, width: int, reduced: bool) -> list[str]:
    """Return the names of a factor's features. reduced: the first is left out."""
    if factor.levels:
        mark = "T." if reduced else ""
        return [f"{factor.text}[{mark}{level}]" for level in factor.levels[reduced:]]
    if width == 1:
        return [factor.text]
    return [f"{factor.text}[{j}]" for j in range(1 + reduced, width + 1)]


def _typed(column: Used, values: Values) -> np.ndarray:
    """Return numbers (n,), or the number of each value's level; a new level is the pooled one, or
    −1. Raise ValueError for a missing value."""
    if isinstance(column, Levels):
        places = column.places(values)
        gaps = places == MISSING_VALUE
        found = np.where(
            places == UNSEEN_LEVEL, len(column.levels) if column.pooled else -1, places
        )
    else:
        found = column.known(values)
        gaps = np.isnan(found)
    if gaps.any():
        raise ValueError(_gap(column.name, int(np.argmax(gaps)), int(gaps.sum())))
    return found


def _usual(column: Used) -> np.ndarray:
    return np.array([0] if isinstance(column, Levels) else [column.median])


def _levels(column: Used) -> tuple[str, ...]:
    """Return the levels of the fit, and the pooled one where there is one; () of numbers."""
    if not isinstance(column, Levels) or not column.pooled:
        return column.levels if isinstance(column, Levels) else ()
    return (*column.levels, POOLED if POOLED not in column.levels else f"({POOLED})")


def _gap(name: Name, row: int, gaps: int) -> str:
    more = f" and {gaps - 1} more" if gaps > 1 else ""
    return (
        f"column {name!r} of the formula has no value in row {row + 1}{more}: fill it, or use "
        "Encoder.fit, which takes the median"
    )


# ---- what was learned, in files ------------------------------------------------------------------


def restored(stored: object, columns: Sequence[Used]) -> Formula:
    """Return the formula that `Formula.stored` describes; raise ValueError for another.

    columns: those that it uses.
    """
    if not (isinstance(stored, dict) and stored.keys() == FORMULA_FIELDS):
        raise ValueError(f"a formula's parts are {', '.join(sorted(FORMULA_FIELDS))}")
    text = stored["text"]
    if not isinstance(stored["state"], dict) or not all(
        isinstance(learned, dict) and all(map(_is_learned, learned.values()))
        for learned in stored["state"].values()
    ):
        raise ValueError(f"the formula {shown(text)[:80]} is broken: its state is not whole")
    state = {
        call: {name: _of_plain(value) for name, value in learned.items()}
        for call, learned in stored["state"].items()
    }
    formula = formula_of(text, columns, state)
    if list(formula.features) != stored["features"]:
        raise ValueError(f"the formula {text!r} is broken: its features are {formula.features}")
    return formula


def _plain(state: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return what functions learned, by call, as values that JSON holds."""
    plain: dict[str, dict[str, Any]] = json.loads(json.dumps(state, default=np.ndarray.tolist))
    return plain


def _of_plain(value: Any) -> Any:
    """Return what `_plain` stored: poly learns numbers by degree."""
    if isinstance(value, dict):
        return {int(key): float(one) for key, one in value.items()}
    return value


def _is_learned(value: object) -> bool:
    """Return whether a value is None, True or False, a finite number, or a few of them."""
    if isinstance(value, dict):
        degrees = all(isinstance(key, str) and key.isdecimal() for key in value)
        return degrees and _is_learned(list(value.values()))
    if isinstance(value, list):
        return len(value) <= MAX_LEARNED and all(
            type(one) in (int, float) and math.isfinite(one) for one in value
        )
    return value is None or type(value) is bool or _is_learned([value])
