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


def unit_of(text: pd.Series) -> str:
    """Return the sign of currency or per cent that nearly all texts have; "" if there is none."""
    for unit in UNITS:
        if text.str.contains(unit, regex=False).sum() > (1 - STRAY) * len(text):
            return unit
    return ""


def bare(text: pd.Series, unit: str) -> pd.Series:
    """Return texts without their unit; NaN for a text that lacks it."""
    if not unit:
        return text
    without = text.str.replace(unit, "", n=1, regex=False).str.strip()
    return without.where(text.str.contains(unit, regex=False))


def plain_or_grouped(text: pd.Series) -> tuple[pd.Series, bool]:
    """Return texts as numbers (NaN: not a number), and whether thousands separators were read.

    They are read if more than a tenth of the texts have them in the right places.
    """
    import pandas as pd

    plain = pd.to_numeric(text, errors="coerce")
    grouped = pd.to_numeric(text.where(text.str.fullmatch(GROUPED)).str.replace(",", ""))
    separated = bool(grouped.notna().sum() > STRAY * len(text))
    return (plain.fillna(grouped) if separated else plain), separated


def written_numbers(texts: Sequence[str], unit: str) -> np.ndarray:
    """Return the numbers (n,) in texts with a unit, with or without thousands separators; NaN for
    any other text."""
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
    """Return the numbers of a column of text, and their unit; None for words, and for codes of
    digits.

    Raise ValueError if only a few words, or decimal commas, prevent the column from being read as
    numbers.
    """
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
