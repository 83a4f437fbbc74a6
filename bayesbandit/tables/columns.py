"""Columns of a fitted encoder: numbers, dates, levels, and columns that are left out."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import compress
from math import inf, nan
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import Name, shown
from bayesbandit.tables.dates import DAY, microseconds
from bayesbandit.tables.words import text_of

if TYPE_CHECKING:
    import pandas as pd

type Values = pd.Series | list[Any]  # of one column, (n,)

LARGEST_VALUE = 1e100  # of numbers whose variance float64 can hold
NESTED = (list, tuple, dict, set, frozenset, np.ndarray)
NUMBERS = (Real, Decimal, np.bool_)
HERE = (str(Path(__file__).parents[1]),)  # a warning is of the line that called the package
ZEROS = -1  # the code of a level for which all features of its column are 0
NEW, ABSENT = -1, -2  # places of what is none of the levels of the fit, and of what is missing


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
        if isinstance(value, NESTED) or not (isinstance(value, NUMBERS) or is_missing(value)):
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
        if isinstance(values, list):  # a few rows
            known = [self.value(one) for one in values]
            filled = [self.median if one != one else one for one in known]
            features[:, 0] = [(one - self.mean) / self.scale for one in filled]
        else:
            whole = self.known(values)
            features[:, 0] = np.where(np.isnan(whole), self.median, whole)
            features[:, 0] -= self.mean
            features[:, 0] /= self.scale

    def features(self, label: str) -> list[str]:
        return [label]


@dataclass(frozen=True)
class Date(Number):
    """A column of dates. Its numbers are days since the first date of the fit; then as `Number`.

    A date without a time zone is taken as UTC. origin: the first date, in microseconds since 1970.
    """

    origin: int = 0

    kind = "date"

    def known(self, values: Values) -> np.ndarray:
        moments, missing = microseconds(values, self.name)
        return np.where(missing, nan, (moments - self.origin) / DAY)

    def value(self, value: object) -> float:
        return float(self.known([value])[0])


@dataclass(frozen=True)
class Levels:
    """A column of text, categories or booleans, with a feature of 0 and 1 for each level.

    levels: texts that were different in the fit. codes: the number of each level's feature, or
    ZEROS. missing: the code of a missing value; None if the fit saw none. pooled: the code of all
    other levels; None if the fit pooled none.
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
        """Levels that are numbers, so that 1, 1.0 and "1" are one level; True is 1 if 1 is none."""
        if set(self.levels) <= {"True", "False"}:
            return {float(text == "True"): place for text, place in self._by_text.items()}
        found: dict[float, int] = {}
        for text in sorted(self.levels, key=len):  # 7 is "7" before "07"
            if (number := _number_of(text)) is not None:
                found.setdefault(number, self._by_text[text])
        return found

    def place(self, value: object) -> int:
        """Return the position of a value in `levels`, or ABSENT, or NEW."""
        if isinstance(value, NESTED):
            raise ValueError(f"column {self.name!r} holds levels; got {shown(value)}")
        if is_missing(value):
            return ABSENT
        try:
            text = text_of(value)
        except UnicodeDecodeError:
            return NEW
        place = self._by_text.get(text)
        if place is None and isinstance(value, NUMBERS):
            place = self._by_number.get(float_of(value))
        if place is None and self._logical:
            place = self._by_text.get(text.capitalize())
            if place is None:
                raise ValueError(f"column {self.name!r} holds True and False; got {shown(value)}")
        return NEW if place is None else place

    def places(self, values: Values) -> np.ndarray | list[int]:
        """Return the position (n,) of each value in `levels`.

        A warning tells of a new level that is of another kind than all levels.
        """
        inverse, found = distinct(values)
        places = [self.place(value) for value in found]
        for value in compress(found, [place == NEW for place in places]):
            if self._is_odd(value):
                some = ", ".join(map(repr, self.levels[:3])) + ", …" * (len(self.levels) > 3)
                warnings.warn(
                    f"column {self.name!r}: {shown(value)} ({type(value).__name__}) is of another "
                    f"kind than the levels of the fit, {some}, and goes for a new one",
                    skip_file_prefixes=HERE,
                )
                break
        return places if inverse is None else np.array([*places, ABSENT])[inverse]  # −1: the last

    def _is_odd(self, value: object) -> bool:
        """Return whether a value is no text, where all levels are words; or no number, where all
        levels are numbers."""
        is_text = isinstance(value, str | bytes)
        if not self._by_number:
            return not is_text
        is_number = _number_of(value) is not None if is_text else isinstance(value, NUMBERS)
        numbers = {level for level in self.levels if _number_of(level) is not None}
        return len(numbers) == len(self.levels) and not is_number

    @cached_property
    def _codes(self) -> list[int]:
        """The code of each place; ABSENT and NEW stand at the end, as −2 and −1."""
        missing = self.other if self.missing is None else self.missing
        return [*self.codes, missing, self.other]

    def encode(self, values: Values, features: np.ndarray) -> None:
        """Write 1 into the features (n, width) of the values' levels; they are 0 before."""
        places = self.places(values)
        if isinstance(places, list):  # a few rows
            for row, place in enumerate(places):
                if (code := self._codes[place]) != ZEROS:
                    features[row, code] = 1.0
        else:
            codes = np.array(self._codes)[places]
            rows = np.flatnonzero(codes != ZEROS)
            features[rows, codes[rows]] = 1.0

    def names(self) -> list[str]:
        """Return the level of each feature."""
        said = dict(zip(self.codes, self.levels, strict=True))
        if self.missing is not None:
            said.setdefault(self.missing, "missing")
        if self.pooled is not None:
            said[self.pooled] = "other"
        return [said[code] for code in range(self.width)]

    def features(self, label: str) -> list[str]:
        return [f"{label}={name}" for name in self.names()]


def float_of(value: Any) -> float:
    """Return a number as a float; a whole one that is too large is infinite."""
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


def _number_of(text: Any) -> float | None:
    """Return the number that a text is; None for a word."""
    try:
        return float(text)
    except ValueError:
        return None


def unique(names: Iterable[str]) -> tuple[str, ...]:
    """Return names that all differ: repeated ones get a number."""
    taken: dict[str, None] = {}
    for name in names:
        one, count = name, 1
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
