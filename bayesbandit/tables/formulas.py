"""Contexts by a formula: interactions, splines and arithmetic, with the state of the fit."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import Name, shown
from bayesbandit.tables.columns import (
    ABSENT,
    NEW,
    Column,
    LeftOut,
    Levels,
    Used,
    Values,
    objects,
    unique,
)  # fmt: skip
from bayesbandit.tables.learning import learn
from bayesbandit.tables.recognition import recognise
from bayesbandit.tables.terms import check_alike, context, names_in

if TYPE_CHECKING:
    import pandas as pd
    from formulaic import ModelSpec

UNBOUNDED = 10**9
POOLED = "other"
PARTS = {"text", "terms", "state", "features"}


@dataclass(frozen=True, eq=False)
class Formula:
    """A formula, its terms as factors, and what its functions learned (`state`, by factor).

    features: names; uses: the columns of each. kept: which columns of the design are features.
    """

    text: str
    terms: tuple[tuple[str, ...], ...]
    state: Mapping[str, Any] = field(repr=False)
    features: tuple[str, ...]
    uses: tuple[frozenset[str], ...]
    kept: np.ndarray
    design: ModelSpec = field(repr=False)

    def encoded(self, columns: Sequence[Used], values: Mapping[Name, Values]) -> np.ndarray:
        """Features (n, d) of columns' values."""
        frame = typed(columns, values)
        return matrix(self.design, frame)[0][:, self.kept]

    def of(self, column: Name) -> list[str]:
        """The features in which a column is."""
        pairs = zip(self.features, self.uses, strict=True)
        return [name for name, used in pairs if column in used]

    def stored(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "text": self.text,
            "terms": [list(term) for term in self.terms],
            "state": {factor: plain(state) for factor, state in self.state.items()},
            "features": list(self.features),
        }


def learned(text: Any, table: pd.DataFrame) -> tuple[tuple[Column, ...], Formula]:
    """The columns of a table as a formula uses them, and the formula with its state."""
    if not isinstance(text, str):
        raise TypeError(f"a formula is a text, as '~ age * country'; got {shown(text)}")
    if re.search(r"(^|[\s~+*:(-])\.($|[\s+*:)-])", text):
        raise ValueError(f"the formula {text!r}: '.' stands for no columns; name them")
    terms = terms_of(text)
    columns = [name for name in table.columns if isinstance(name, str)]
    if numeral := [name for name in columns if name.isdecimal() and f"`{name}`" in text]:
        raise ValueError(
            f"the formula {text!r}: the column {numeral[0]!r} reads as a number; rename it"
        )
    columns = [name for name in columns if not name.isdecimal()]
    used = {name for term in terms for factor in term for name in names_in(factor, columns)}
    check_alike(sorted(used), {factor for term in terms for factor in term})
    needed = [name for name in table.columns if name in used]
    if not needed:
        raise ValueError(f"the formula {text!r} names no column")
    found = recognise(table[needed], (), needed)
    if left := list(found.left.values()):
        raise ValueError(f"column {left[0].name!r} of the formula: {left[0].why}")
    for name in needed:
        if gaps := int(table[name].isna().sum()):
            raise ValueError(_gap(name, int(np.flatnonzero(table[name].isna())[0]), gaps))
    known = {column.name: column for column in learn(table[needed], found, UNBOUNDED)[0]}
    every = tuple(known.get(name, LeftOut(name, "not in the formula")) for name in table.columns)
    inputs = [column for column in every if not isinstance(column, LeftOut)]
    frame = typed(inputs, {name: table[name] for name in needed})
    state = matrix(_spec(terms, {}, needed), frame)[1].transform_state
    stored = {factor: _restored(plain(one)) for factor, one in state.items() if one}
    return every, _whole(text, terms, stored, inputs)


def terms_of(text: str) -> tuple[tuple[str, ...], ...]:
    """The factors of a formula's terms; of the constant term there are none."""
    from formulaic import Formula as Parsed
    from formulaic import SimpleFormula
    from formulaic.errors import FormulaicError

    try:
        parsed = Parsed(text)
    except (FormulaicError, SyntaxError, ValueError, RecursionError) as error:
        raise ValueError(f"the formula {text!r} cannot be read: {first_line(error)}") from error
    if not isinstance(parsed, SimpleFormula):
        raise ValueError(f"a formula has one side, as '~ age * country'; got {text!r}")
    terms = []
    for term in parsed:
        factors = [factor.expr for factor in term.factors]
        terms.append(tuple(factor for factor in factors if factor != "1"))
    return tuple(terms)


def formula_of(stored: Any, inputs: Sequence[Used]) -> Formula:
    """The formula that `Formula.stored` describes; a ValueError for another."""
    if not (isinstance(stored, dict) and stored.keys() == PARTS):
        raise ValueError(
            f"a formula's parts are {', '.join(sorted(PARTS))}; got {shown(stored)[:80]}"
        )
    text, terms, features = stored["text"], stored["terms"], stored["features"]
    lists = [terms, features, *(terms if type(terms) is list else [])]
    if type(text) is not str or not all(type(one) is list for one in lists):
        raise ValueError(f"the formula {shown(text)[:80]} is broken: its terms are no lists")
    factors = [factor for term in terms for factor in term]
    if not all(type(one) is str for one in (*factors, *features)):
        raise ValueError(f"the formula {text!r} is broken: its terms are no texts")
    columns = [column.name for column in inputs]
    used = {name for factor in factors for name in names_in(factor, columns)}
    if used != set(columns):
        raise ValueError(f"the formula {text!r} is broken: it uses {sorted(used)}, not {columns}")
    if not (isinstance(stored["state"], dict) and all(type(key) is str for key in stored["state"])):
        raise ValueError(f"the formula {text!r} is broken: its state is of no terms")
    state = {factor: _restored(one) for factor, one in stored["state"].items()}
    formula = _whole(text, tuple(map(tuple, terms)), state, inputs)
    if list(formula.features) != features:
        raise ValueError(f"the formula {text!r} is broken: its features are {formula.features}")
    return formula


def _whole(
    text: str, terms: tuple[tuple[str, ...], ...], state: dict[str, Any], inputs: Sequence[Used]
) -> Formula:
    """The formula with this state, tried on one row: the medians and first levels of the fit."""
    values: dict[Name, Values] = {column.name: [_usual(column)] for column in inputs}
    before = {factor: plain(one) for factor, one in state.items()}
    try:
        found, design = matrix(_spec(terms, state, values), typed(inputs, values, usual=True))
    except (IndexError, KeyError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"the formula {text!r} is broken: {error}") from error
    after = {factor: plain(one) for factor, one in design.transform_state.items()}
    if {factor: one for factor, one in after.items() if one != plain({})} != before:
        raise ValueError(f"the formula {text!r} is broken: its state is not whole")
    names, uses, kept = [], [], []
    columns = [column.name for column in inputs]
    for part in design.structure:
        factors = [factor.expr for factor in part.term.factors]
        constant = all(factor == "1" for factor in factors)
        of = frozenset(n for f in factors if f != "1" for n in names_in(f, columns))
        kept += [not constant] * len(part.columns)
        if not constant:
            names += part.columns
            uses += [of] * len(part.columns)
    if not names:
        raise ValueError(f"the formula {text!r} has no feature")
    if len(kept) != found.shape[1]:
        raise ValueError(f"the formula {text!r} is broken: it gives {found.shape[1]} columns")
    return Formula(
        text, terms, state, unique(names), tuple(uses), np.array(kept, dtype=np.bool_), design
    )


def _usual(column: Used) -> Any:
    return 0 if isinstance(column, Levels) else column.median


def _spec(
    terms: Sequence[Sequence[str]], state: Mapping[str, Any], columns: Collection[Any]
) -> Any:
    """What formulaic makes a design by; the terms in this order."""
    from formulaic import ModelSpec, SimpleFormula
    from formulaic.parser.types import Factor, Term

    made = [Term([_factor(Factor, expr, columns) for expr in term or ("1",)]) for term in terms]
    return ModelSpec(
        formula=SimpleFormula(made, _ordering="none"),
        transform_state={factor: dict(one) for factor, one in state.items()},
        na_action="ignore",
        output="pandas",
    )


def _factor(Factor: Any, expr: str, columns: Collection[Any]) -> Any:
    if expr in columns:
        return Factor(expr, eval_method="lookup")
    if expr == "1":
        return Factor(expr, eval_method="literal", kind="constant")
    return Factor(expr, eval_method="python")


def first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def matrix(spec: Any, frame: pd.DataFrame) -> tuple[np.ndarray, Any]:
    """The design (n, p) of typed columns, and the specification that has learned from it."""
    from formulaic.errors import DataMismatchWarning, FormulaicError

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", DataMismatchWarning)  # levels that the fit did not see
        try:
            made = spec.get_model_matrix(frame, context=context())
        except (FormulaicError, TypeError, ValueError) as error:
            said = first_line(error.__cause__ or error)
            raise ValueError(f"the formula cannot be computed: {said}") from error
    return made.to_numpy(dtype=np.float64), made.model_spec


def typed(
    columns: Sequence[Used], values: Mapping[Name, Values], usual: bool = False
) -> pd.DataFrame:
    """Columns as formulaic takes them: numbers, and levels of the fit; of a level that it did not
    see, and for which there is no pooled one, no value. usual: numbers are of the features' units,
    and levels are numbers."""
    import pandas as pd

    made: dict[Name, Any] = {}
    for column in columns:
        if isinstance(column, Levels):
            levels = list(column.levels)
            pooled = POOLED if POOLED not in levels else f"({POOLED})"
            every = levels if column.pooled is None else [*levels, pooled]
            given = values[column.name]
            codes = np.array([0] if usual else _codes(column, given))
            made[column.name] = pd.Categorical.from_codes(codes, pd.Index(every))
        else:
            given = values[column.name]
            known = np.array(given, dtype=np.float64) if usual else column.known(given)
            if (gaps := np.isnan(known)).any():
                raise ValueError(_gap(column.name, int(np.argmax(gaps)), int(gaps.sum())))
            made[column.name] = known
    return pd.DataFrame(made)


def _codes(column: Levels, values: Values) -> list[int]:
    """The number of each value's level; of others, that of the pooled one, or −1."""
    pooled = NEW if column.pooled is None else len(column.levels)
    places = column.places(objects(values))
    if ABSENT in places:
        raise ValueError(_gap(column.name, places.index(ABSENT), places.count(ABSENT)))
    return [pooled if place == NEW else place for place in places]


def _gap(name: Name, row: int, gaps: int) -> str:
    more = f" and {gaps - 1} more" if gaps > 1 else ""
    return (
        f"column {name!r} of the formula has no value in row {row + 1}{more}: fill it, or use "
        "Encoder.fit, which takes the median"
    )


def plain(value: Any) -> Any:
    """A state as values that JSON holds."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, np.ndarray):
        return {"array": value.ravel().tolist(), "shape": list(value.shape)}
    if isinstance(value, Mapping):
        return {"pairs": [[plain(key), plain(one)] for key, one in value.items()]}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    raise TypeError(f"a formula's state has {shown(value)}, which cannot be stored")


def _restored(stored: Any) -> Any:
    """What `plain` stored."""
    if type(stored) is list:
        return [_restored(one) for one in stored]
    if type(stored) is dict and stored.keys() == {"array", "shape"}:
        array = np.array([float(one) for one in stored["array"]])
        return array.reshape(stored["shape"])
    if type(stored) is dict and stored.keys() == {"pairs"}:
        return {_restored(key): _restored(one) for key, one in stored["pairs"]}
    if stored is None or type(stored) in (bool, int, float, str):
        return stored
    raise ValueError(f"a formula's state has {shown(stored)[:80]}")
