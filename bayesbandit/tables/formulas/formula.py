"""Contexts by a formula: interactions, splines and arithmetic, with the state of the fit."""

from __future__ import annotations

import math
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
)
from bayesbandit.tables.formulas.expressions import columns_of, value_of, width
from bayesbandit.tables.formulas.states import check_state, plain, restored
from bayesbandit.tables.formulas.terms import Terms, terms_of
from bayesbandit.tables.learning import learn
from bayesbandit.tables.recognition import recognise
from bayesbandit.tables.words import check_numbers

if TYPE_CHECKING:
    import pandas as pd
    from formulaic import ModelSpec

UNBOUNDED = 10**9
POOLED = "other"
MOST_FEATURES = 5000
BROKEN = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError)  # by odd values
PARTS = {"text", "terms", "state", "features"}


@dataclass(frozen=True, eq=False)
class Formula:
    """A formula, its terms, and what its functions learned (`state`, by call).

    features: names; uses: the columns of each. kept: which columns of the design are features.
    """

    text: str
    terms: Terms
    state: Mapping[str, Any] = field(repr=False)
    features: tuple[str, ...]
    uses: tuple[frozenset[str], ...]
    kept: np.ndarray
    design: ModelSpec = field(repr=False)

    def encoded(self, columns: Sequence[Used], values: Mapping[Name, Values]) -> np.ndarray:
        """Return features (n, d) of columns' values."""
        frame = typed(columns, values)
        return matrix(self.design, self.terms, dict(self.state), frame)[0][:, self.kept]

    def features_of(self, column: Name) -> list[str]:
        """Return the names of the features that use a column."""
        pairs = zip(self.features, self.uses, strict=True)
        return [name for name, used in pairs if column in used]

    def spans_constant(self, levels: Collection[str]) -> bool:
        """Return whether a term has a feature for each of its levels: one that is of columns of
        levels alone, in a formula that takes the constant away. levels: the names of these columns.
        """
        factors = self.terms.factors
        return () not in self.terms.terms and any(
            all(set(columns_of(factors[factor])) <= set(levels) for factor in term)
            for term in self.terms.terms
        )

    def stored(self) -> dict[str, Any]:
        """Return the formula as plain values, for a file."""
        return {
            "text": self.text,
            "terms": [list(term) for term in self.terms.terms],
            "state": {call: plain(state) for call, state in self.state.items()},
            "features": list(self.features),
        }


def learned(text: str, table: pd.DataFrame) -> tuple[tuple[Column, ...], Formula]:
    """Return the columns of a table as a formula uses them, and the formula with its state."""
    terms = terms_of(text, list(table.columns))
    used = {name for factor in terms.factors.values() for name in columns_of(factor)}
    needed = [name for name in table.columns if name in used]
    if not needed:
        raise ValueError(f"the formula {text!r} names no column")
    found = recognise(table[needed], (), needed)
    if left := list(found.left.values()):
        raise ValueError(f"column {left[0].name!r} of the formula: {left[0].why}")
    for name in needed:
        if gaps := int(table[name].isna().sum()):
            raise ValueError(_gap(name, int(np.flatnonzero(table[name].isna())[0]), gaps))
    for column, levels in found.levels.items():
        if table[column].dtype != "category":
            check_numbers(column, levels)
    known = {column.name: column for column in learn(table[needed], found, UNBOUNDED)[0]}
    every = tuple(known.get(name, LeftOut(name, "not in the formula")) for name in table.columns)
    inputs = [column for column in every if not isinstance(column, LeftOut)]
    frame = typed(inputs, {name: table[name] for name in needed})
    check_size(text, terms, inputs)
    state: dict[str, Any] = {}
    matrix(_spec(terms), terms, state, frame)
    stored = {call: restored(plain(one)) for call, one in state.items() if one}
    return every, _whole(text, terms, stored, inputs)


def formula_of(stored: object, inputs: Sequence[Used], names: Collection[Name]) -> Formula:
    """Return the formula that `Formula.stored` describes; a ValueError for another. inputs: the
    columns that it uses; names: all columns of the fit."""
    if not (isinstance(stored, dict) and stored.keys() == PARTS):
        raise ValueError(
            f"a formula's parts are {', '.join(sorted(PARTS))}; got {shown(stored)[:80]}"
        )
    text, terms, features = stored["text"], stored["terms"], stored["features"]
    columns = [column.name for column in inputs]
    found = terms_of(text, names)
    used = {name for factor in found.factors.values() for name in columns_of(factor)}
    if used != set(columns):
        raise ValueError(f"the formula {text!r} is broken: it uses {sorted(used)}, not {columns}")
    if terms != [list(term) for term in found.terms]:
        raise ValueError(f"the formula {text!r} is broken: its terms are {found.terms}")
    check_size(text, found, inputs)
    if not (isinstance(stored["state"], dict) and all(type(key) is str for key in stored["state"])):
        raise ValueError(f"the formula {text!r} is broken: its state is of no terms")
    state = {call: restored(one) for call, one in stored["state"].items()}
    if {call: plain(one) for call, one in state.items()} != stored["state"]:
        raise ValueError(f"the formula {text!r} is broken: its state is not as it was saved")
    formula = _whole(text, found, state, inputs)
    if list(formula.features) != features:
        raise ValueError(f"the formula {text!r} is broken: its features are {formula.features}")
    return formula


def check_size(text: str, terms: Terms, inputs: Sequence[Used]) -> None:
    """Raise a ValueError where there would be more than MOST_FEATURES, before there are any."""
    levels: dict[Name, int] = {
        column.name: max(2, len(_levels(column))) if isinstance(column, Levels) else 1
        for column in inputs
    }
    wide = {factor: width(computed, levels) for factor, computed in terms.factors.items()}
    total = sum(math.prod(wide[factor] for factor in term) for term in terms.terms)
    if total > MOST_FEATURES:
        raise ValueError(
            f"the formula {shown(text)[:80]} may have {total:,} features; at most {MOST_FEATURES:,}"
        )


def _whole(text: str, terms: Terms, state: dict[str, Any], inputs: Sequence[Used]) -> Formula:
    """Return the formula with this state, tried on one row: the medians and first levels of the
    fit."""
    check_state(text, terms, state)
    values: dict[Name, Values] = {column.name: [_usual(column)] for column in inputs}
    found, design = matrix(_spec(terms), terms, dict(state), typed(inputs, values, usual=True))
    names, uses, kept = [], [], []
    for part in design.structure:
        factors = [factor.expr for factor in part.term.factors if factor.expr != "1"]
        of = frozenset(name for one in factors for name in columns_of(terms.factors[one]))
        kept += [bool(factors)] * len(part.columns)
        if factors:
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


def _spec(terms: Terms) -> ModelSpec:
    """Return what formulaic makes a design by; the terms in this order, of factors that it looks
    up."""
    from formulaic import ModelSpec, SimpleFormula
    from formulaic.parser.types import Factor, Term

    constant = Factor("1", eval_method="literal", kind="constant")
    made = [
        Term([Factor(factor, eval_method="lookup") for factor in term] or [constant])
        for term in terms.terms
    ]
    return ModelSpec(
        formula=SimpleFormula(made, _ordering="none"), na_action="ignore", output="pandas"
    )


def first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def matrix(
    spec: ModelSpec, terms: Terms, state: dict[str, Any], frame: pd.DataFrame
) -> tuple[np.ndarray, ModelSpec]:
    """Return the design (n, p) of typed columns, and the specification that has learned from it.
    formulaic gets computed factors, and evaluates no text."""
    from formulaic.errors import DataMismatchWarning, FormulaicError

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", DataMismatchWarning)  # levels that the fit did not see
        try:
            values = {one: value_of(f, frame, state) for one, f in terms.factors.items()}
            made = spec.get_model_matrix(frame, context=values)
        except (FormulaicError, *BROKEN) as error:
            said = first_line(error.__cause__ or error)
            raise ValueError(f"the formula cannot be computed: {said}") from error
    return made.to_numpy(dtype=np.float64), made.model_spec


def typed(
    columns: Sequence[Used], values: Mapping[Name, Values], usual: bool = False
) -> pd.DataFrame:
    """Return columns as formulaic takes them: numbers, and levels of the fit; of a level that it
    did not see, and for which there is no pooled one, no value. usual: numbers are of the features'
    units, and levels are numbers."""
    import pandas as pd

    made: dict[Name, Any] = {}
    for column in columns:
        if isinstance(column, Levels):
            given = values[column.name]
            codes = np.array([0] if usual else _codes(column, given))
            made[column.name] = pd.Categorical.from_codes(codes, pd.Index(_levels(column)))
        else:
            given = values[column.name]
            known = np.array(given, dtype=np.float64) if usual else column.known(given)
            if (gaps := np.isnan(known)).any():
                raise ValueError(_gap(column.name, int(np.argmax(gaps)), int(gaps.sum())))
            made[column.name] = known
    return pd.DataFrame(made)


def _levels(column: Levels) -> list[str]:
    """Return the levels of the fit, and the pooled one where there is one."""
    if column.pooled is None:
        return [*column.levels]
    return [*column.levels, POOLED if POOLED not in column.levels else f"({POOLED})"]


def _codes(column: Levels, values: Values) -> list[int]:
    """Return the number of each value's level; of others, that of the pooled one, or −1."""
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
