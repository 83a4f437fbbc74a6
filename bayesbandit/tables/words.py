"""Values as text, and numbers that are written as text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from math import inf
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

STRAY = 0.1  # the share of words at most in a column that is taken to be meant as numbers
MAX_LEVELS = 20  # one-hot columns that one column may become
UNITS = "$€£¥₹%"  # beside a number: of a currency, or of percents
ISO = r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?\s?(Z|[+-]\d\d(:?\d\d)?)?)?"  # dates
NUMERAL = r"[+-]?(0|[1-9]\d*)(\.\d+)?"  # a number that is no code
GROUPED = r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?"  # a number with thousands separators
# a date whose day and month may be either, or with slashes, and what may follow it
LOCAL = r"(\d{1,2}([./-])\d{1,2}\2\d{4}|\d{4}/\d{1,2}/\d{1,2})([ T]+\d{1,2}:\d\d.*)?"
# a number with a decimal comma; of dates, versions and IP addresses, which have points too, none is
COMMA = r"(?!(\d{1,3}\.){3}\d{1,3}$)[+-]?(\d{1,3}(\.\d{3})+|\d*)(,\d*)?([eE][+-]?\d+)?"


def text_of(value: object) -> str:
    """Return a level's or a label's text; of an enumeration's member that is a text, that text."""
    if isinstance(value, str):
        return str.__str__(value)
    return value.decode() if isinstance(value, bytes) else str(value)


def value_of(value: object, any_number: bool = False) -> float | pd.Timestamp | None:
    """Return the number or moment that a value is, or that its text is; None of any other.
    any_number: also of a text as 007 or 1e5, which is a code where there is another with that
    value."""
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
    """Return whether `value_of` takes a value for a number (float), a moment, or a word (str)."""
    found = value_of(value, any_number)
    return str if found is None else type(found)


def texts(column: pd.Series, name: object) -> pd.Series:
    """Return a column's values as text, NaN where one is missing."""
    try:
        text = column.astype(object).map(text_of, na_action="ignore")
    except UnicodeDecodeError as error:
        raise ValueError(f"column {name!r} has bytes that are no text: {error}") from error
    return text.where(text.notna(), np.nan)


def unit_of(text: pd.Series) -> str:
    """Return the sign of a currency or of percents that nearly all texts have; "" where none is."""
    for unit in UNITS:
        if text.str.contains(unit, regex=False).sum() > (1 - STRAY) * len(text):
            return unit
    return ""


def bare(text: pd.Series, unit: str) -> pd.Series:
    """Return texts without their unit; a text that lacks it is none of these."""
    if not unit:
        return text
    without = text.str.replace(unit, "", n=1, regex=False).str.strip()
    return without.where(text.str.contains(unit, regex=False))


def plain_or_grouped(text: pd.Series) -> tuple[pd.Series, bool]:
    """Return texts as numbers, NaN where one is none; and whether thousands separators were read,
    which they are where more than a tenth of the texts have them in the right places."""
    import pandas as pd

    plain = pd.to_numeric(text, errors="coerce")
    grouped = pd.to_numeric(text.where(text.str.fullmatch(GROUPED)).str.replace(",", ""))
    separated = bool(grouped.notna().sum() > STRAY * len(text))
    return (plain.fillna(grouped) if separated else plain), separated


def written_numbers(texts: Sequence[str], unit: str) -> np.ndarray:
    """Return the numbers (n,) that texts with their unit are, with thousands separators or without;
    NaN where one is none."""
    import pandas as pd

    plain = [_plain(text, unit) for text in texts]
    return np.asarray(
        pd.to_numeric(np.array(plain, dtype=object), errors="coerce"), dtype=np.float64
    )


def _plain(text: str, unit: str) -> str | None:
    if unit not in text:
        return None
    number = text.replace(unit, "", 1).strip() if unit else text
    return number.replace(",", "") if re.fullmatch(GROUPED, number) else number


def numbers_in(name: object, text: pd.Series, kept: bool) -> tuple[pd.Series, str] | None:
    """Return a column of text as the numbers that all of it is, and their unit; None of one of
    words, and of one of codes that are digits. An error of one of numbers which a few words, or
    decimal commas, keep from being read."""
    import pandas as pd

    known = text.dropna().astype(str)
    unit = unit_of(known)
    number = bare(known, unit)
    usual, separated = plain_or_grouped(number)
    comma = number.where(number.str.strip().str.fullmatch(COMMA))
    commas = comma.str.replace(".", "", regex=False).str.replace(",", ".", n=1, regex=False)
    for meant in usual, usual.fillna(pd.to_numeric(commas, errors="coerce")):
        odd = known[usual.isna()]
        many = meant.isna().sum() <= STRAY * len(known) and meant.nunique() > MAX_LEVELS
        if many and len(odd):
            at = np.flatnonzero(np.asarray(text.isin(odd)))[:3].tolist()
            shown = ", ".join(
                f"{value!r} in row {row + 1}" for row, value in zip(at, odd.head(3), strict=True)
            )
            more = f" and {len(odd) - 3} more" if len(odd) > 3 else ""
            of = f" with {unit}" if unit else ""
            raise ValueError(
                f"column {name!r} has numbers{of}, but for {shown}{more}: mend them, or leave them "
                "empty where they are missing"
            )
    if usual.isna().any() or not (unit or separated or _measures(known, usual, kept)):
        return None
    return usual.reindex(text.index), unit


def _measures(text: pd.Series, number: pd.Series, kept: bool) -> bool:
    """Return whether plain numbers that are written as text measure, and are no codes: none has a
    zero in front, and there are more than could be levels, or they have fractions and never repeat.
    Whole ones that never repeat are an identifier, unless they are kept."""
    if text.str.fullmatch(r"[+-]?0\d.*").any():
        return False
    repeats = not number.is_unique
    if (number == np.floor(number)).all():
        return kept if not repeats else number.nunique() > MAX_LEVELS
    return not repeats or number.nunique() > MAX_LEVELS
