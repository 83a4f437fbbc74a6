"""Columns of dates, which become numbers of days."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import Name, shown
from bayesbandit.tables.columns import NESTED, Number, Values, is_missing
from bayesbandit.tables.words import ISO

if TYPE_CHECKING:
    import pandas as pd

DAY = 86_400_000_000  # microseconds


@dataclass(frozen=True)
class Date(Number):
    """A column of dates. Its numbers are days since the first date of the fit; then as `Number`.

    A date without a time zone is taken as UTC. origin: the first date, in microseconds since 1970.
    """

    origin: int = 0

    kind = "date"

    def known(self, values: Values) -> np.ndarray:
        moments, missing = microseconds(values, self.name)
        days = (moments - self.origin) / DAY
        return np.where(missing, np.nan, days)


def microseconds(values: Values, name: Name) -> tuple[np.ndarray, np.ndarray]:
    """Return dates as microseconds (n,) since 1970, and a mask (n,) of missing ones."""
    import pandas as pd

    column: Any = pd.Series(values, dtype=object) if isinstance(values, list) else values
    if isinstance(column.dtype, pd.PeriodDtype):
        column = column.dt.to_timestamp()
    settings: dict[str, Any] = {"utc": True}
    if column.dtype.kind != "M":
        column = pd.Series([_moment(value, name) for value in column], dtype=object)
        settings["format"] = "ISO8601"
    try:
        moments = pd.to_datetime(column, **settings).dt.as_unit("us").dt.tz_localize(None)
    except (ValueError, OverflowError, TypeError) as error:
        raise ValueError(f"column {name!r} holds dates: {error}") from error
    missing = moments.isna().to_numpy()
    whole = moments.to_numpy(dtype="datetime64[us]").astype(np.int64)
    return np.where(missing, 0, whole), missing


def _moment(value: object, name: Name) -> Any:
    """Return a date as pandas reads one; of texts, those alone that the fit takes for dates: pandas
    reads "now" and "" too."""
    import pandas as pd

    if isinstance(value, str) and not re.fullmatch(ISO, value):
        raise ValueError(f"column {name!r} holds dates, as text 2026-11-22; got {shown(value)}")
    if isinstance(value, pd.Period):
        return value.to_timestamp()
    if isinstance(value, str | date | np.datetime64):
        return value
    if isinstance(value, NESTED) or not is_missing(value):
        raise ValueError(f"column {name!r} holds dates; got {shown(value)}")
    return None


def moments(column: pd.Series, what: str) -> np.ndarray:
    """Return a column of times (n,): numbers unchanged, dates in UTC. Text must be ISO 8601."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(np.float64, na_value=np.nan)
    given: dict[str, Any] = {} if column.dtype.kind == "M" else {"format": "ISO8601"}
    known = column.dropna()
    odd = [v for v in known if not isinstance(v, date) and not re.fullmatch(ISO, str(v))]
    try:
        if odd:
            raise ValueError
        found = pd.to_datetime(column, utc=True, **given)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"column {column.name!r} ({what}) must be times, as 2026-11-22T18:00:00Z or seconds; "
            f"got {[*odd, *known][0]!r}: dates='%d/%m/%Y', or --dates, says how a CSV "
            "writes them"
        ) from error
    return found.dt.tz_localize(None).to_numpy()
