"""Dates as NumPy has them, and the times of logs."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import shown
from bayesbandit.tables.words import ISO, is_missing

if TYPE_CHECKING:
    import pandas as pd


def datetimes(values: pd.Series | list[Any], what: str) -> np.ndarray:
    """Return dates in UTC as datetime64[us] (n,), NaT where one is missing.

    Text must be ISO 8601. what: the beginning of an error.
    """
    import pandas as pd

    if isinstance(values, list) or values.dtype.kind != "M":
        return np.array([_datetime(value, what) for value in values], dtype="datetime64[us]")
    found = pd.to_datetime(values, utc=True).dt.as_unit("us").dt.tz_localize(None)
    return found.to_numpy(dtype="datetime64[us]")


def _datetime(value: Any, what: str) -> np.datetime64:
    import pandas as pd

    if is_missing(value):
        return np.datetime64("NaT", "us")
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value) if re.fullmatch(ISO, value) else None
        if isinstance(value, pd.Period):
            value = value.to_timestamp()
        if not isinstance(value, date | np.datetime64):
            raise ValueError("no date")
        moment = pd.Timestamp(value).as_unit("us")
        return (moment if moment.tzinfo is None else moment.tz_convert(None)).to_datetime64()
    except (ValueError, OverflowError, TypeError) as error:
        raise ValueError(f"{what}, as text 2026-11-22; got {shown(value)}") from error


def moments(column: pd.Series, what: str) -> np.ndarray:
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
