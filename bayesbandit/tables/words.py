"""Values as text, as numbers and as dates."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal
from math import inf
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import Array, shown

if TYPE_CHECKING:
    import pandas as pd

NUMBER_TYPES = (Real, Decimal, np.bool_)  # types of numbers
MAX_EXACT_INTEGER = 2**53  # floats below it hold each whole number
ISO = r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?\s?(Z|[+-]\d\d(:?\d\d)?)?)?"  # dates
# texts that stand for a missing value in a column of numbers
MISSING_WORDS = ("NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None", "NaT")


def is_missing(value: Any) -> bool:
    """Return whether a value stands for none: None, NaN, NA or NaT."""
    import pandas as pd

    if isinstance(value, Decimal):
        return value.is_nan()  # also of a signaling one, which pandas cannot compare
    return value is None or pd.isna(value) is True


def text_of(value: object) -> str:
    """Return the text of a level or label; for a member of an Enum of texts, its value."""
    if isinstance(value, str):
        return str.__str__(value)
    return value.decode() if isinstance(value, bytes) else str(value)


def whole(column: pd.Series) -> pd.Series:
    """Return a column of names; whole numbers that are stored as floats become integers."""
    inferred = column.infer_objects()
    column = inferred if inferred.dtype.kind == "f" else column  # floats in a column of objects
    floats = column.dtype.kind == "f" and bool((column.abs() < MAX_EXACT_INTEGER).all())
    return column.astype(np.int64) if floats and (column % 1 == 0).all() else column


def numbers(column: pd.Series, what: str) -> Array:
    """Return a column as numbers (n,), also of texts; NaN where one is missing.

    Dates and durations, which pandas would read as whole numbers, are none. what: the column's
    role. Raise ValueError for a value that is no number.
    """
    import pandas as pd

    if column.dtype.kind in "biuf":
        return column.to_numpy(np.float64, na_value=np.nan)
    read = [value if isinstance(value, (*NUMBER_TYPES, str)) else None for value in column]
    try:
        coerced = pd.to_numeric(pd.Series(read, dtype=object), errors="coerce")
    except OverflowError as error:
        raise ValueError(f"column {column.name!r} must be numbers: {error}") from error
    values_read = coerced.to_numpy(np.float64, na_value=np.nan)
    strange = np.isnan(values_read) & np.asarray(column.notna())
    if strange.any():
        t = int(np.argmax(strange))
        seen = column.iloc[t]
        hint = (
            ": decimal=',', or --decimal ',', reads decimal commas" if isinstance(seen, str) else ""
        )
        raise ValueError(
            f"column {column.name!r} ({what}) must be numbers; got {seen!r} in round {t}{hint}"
        )
    return values_read


def float_of(value: Any) -> float:
    """Return a number as a float; a whole one that is too large is infinite."""
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


def datetimes(values: pd.Series | list[Any], what: str) -> Array:
    """Return dates in UTC as datetime64[us] (n,), NaT where one is missing.

    Text must be ISO 8601. what: the beginning of an error.
    """
    import pandas as pd

    if isinstance(values, list) or values.dtype.kind != "M":
        return np.array([_datetime(value, what) for value in values], dtype="datetime64[us]")
    dates = pd.to_datetime(values, utc=True).dt.as_unit("us").dt.tz_localize(None)
    return dates.to_numpy(dtype="datetime64[us]")


def _datetime(value: Any, what: str) -> np.datetime64:
    import pandas as pd

    if is_missing(value):
        return np.datetime64("NaT", "us")
    try:
        found = value.to_timestamp() if isinstance(value, pd.Period) else value
        if isinstance(value, str) and re.fullmatch(ISO, value):
            found = datetime.fromisoformat(value)
        if not isinstance(found, date | np.datetime64):
            raise ValueError("no date")
        moment = pd.Timestamp(found).as_unit("us")
        return (moment if moment.tzinfo is None else moment.tz_convert(None)).to_datetime64()
    except (ValueError, OverflowError, TypeError) as error:
        raise ValueError(f"{what}, as text 2026-11-22; got {shown(value)}") from error


def moments(column: pd.Series, what: str) -> Array:
    """Return a column of times (n,): numbers unchanged, dates in UTC. Text must be ISO 8601."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(np.float64, na_value=np.nan)
    try:
        return datetimes(column, "dates")
    except ValueError as error:
        raise ValueError(
            f"column {column.name!r} ({what}) must be times, as 2026-11-22T18:00:00Z or seconds; "
            f"{str(error).split('; ')[-1]}: dates='%d/%m/%Y', or --dates, says how a CSV writes "
            "them"
        ) from error
