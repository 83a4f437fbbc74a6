"""What a fitted encoder knows of a column: a number, a date, levels, or why it is left out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import Name, shown
from bayesbandit.tables.words import ISO, text_of, written_number

if TYPE_CHECKING:
    import pandas as pd

type Values = pd.Series | list[Any]  # of one column, (n,)

LARGEST_VALUE = 1e100  # of numbers whose variance float64 can hold
NESTED = (list, tuple, dict, set, frozenset, np.ndarray)
DAY = 86_400_000_000  # microseconds
ZEROS = -1  # the code of a level for which all features of its column are 0
NEW, ABSENT = -1, -2  # places of what is none of the levels of the fit, and of what is missing


def is_missing(value: Any) -> bool:
    import pandas as pd

    if isinstance(value, Decimal):
        return value.is_nan()  # also of a signaling one, which pandas cannot compare
    return value is None or bool(pd.isna(value))


def objects(values: Values) -> Iterable[Any]:
    """The values as Python's own."""
    return values if isinstance(values, list) else values.astype(object)


def bounded(values: np.ndarray, name: Name) -> np.ndarray:
    """Numbers (n,), none infinite or of a size that cannot be computed with."""
    if (beyond := np.abs(values) > LARGEST_VALUE).any():
        raise ValueError(
            f"values infinite or beyond ±{LARGEST_VALUE:g} in column {name!r}; "
            f"got {values[beyond][0]:g}"
        )
    return values


@dataclass(frozen=True)
class Number:
    """Numbers: a missing one takes the median; then (x − mean) / scale.

    written: whether they came as text with thousands separators.
    """

    name: Name
    median: float
    mean: float = 0.0
    scale: float = 1.0
    written: bool = False

    kind = "number"

    def known(self, values: Values) -> np.ndarray:
        """The values (n,) as float64, NaN where one is missing."""
        if isinstance(values, list) or values.dtype.kind not in "iufb":
            known = np.array([self._one(value) for value in objects(values)], dtype=np.float64)
        else:
            known = values.to_numpy(dtype=np.float64, na_value=np.nan)
        return bounded(known, self.name)

    def _one(self, value: Any) -> float:
        if isinstance(value, NESTED):
            raise self._refused(value)
        if is_missing(value):
            return np.nan
        if isinstance(value, Real | Decimal | np.bool_):
            try:
                return float(value)
            except OverflowError:
                return np.inf
        if self.written and isinstance(value, str | bytes):
            number = written_number(text_of(value))
            if number == number:
                return number
        raise self._refused(value)

    def _refused(self, value: Any) -> ValueError:
        return ValueError(f"column {self.name!r} holds numbers; got {shown(value)}")

    def filled(self, values: Values) -> np.ndarray:
        """The values (n,), missing ones as the median."""
        known = self.known(values)
        return np.where(np.isnan(known), self.median, known)

    def encoded(self, values: Values) -> np.ndarray:
        """Features (n, 1)."""
        return ((self.filled(values) - self.mean) / self.scale)[:, None]

    def features(self, label: str) -> list[str]:
        return [label]


@dataclass(frozen=True)
class Date(Number):
    """Dates as days since the first of the fit, which are numbers. Without a time zone: of UTC.

    origin: microseconds since 1970.
    """

    origin: int = 0

    kind = "date"

    def known(self, values: Values) -> np.ndarray:
        moments, missing = microseconds(values, self.name)
        days = (moments - self.origin) / DAY
        return np.where(missing, np.nan, days)


def microseconds(values: Values, name: Name) -> tuple[np.ndarray, np.ndarray]:
    """Dates of any kind as microseconds (n,) since 1970, and which are missing (n,)."""
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


def _moment(value: Any, name: Name) -> Any:
    """A date as pandas reads one; of texts, those alone that the fit takes for dates: pandas reads
    "now" and "" too."""
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


@dataclass(frozen=True)
class Levels:
    """Text, categories and booleans: a 0/1 feature for each level.

    levels: texts that were told apart at fit; codes: the number of each one's feature, or ZEROS.
    missing: the code of a missing value, None where the fit saw none. pooled: the code of all other
    levels, None where the fit pooled none.
    """

    name: Name
    levels: tuple[str, ...]
    codes: tuple[int, ...]
    missing: int | None = None
    pooled: int | None = None

    kind = "levels"

    @property
    def other(self) -> int:
        """The code of a level that the fit did not see."""
        return ZEROS if self.pooled is None else self.pooled

    @cached_property
    def width(self) -> int:
        """How many features there are."""
        missing = ZEROS if self.missing is None else self.missing
        return 1 + max((*self.codes, self.other, missing))

    @cached_property
    def _by_text(self) -> dict[str, int]:
        return {level: place for place, level in enumerate(self.levels)}

    @cached_property
    def _logical(self) -> bool:
        """Whether there can be no other level."""
        return self.pooled is None and set(self.levels) == {"True", "False"}

    @cached_property
    def _by_number(self) -> dict[float, int]:
        """Levels that were numbers, so that 1 and 1.0 are one level, and True where 1 is none."""
        found: dict[float, int] = {}
        logical = set(self.levels) <= {"True", "False"}
        for text, place in self._by_text.items():
            try:
                number = float(text == "True") if logical else float(text)
            except ValueError:
                continue
            found.setdefault(number, place)
        return found

    def place(self, value: Any) -> int:
        """Which of `levels` a value is, or ABSENT, or NEW."""
        if isinstance(value, NESTED):
            raise ValueError(f"column {self.name!r} holds levels; got {shown(value)}")
        if is_missing(value):
            return ABSENT
        try:
            place = self._by_text.get(text_of(value))
        except UnicodeDecodeError:
            return NEW
        if place is None and isinstance(value, Real | Decimal | np.bool_):
            place = self._by_number.get(_float(value))
        if place is None and self._logical:
            place = self._by_text.get(text_of(value).capitalize())
            if place is None:
                raise ValueError(f"column {self.name!r} holds True and False; got {shown(value)}")
        return NEW if place is None else place

    def code(self, value: Any) -> int:
        """The number of a value's feature, or ZEROS."""
        place = self.place(value)
        if place == ABSENT and self.missing is not None:
            return self.missing
        return self.codes[place] if place >= 0 else self.other

    def coded(self, values: Iterable[Any]) -> np.ndarray:
        """The codes (n,) of values."""
        return np.array([self.code(value) for value in values], dtype=np.int64)

    def encoded(self, values: Values) -> np.ndarray:
        """Features (n, width)."""
        codes = self.coded(objects(values))
        return np.eye(self.width + 1)[codes, : self.width]

    def names(self) -> list[str]:
        """What each feature stands for."""
        said = dict(zip(self.codes, self.levels, strict=True))
        if self.missing is not None:
            said.setdefault(self.missing, "missing")
        if self.pooled is not None:
            said[self.pooled] = "other"
        return [said[code] for code in range(self.width)]

    def features(self, label: str) -> list[str]:
        return [f"{label}={name}" for name in self.names()]


def unique(names: Iterable[str]) -> tuple[str, ...]:
    """The names, numbered where they repeat."""
    taken: dict[str, None] = {}
    for name in names:
        one, count = name, 1
        while one in taken:
            count += 1
            one = f"{name} ({count})"
        taken[one] = None
    return tuple(taken)


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return np.inf


@dataclass(frozen=True)
class LeftOut:
    """A column of the fit that makes no feature, and why."""

    name: Name
    why: str

    kind = "left out"


type Used = Number | Levels
type Column = Used | LeftOut
