"""Dates as numbers: microseconds since 1970, and the times of logs."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import shown
from bayesbandit.tables.words import ISO

if TYPE_CHECKING:
    import pandas as pd

MICROSECONDS_PER_DAY = 86_400_000_000


def microseconds(values: pd.Series | list[Any], what: str) -> tuple[np.ndarray, np.ndarray]:
    """Return dates as microseconds (n,) since 1970, and a mask (n,) of missing ones.

    Text must be ISO 8601. what: the beginning of an error.
    """
    import pandas as pd

    if isinstance(values, list) or values.dtype.kind != "M":
        found = [_microseconds(value, what) for value in values]
        missing = np.array([one is None for one in found], dtype=np.bool_)
        return np.array([one or 0 for one in found], dtype=np.int64), missing
    moments = pd.to_datetime(values, utc=True).dt.as_unit("us").dt.tz_localize(None)
    missing = moments.isna().to_numpy()
    whole = moments.to_numpy(dtype="datetime64[us]").astype(np.int64)
    return np.where(missing, 0, whole), missing


def _microseconds(value: Any, what: str) -> int | None:
    """Return a date as microseconds since 1970; None if it is missing."""
    import pandas as pd

    try:
        if isinstance(value, str):
            value = datetime_of(value)
        if isinstance(value, pd.Period):
            value = value.to_timestamp()
        if value is pd.NaT or not isinstance(value, date | np.datetime64):
            if value is None or value is pd.NaT or value is pd.NA or value != value:
                return None
            raise ValueError("no date")
        moment = pd.Timestamp(value)
        moment = moment.tz_localize(UTC) if moment.tzinfo is None else moment.tz_convert(UTC)
        return int(moment.as_unit("us").tz_localize(None).asm8.astype(np.int64))
    except (ValueError, OverflowError, TypeError) as error:
        raise ValueError(f"{what}, as text 2026-11-22; got {shown(value)}") from error


def datetime_of(text: str) -> datetime:
    """Return the date that a text of ISO 8601 means; raise ValueError for any other."""
    if not re.fullmatch(ISO, text):
        raise ValueError(f"{text!r} is not of ISO 8601")
    return datetime.fromisoformat(text)


def moments(column: pd.Series, what: str) -> np.ndarray:
    """Return a column of times (n,): numbers unchanged, dates in UTC. Text must be ISO 8601."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(np.float64, na_value=np.nan)
    try:
        whole, missing = microseconds(column, "dates")
    except ValueError as error:
        raise ValueError(
            f"column {column.name!r} ({what}) must be times, as 2026-11-22T18:00:00Z or seconds; "
            f"{str(error).split('; ')[-1]}: dates='%d/%m/%Y', or --dates, says how a CSV writes "
            "them"
        ) from error
    found = whole.astype("datetime64[us]")
    found[missing] = np.datetime64("NaT", "us")
    return found
