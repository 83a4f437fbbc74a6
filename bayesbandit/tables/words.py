"""Values as text, and numbers that are written as text."""

from __future__ import annotations

import re
import shlex
from datetime import date
from decimal import Decimal
from math import inf
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

NUMBERS = (Real, Decimal, str, np.bool_)  # types of numbers, and of texts that may be some
EXACT = 2**53  # floats below it hold each whole number
WORDS = r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+"
STRAY = 0.1  # the share of words at most in a column that is taken to be meant as numbers
MAX_LEVELS = 20  # one-hot columns that one column may become
ISO = r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?\s?(Z|[+-]\d\d(:?\d\d)?)?)?"  # dates
NUMERAL = r"[+-]?(0|[1-9]\d*)(\.\d+)?"  # a number that is no code
ZERO_IN_FRONT = r"[+-]?0\d"  # so a code of digits begins
POINTS = r"\s*[+-]?[1-9]\d{0,2}(\.\d{3})+\s*"  # a number whose points may separate thousands
NUMERIC = (  # a number with any decimal mark, and any or none between thousands; no IP address
    r"(?!(\d{1,3}\.){3}\d{1,3}$)\s*[+-]?(?=[.,]?\d)"
    r"(\d{1,3}([.,'\u0020\u00a0\u202f]\d{3})+|\d*)([.,]\d*)?([eE][+-]?\d+)?\s*"
)
UNIT = "[$€£¥₹%]"  # beside a number
# texts that stand for a missing value in a column of numbers
ABSENT = ("NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None", "NaT")
# a date whose day and month may be either, or with slashes, and what may follow it
LOCAL = (
    r"(\d{1,2}([./-])\d{1,2}\2\d{4}|\d{1,2}/\d{1,2}/\d\d|\d{4}/\d{1,2}/\d{1,2})"
    r"([ T]+\d{1,2}:\d\d.*)?"
)


def words_in(name: object) -> list[str]:
    """Return the words of a name in snake_case or camelCase, in lower case."""
    return [word.lower() for word in re.findall(WORDS, str(name))]


def text_of(value: object) -> str:
    """Return the text of a level or label; for a member of an Enum of texts, its value."""
    if isinstance(value, str):
        return str.__str__(value)
    return value.decode() if isinstance(value, bytes) else str(value)


def value_of(value: object, any_number: bool = False) -> float | pd.Timestamp | None:
    """Return the number or date that a value is, or that its text means; None for any other value.

    any_number: read texts such as 007 or 1e5 as numbers too. By default they are codes.
    """
    try:
        if isinstance(value, Real | Decimal | np.bool_):
            return float(value)
        if isinstance(value, str):
            if re.fullmatch(ISO, value):
                return _moment(value)
            return float(value) if any_number or re.fullmatch(NUMERAL, value) else None
        if isinstance(value, date | np.datetime64):
            return _moment(value)
    except ValueError:
        return None
    except OverflowError:
        return inf
    return None


def _moment(value: str | date | np.datetime64) -> pd.Timestamp | None:
    import pandas as pd

    moment = pd.to_datetime(value, utc=True, errors="coerce")
    return moment if isinstance(moment, pd.Timestamp) else None


def kind_of(value: object, any_number: bool = False) -> type:
    """Return the kind of a value for `value_of`: float, a date's class, or str for a word."""
    found = value_of(value, any_number)
    return str if found is None else type(found)


def texts(column: pd.Series, name: object) -> pd.Series:
    """Return a column's values as text; NaN where one is missing."""
    try:
        text = column.astype(object).map(text_of, na_action="ignore")
    except UnicodeDecodeError as error:
        raise ValueError(f"column {name!r} has bytes that are no text: {error}") from error
    return text.where(text.notna(), np.nan)


def looks_like_numbers(text: pd.Series) -> pd.Series:
    """Return which texts are numbers with any marks, or tell that a value is missing."""
    return text.str.fullmatch(NUMERIC) | text.isin(ABSENT)


def check_numbers(name: object, text: pd.Series) -> None:
    """Raise ValueError for a column of texts that are meant as numbers.

    All are numbers, and some have a comma. Or nearly all are numbers, with or without the sign of a
    currency or per cent, and there are more of them than a column has levels; but texts with a zero
    in front, such as 007, are codes.
    """
    known = text.dropna().astype(str)
    levels = f"keep=[{name!r}], or --keep {shlex.quote(str(name))}, takes them as levels"
    commas = known[known.str.contains(",", regex=False)]
    if len(commas) and looks_like_numbers(known).all():
        raise ValueError(
            f"column {name!r} has {commas.iloc[0]!r} as text: if that is a decimal comma, read the "
            "file with decimal=',', or --decimal ','; marks between thousands have to go; "
            f"{levels}"
        )
    like = looks_like_numbers(known.str.replace(UNIT, "", n=1, regex=True).str.strip())
    odd = known[~like]
    if len(odd) > STRAY * len(known) or known[like].nunique() <= MAX_LEVELS:
        return
    if len(odd):
        rows = np.flatnonzero(np.asarray(text.isin(odd)))[:3].tolist()
        pairs = zip(rows, odd.head(3), strict=True)
        shown = ", ".join(f"{value!r} in row {row + 1}" for row, value in pairs)
        more = f" and {len(odd) - 3} more" if len(odd) > 3 else ""
        raise ValueError(
            f"column {name!r} has numbers, but for {shown}{more}: mend them, or leave them empty "
            f"where they are missing; {levels}"
        )
    if not known.str.match(ZERO_IN_FRONT).any():
        raise ValueError(
            f"column {name!r} has {known.nunique()} different numbers as text, such as "
            f"{known.iloc[0]!r}: make them numbers, as pandas.to_numeric does; {levels}"
        )


def whole(column: pd.Series) -> pd.Series:
    """Return a column of names; whole numbers that are stored as floats become integers."""
    floats = column.dtype.kind == "f" and bool((column.abs() < EXACT).all())
    return column.astype(np.int64) if floats and (column % 1 == 0).all() else column


def numbers_of(column: pd.Series) -> np.ndarray:
    """Return a column as numbers (n,), also of texts; NaN where one is missing or is no number.

    Dates and durations, which pandas would read as whole numbers, are none.
    """
    import pandas as pd

    if column.dtype.kind in "biuf":
        return column.to_numpy(np.float64, na_value=np.nan)
    read = [value if isinstance(value, NUMBERS) else None for value in column.astype(object)]
    try:
        found = pd.to_numeric(pd.Series(read, dtype=object), errors="coerce")
    except OverflowError as error:
        raise ValueError(f"column {column.name!r} must be numbers: {error}") from error
    return found.to_numpy(np.float64, na_value=np.nan)


def with_remedy(sentence: str, seen: object) -> str:
    """Return a sentence on a value that is no number, with the option for a decimal comma."""
    if isinstance(seen, str) and "," in seen and re.fullmatch(NUMERIC, seen):
        return f"{sentence}: decimal=',', or --decimal ',', says that a file has decimal commas"
    return sentence
