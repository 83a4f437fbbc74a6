"""Columns of a fitted encoder, which turn values into codes: numbers that are NaN if missing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from math import nan
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import Array, Name, shown
from bayesbandit.tables.words import (
    MAX_EXACT_INTEGER,
    NUMBER_TYPES,
    datetimes,
    float_of,
    is_missing,
    text_of,
)

if TYPE_CHECKING:
    import pandas as pd

type Row = Mapping[Any, Any]

LARGEST_VALUE = 1e100  # of numbers whose variance float64 can hold
NESTED = (list, tuple, dict, set, frozenset, np.ndarray)
MOMENT_PATTERN = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"  # the level of one
LOGICAL = ("False", "True")  # the levels of a column of booleans
UNSEEN_LEVEL = -1.0  # the code of a level that is not of the fit, and not pooled
DAY = np.timedelta64(1, "D")


def mapped(values: pd.Series, function: Callable[[Any], Any], dtype: type) -> Array:
    """Return a function of each value (n,), computed once for each different one.

    In columns of mixed objects, where 1 and True would be one value, each stands for itself.
    """
    import pandas as pd

    is_mixed = values.dtype == object and pd.api.types.infer_dtype(values) != "string"
    if is_mixed or is_arrow_category(values):  # pandas 3.1 cannot factorise one with gaps
        return np.array([function(value) for value in values.tolist()], dtype=dtype)
    places, levels = pd.factorize(values)
    each = [*map(function, levels), function(None)]  # the last is that of −1
    return np.array(each, dtype=dtype)[places]


def is_arrow_category(column: pd.Series) -> bool:
    """Return whether a column is a category of Arrow, which pandas calls a dictionary."""
    return str(column.dtype).startswith("dictionary")


def level_of(value: Any) -> str:
    """Return the text of a level. Whole numbers of any type are one level: 1, 1.0 and "1"."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, NUMBER_TYPES):
        return text_of(value)
    if isinstance(value, Integral):
        return str(int(value))
    number = float_of(value)
    if number.is_integer() and abs(number) < MAX_EXACT_INTEGER:
        return str(int(number))
    return str(number) if isinstance(value, Decimal) else str(value)


def _is_value(level: str) -> bool:
    """Return whether a level is that of the number or the moment that its text says."""
    if re.fullmatch(MOMENT_PATTERN, level):
        return True
    try:
        return level_of(float(level)) == level
    except ValueError:
        return False


@dataclass(frozen=True)
class Number:
    """A column of numbers. A missing one becomes the median; the feature is (x − mean) / scale."""

    name: Name
    median: float
    mean: float = 0.0
    scale: float = 1.0

    kind = "number"

    @property
    def gap(self) -> float:
        """The code that stands for a missing value."""
        return self.median

    def code(self, value: object) -> float:
        """Return a value as a float."""
        if is_missing(value):
            return nan
        if not isinstance(value, NUMBER_TYPES):
            raise ValueError(f"column {self.name!r} holds numbers; got {shown(value)}")
        return float_of(value)

    def codes(self, values: pd.Series) -> Array:
        """Return the code (n,) of each value."""
        if values.dtype.kind in "iufb":
            return values.to_numpy(dtype=np.float64, na_value=np.nan)
        return np.array([self.code(value) for value in values], dtype=np.float64)


@dataclass(frozen=True)
class Date(Number):
    """A column of dates. The code is in days since the first date of the fit; then as `Number`.

    A date without a time zone is taken as UTC. origin: the first date, in microseconds since 1970.
    """

    origin: int = 0

    kind = "date"

    def code(self, value: object) -> float:
        return float(self.codes([value])[0])

    def codes(self, values: pd.Series | list[Any]) -> Array:
        dates = datetimes(values, f"column {self.name!r} holds dates")
        return (dates - np.datetime64(self.origin, "us")) / DAY


@dataclass(frozen=True)
class Levels:
    """A column of text, categories or booleans, with a feature of 0 and 1 for each level.

    The code is the level's position. levels: texts that were different in the fit. missing: whether
    a missing value has a feature of its own, after those of levels. pooled: whether all other
    values have one, the last. Of two features the first is left out, as scikit-learn's
    OneHotEncoder does.
    """

    name: Name
    levels: tuple[str, ...]
    missing: bool = False
    pooled: bool = False

    kind = "levels"

    @cached_property
    def labels(self) -> list[str]:
        """The name of each level in a feature's name."""
        return [*self.levels, *["missing"] * self.missing, *["other"] * self.pooled]

    @cached_property
    def unseen(self) -> float:
        """The code of a level that the fit did not see."""
        return len(self.labels) - 1.0 if self.pooled else UNSEEN_LEVEL

    @cached_property
    def gap(self) -> float:
        """The code that stands for a missing value."""
        return float(len(self.levels)) if self.missing else self.unseen

    @property
    def are_texts(self) -> bool:
        """Whether some level is another one where its text is read as a number, a truth value or a
        date, as 007, 1.50, true and 2024-01-01 are."""
        return self.levels != LOGICAL and not all(map(_is_value, self.levels))

    @cached_property
    def _are_logical(self) -> bool:
        return bool(self.levels) and {*self.levels} <= {*LOGICAL}

    @cached_property
    def _places(self) -> dict[str, float]:
        return {level: float(place) for place, level in enumerate(self.levels)}

    def code(self, value: object) -> float:
        """Return the position of a value in `labels`."""
        if isinstance(value, NESTED):
            raise ValueError(f"column {self.name!r} holds levels; got {shown(value)}")
        if is_missing(value):
            return nan
        try:
            text = level_of(value)
        except ValueError:  # bytes that are no text, or an integer of too many digits
            return self.unseen
        if text not in self._places and self._are_logical:
            is_number = isinstance(value, NUMBER_TYPES) and text in ("0", "1")
            text = LOGICAL[int(text)] if is_number else text.capitalize()
            if text not in LOGICAL and not self.pooled:
                raise ValueError(f"column {self.name!r} holds True and False; got {shown(value)}")
        return self._places.get(text, self.unseen)

    def codes(self, values: pd.Series) -> Array:
        """Return the code (n,) of each value."""
        return mapped(values, self.code, float)


@dataclass(frozen=True)
class LeftOut:
    """A column of the fit that gives no feature, with the reason."""

    name: Name
    why: str

    kind = "left out"


type Used = Number | Levels
type Column = Used | LeftOut


def codes_of(columns: Sequence[Used], x: list[Row] | pd.DataFrame) -> Array:
    """Return the codes (n, c) of a table, or of rows; raise ValueError for too large numbers."""
    if isinstance(x, list):
        each = [[column.code(row[column.name]) for column in columns] for row in x]
        codes = np.array(each, dtype=np.float64)
    else:
        codes = np.column_stack([column.codes(x[column.name]) for column in columns])
    beyond = np.abs(codes) > LARGEST_VALUE
    if beyond.any():
        row, j = np.argwhere(beyond)[0]
        raise ValueError(
            f"values infinite or beyond ±{LARGEST_VALUE:g} in column {columns[j].name!r}; got "
            f"{codes[row, j]:g}"
        )
    return codes


class Separate:
    """The features of columns each alone: those of numbers, then those of levels.

    features: the names, all different. uses: the columns that each uses.
    """

    def __init__(self, columns: Sequence[Used]) -> None:
        label = [str(one.name) for one in columns]
        numbers = {j: one for j, one in enumerate(columns) if isinstance(one, Number)}
        levels = [
            (j, code, f"{label[j]}={one.labels[code]}")
            for j, one in enumerate(columns)
            if isinstance(one, Levels)
            for code in range(len(one.labels) == 2, len(one.labels))  # of a pair the second
        ]
        self.features = unique([*(label[j] for j in numbers), *(name for _, _, name in levels)])
        self._places = [*numbers, *(j for j, _, _ in levels)]
        self.uses = tuple(frozenset({columns[j].name}) for j in self._places)
        self._gaps = np.array([one.gap for one in columns], dtype=np.float64)
        self._mean = np.array([one.mean for one in numbers.values()], dtype=np.float64)
        self._scale = np.array([one.scale for one in numbers.values()], dtype=np.float64)
        self._codes = np.array([code for _, code, _ in levels])

    def encoded(self, codes: Array) -> Array:
        """Return features (n, d) of codes (n, c)."""
        filled = np.where(np.isnan(codes), self._gaps, codes)
        features = np.ascontiguousarray(filled[:, self._places])
        n = len(self._mean)
        features[:, :n] = (features[:, :n] - self._mean) / self._scale
        features[:, n:] = features[:, n:] == self._codes
        return features


def unique(names: Iterable[str]) -> tuple[str, ...]:
    """Return names that all differ: repeated ones get a number."""
    taken: dict[str, None] = {}
    for name in names:
        one = name
        count = 1
        while one in taken:
            count += 1
            one = f"{name} ({count})"
        taken[one] = None
    return tuple(taken)
