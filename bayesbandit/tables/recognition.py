"""Recognition of a table's columns: numbers, dates, levels, or nothing to learn from."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import Name
from bayesbandit.tables.columns import NESTED, LeftOut, Number
from bayesbandit.tables.dates import DAY, Date, microseconds
from bayesbandit.tables.words import ISO, LOCAL, check_numbers, texts, words_in

if TYPE_CHECKING:
    import pandas as pd

NUMBERS = {"integer", "floating", "mixed-integer-float", "decimal"}  # by pandas' infer_dtype
LEVELS = {"string", "bytes", "boolean", "categorical", "mixed", "mixed-integer", "empty"}
DATES = {"datetime64", "datetime", "date", "period"}

DECIDES = "dates='%d/%m/%Y', or --dates, says how a file writes them"
IDENTIFYING = {"id", "ids", "uid", "uuid", "guid", "identifier", "rowid", "userid", "customerid"}
INDEX = r"Unnamed: \d+"  # the name that pandas gives to the index that `to_csv` wrote
MANY = 100  # rows at least, for whole numbers without gaps to be an identifier by themselves
GAPS = 0.05  # more numbers in their range than there are of them


@dataclass
class Recognised:
    """The recognised columns of a table with n rows, in order.

    numbers: columns with values (n,), NaN where one is missing. levels: columns with texts (n,).
    left: the reasons for columns that are left out, by name. guessed: those of them that a rule
    left out that may be wrong; the others have nothing to learn from.
    """

    numbers: dict[Name, tuple[Number, np.ndarray]] = field(default_factory=dict)
    levels: dict[Name, pd.Series] = field(default_factory=dict)
    left: dict[Name, LeftOut] = field(default_factory=dict)
    guessed: list[LeftOut] = field(default_factory=list)

    def leave(self, name: Name, why: str, guessed: bool = False) -> None:
        self.left[name] = LeftOut(name, why)
        if guessed:
            self.guessed.append(self.left[name])


def recognise(frame: pd.DataFrame, drop: Collection[Name], keep: Collection[Name]) -> Recognised:
    """Return the recognised columns of a table.

    drop: columns to leave out. keep: columns that are not dates or identifiers to leave out.
    """
    found = Recognised()
    for name in frame.columns:
        if name in drop:
            found.leave(name, "dropped")
        else:
            _sort(found, name, frame[name], name in keep)
    return found


def _sort(found: Recognised, name: Name, column: pd.Series, kept: bool) -> None:
    import pandas as pd

    kind = pd.api.types.infer_dtype(column)
    if kind in NUMBERS:
        _number(found, name, column, kind == "integer", kept)
        return
    if kind in DATES:
        _date(found, name, column, kept)
        return
    if kind not in LEVELS or any(isinstance(value, NESTED) for value in _objects(column, kind)):
        raise TypeError(
            f"column {name!r} holds {kind} ({column.dtype}); allowed are numbers, text, "
            "categories, booleans and dates: make it one of these, or drop it"
        )
    text = texts(column, name)
    if kind == "string" and _is_iso(text):
        _date(found, name, column, kept)
        return
    if kind == "string" and _is_local(text):
        _local_date(found, name, text, kept)
        return
    if kind in ("string", "mixed", "mixed-integer") and not kept:
        check_numbers(name, text)
    _levels(found, name, text, kept)


def _objects(column: pd.Series, kind: str) -> Any:
    return column if kind == "mixed" else ()


def _number(found: Recognised, name: Name, column: pd.Series, whole: bool, kept: bool) -> None:
    values = Number(name, 0.0).known(column)
    low, high = np.fmin.reduce(values), np.fmax.reduce(values)  # NaN only where all are
    if not low < high:
        found.leave(name, "it has no value" if np.isnan(low) else "it never varies")
    elif not kept and (why := _identifies(name, values, whole)):
        found.leave(name, why, guessed=True)
    else:
        found.numbers[name] = Number(name, 0.0), values


def _date(found: Recognised, name: Name, column: pd.Series, kept: bool) -> None:
    moments, missing = microseconds(column, name)
    known = moments[~missing]
    if not len(known) or known.min() == known.max():
        found.leave(name, "it never varies" if len(known) else "it has no value")
    elif not kept:
        found.leave(name, "dates", guessed=True)
    else:
        date = Date(name, 0.0, origin=int(known.min()))
        found.numbers[name] = date, np.where(missing, np.nan, (moments - date.origin) / DAY)


def _local_date(found: Recognised, name: Name, text: pd.Series, kept: bool) -> None:
    if kept:
        raise ValueError(
            f"column {name!r} cannot be kept: {text.dropna().iloc[0]!r} is a date that may be read "
            f"in more than one way; {DECIDES}, and pandas.to_datetime(frame[{name!r}], "
            "dayfirst=True) reads them in a table where days come first"
        )
    found.leave(name, f"dates that may be read in more than one way: {DECIDES}", guessed=True)


def _levels(found: Recognised, name: Name, text: pd.Series, kept: bool) -> None:
    counts = text.value_counts(dropna=False)
    known = int(text.notna().sum())
    if len(counts) <= 1:
        found.leave(name, "it never varies" if known else "it has no value")
    elif counts.iloc[0] == 1:
        _never_repeats(found, name, kept)
    elif not kept and (why := says_identifier(name)):
        found.leave(name, why, guessed=True)
    else:
        found.levels[name] = text


def _never_repeats(found: Recognised, name: Name, kept: bool) -> None:
    if kept:
        raise ValueError(
            f"column {name!r} cannot be kept: no text in it occurs twice, so that no level can be "
            "learned from"
        )
    found.leave(name, "an identifier: all of its values differ", guessed=True)


def _identifies(name: Name, values: np.ndarray, whole: bool) -> str:
    """Return why numbers (n,) are an identifier; "" where they are a measurement.

    They are whole, and the name says so; or they are integers that all differ, of many rows, and
    leave hardly a number of their range out.
    """
    known = values[~np.isnan(values)]
    if not (known == np.floor(known)).all():
        return ""
    if why := says_identifier(name):
        return why
    n, span = len(known), known.max() - known.min() + 1
    if whole and len(np.unique(known)) == n == len(values) >= MANY and span <= (1 + GAPS) * n:
        return "an identifier: its values number the rows"
    return ""


def check_no_identifier(names: Collection[Name], option: str) -> None:
    """Raise ValueError for columns that would be contexts and are identifiers by their names.

    option: the argument that names the contexts.
    """
    for name in names:
        if why := says_identifier(name):
            raise ValueError(
                f"column {name!r} is {why}, and would be a context: {option}=[…] names the columns "
                "that are contexts"
            )


def says_identifier(name: Name) -> str:
    """Return why a column identifies rows or persons by its name, as customer_id and orderId do;
    "" if it does not."""
    if re.fullmatch(INDEX, str(name)):
        return "an index that was written with the table"
    last = words_in(name)[-1:]
    return "an identifier, by its name" if IDENTIFYING.intersection(last) else ""


def _is_iso(text: pd.Series) -> bool:
    """Return whether all texts are dates as ISO 8601 writes them."""
    import pandas as pd

    known = text.dropna().astype(str)
    if known.empty or not known.str.fullmatch(ISO).all():
        return False
    try:
        pd.to_datetime(known, utc=True, format="ISO8601")
    except ValueError:
        return False
    return True


def _is_local(text: pd.Series) -> bool:
    """Return whether all texts are dates as people write them, such as 22/11/2026."""
    known = text.dropna().astype(str)
    return not known.empty and bool(known.str.fullmatch(LOCAL).all())
