"""Columns of a fitted encoder: numbers, dates, levels, and columns that are left out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from math import nan
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import Name, shown
from bayesbandit.tables.dates import MICROSECONDS_PER_DAY, microseconds
from bayesbandit.tables.words import MAX_EXACT_INTEGER, NUMBER_TYPES, float_of, text_of

if TYPE_CHECKING:
    import pandas as pd

type Values = pd.Series | list[Any]  # of one column, (n,)

LARGEST_VALUE = 1e100  # of numbers whose variance float64 can hold
NESTED = (list, tuple, dict, set, frozenset, np.ndarray)
LOGICAL = ("False", "True")  # the levels of a column of booleans
ZEROS = -1  # the code of a level for which all features of its column are 0
# places of what is none of the levels of the fit, and of what is missing
UNSEEN_LEVEL = -1
MISSING_VALUE = -2


def is_missing(value: Any) -> bool:
    import pandas as pd

    if isinstance(value, Decimal):
        return value.is_nan()  # also of a signaling one, which pandas cannot compare
    return value is None or bool(pd.isna(value))


def distinct(values: Values) -> tuple[np.ndarray | None, list[Any]]:
    """Return the place (n,) of each value in a list of different ones; −1 if it is missing.

    The place is None if each value stands for itself: in lists, and in columns of mixed objects,
    where 1 and True would be one value.
    """
    import pandas as pd

    if isinstance(values, list):
        return None, values
    if values.dtype == object and pd.api.types.infer_dtype(values) != "string":
        return None, values.tolist()
    if is_arrow_category(values):
        values = values.astype(object)  # pandas 3.1 cannot factorise one with missing values
    places, found = pd.factorize(values)
    return places, list(found)


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


@dataclass(frozen=True)
class Number:
    """A column of numbers. A missing one becomes the median; the feature is (x − mean) / scale."""

    name: Name
    median: float
    mean: float = 0.0
    scale: float = 1.0

    kind = "number"
    width = 1

    def known(self, values: Values) -> np.ndarray:
        """Return the values (n,) as float64; NaN where one is missing."""
        if isinstance(values, list) or values.dtype.kind not in "iufb":
            return np.array([self.value(one) for one in values], dtype=np.float64)
        found = values.to_numpy(dtype=np.float64, na_value=np.nan)
        if (beyond := np.abs(found) > LARGEST_VALUE).any():
            raise self._too_large(found[beyond][0])
        return found

    def value(self, value: object) -> float:
        """Return a value as a number; NaN if it is missing."""
        if isinstance(value, NESTED) or not (isinstance(value, NUMBER_TYPES) or is_missing(value)):
            raise ValueError(f"column {self.name!r} holds numbers; got {shown(value)}")
        if is_missing(value):
            return nan
        found = float_of(value)
        if abs(found) > LARGEST_VALUE:
            raise self._too_large(found)
        return found

    def _too_large(self, value: float) -> ValueError:
        return ValueError(
            f"values infinite or beyond ±{LARGEST_VALUE:g} in column {self.name!r}; got {value:g}"
        )

    def encode(self, values: Values, features: np.ndarray) -> None:
        """Write the feature into features (n, 1)."""
        if isinstance(values, list):  # a few rows, faster one by one
            each = [self.value(one) for one in values]
            filled = [self.median if one != one else one for one in each]
            features[:, 0] = [(one - self.mean) / self.scale for one in filled]
            return
        known = self.known(values)
        features[:, 0] = (np.where(np.isnan(known), self.median, known) - self.mean) / self.scale

    def names(self, label: str) -> list[str]:
        """Return the names of the features. label: the column's name as text."""
        return [label]


@dataclass(frozen=True)
class Date(Number):
    """A column of dates. Its numbers are days since the first date of the fit; then as `Number`.

    A date without a time zone is taken as UTC. origin: the first date, in microseconds since 1970.
    """

    origin: int = 0

    kind = "date"

    def known(self, values: Values) -> np.ndarray:
        moments, missing = microseconds(values, f"column {self.name!r} holds dates")
        return np.where(missing, nan, (moments - self.origin) / MICROSECONDS_PER_DAY)

    def value(self, value: object) -> float:
        return float(self.known([value])[0])


@dataclass(frozen=True)
class Levels:
    """A column of text, categories or booleans, with a feature of 0 and 1 for each level.

    levels: texts that were different in the fit. missing: whether a missing value has a feature of
    its own, after those of levels. pooled: whether all other values have one, the last. Of two
    features the first is left out, as scikit-learn's OneHotEncoder does.
    """

    name: Name
    levels: tuple[str, ...]
    missing: bool = False
    pooled: bool = False

    kind = "levels"

    @cached_property
    def labels(self) -> list[str]:
        """The name of each level in a feature's name, with one that has no feature."""
        return [*self.levels, *["missing"] * self.missing, *["other"] * self.pooled]

    @cached_property
    def is_pair(self) -> bool:
        """Whether the first of two levels has no feature."""
        return len(self.labels) == 2

    @cached_property
    def width(self) -> int:
        """How many features there are."""
        return len(self.labels) - self.is_pair

    @cached_property
    def codes(self) -> list[int]:
        """The number of each level's feature, or ZEROS; ABSENT and NEW are at the end."""
        other = self.width - 1 if self.pooled else ZEROS
        absent = len(self.levels) - self.is_pair if self.missing else other
        return [*(place - self.is_pair for place in range(len(self.levels))), absent, other]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {level: place for place, level in enumerate(self.levels)}

    @cached_property
    def _is_logical(self) -> bool:
        return self.levels == LOGICAL and not self.pooled

    def place(self, value: object) -> int:
        """Return the position of a value in `levels`, or ABSENT, or NEW."""
        if isinstance(value, NESTED):
            raise ValueError(f"column {self.name!r} holds levels; got {shown(value)}")
        if is_missing(value):
            return MISSING_VALUE
        try:
            text = level_of(value)
        except ValueError:  # bytes that are no text, or an integer of too many digits
            return UNSEEN_LEVEL
        place = self._places.get(text)
        if place is None and self._is_logical:
            if isinstance(value, NUMBER_TYPES) and text in ("0", "1"):
                return int(text)
            if text.capitalize() not in LOGICAL:
                raise ValueError(f"column {self.name!r} holds True and False; got {shown(value)}")
            place = self._places[text.capitalize()]
        return UNSEEN_LEVEL if place is None else place

    def places(self, values: Values) -> np.ndarray:
        """Return the position (n,) of each value in `levels`."""
        inverse, found = distinct(values)
        places = np.array([*map(self.place, found), MISSING_VALUE])  # the last is that of −1
        return places[:-1] if inverse is None else places[inverse]

    def encode(self, values: Values, features: np.ndarray) -> None:
        """Write 1 into the features (n, width) of the values' levels; they are 0 before."""
        if isinstance(values, list):  # a few rows, faster one by one
            for row, value in enumerate(values):
                if (code := self.codes[self.place(value)]) != ZEROS:
                    features[row, code] = 1.0
            return
        codes = np.array(self.codes)[self.places(values)]
        rows = np.flatnonzero(codes != ZEROS)
        features[rows, codes[rows]] = 1.0

    def names(self, label: str) -> list[str]:
        """Return the names of the features. label: the column's name as text."""
        return [f"{label}={level}" for level in self.labels[self.is_pair :]]


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


@dataclass(frozen=True)
class LeftOut:
    """A column of the fit that gives no feature, with the reason."""

    name: Name
    why: str

    kind = "left out"


type Used = Number | Levels
type Column = Used | LeftOut
