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
from bayesbandit.tables.words import kind_of, text_of, value_of

if TYPE_CHECKING:
    import pandas as pd

type Values = pd.Series | list[Any]  # of one column, (n,)

LARGEST_VALUE = 1e100  # of numbers whose variance float64 can hold
NESTED = (list, tuple, dict, set, frozenset, np.ndarray)
HERE = (str(Path(__file__).parents[1]),)  # a warning is of the line that called the package
ZEROS = -1  # the code of a level for which all features of its column are 0
NEW, ABSENT = -1, -2  # places of what is none of the levels of the fit, and of what is missing


def is_missing(value: Any) -> bool:
    import pandas as pd

    if isinstance(value, Decimal):
        return value.is_nan()  # also of a signaling one, which pandas cannot compare
    return value is None or bool(pd.isna(value))


def objects(values: Values) -> Iterable[Any]:
    """Return the values as objects of Python's own types."""
    return values if isinstance(values, list) else values.astype(object)


def bounded(values: np.ndarray, name: Name) -> np.ndarray:
    """Return numbers (n,); raise ValueError if one is infinite or too large."""
    if (beyond := np.abs(values) > LARGEST_VALUE).any():
        raise ValueError(
            f"values infinite or beyond ±{LARGEST_VALUE:g} in column {name!r}; "
            f"got {values[beyond][0]:g}"
        )
    return values


@dataclass(frozen=True)
class Number:
    """A column of numbers. A missing one becomes the median; the feature is (x − mean) / scale."""

    name: Name
    median: float
    mean: float = 0.0
    scale: float = 1.0

    kind = "number"

    def known(self, values: Values) -> np.ndarray:
        """Return the values (n,) as float64; NaN where one is missing."""
        if isinstance(values, list) or values.dtype.kind not in "iufb":
            known = np.array([self._one(value) for value in objects(values)], dtype=np.float64)
        else:
            known = values.to_numpy(dtype=np.float64, na_value=np.nan)
        return bounded(known, self.name)

    def _one(self, value: object) -> float:
        if not isinstance(value, NESTED) and is_missing(value):
            return nan
        if isinstance(value, Real | Decimal | np.bool_):
            try:
                return float(value)
            except OverflowError:
                return inf
        raise ValueError(f"column {self.name!r} holds numbers; got {shown(value)}")

    def filled(self, values: Values) -> np.ndarray:
        """Return the values (n,), with the median in place of missing ones."""
        known = self.known(values)
        return np.where(np.isnan(known), self.median, known)

    def encoded(self, values: Values) -> np.ndarray:
        """Return features (n, 1)."""
        return ((self.filled(values) - self.mean) / self.scale)[:, None]

    def features(self, label: str) -> list[str]:
        return [label]


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
    def _by_value(self) -> dict[Any, int]:
        """Levels that were numbers or dates, so that 1, 1.0 and "1" are one level, as are a date
        and its text; and True is 1 where 1 is none."""
        if set(self.levels) <= {"True", "False"}:
            return {float(text == "True"): place for text, place in self._by_text.items()}
        found: dict[Any, int] = {}
        for any_number in (False, True):  # 7 is "7" before "07"
            for text, place in self._by_text.items():
                found.setdefault(value_of(text, any_number), place)
        return found

    @cached_property
    def _type(self) -> type | None:
        """What all levels are: numbers (float), dates or words (str); None of a mixture."""
        types = {kind_of(level, any_number=True) for level in self.levels}
        return types.pop() if len(types) == 1 else None

    def place(self, value: object) -> int:
        """Return the position of a value in `levels`, or ABSENT, or NEW."""
        if isinstance(value, NESTED):
            raise ValueError(f"column {self.name!r} holds levels; got {shown(value)}")
        if is_missing(value):
            return ABSENT
        try:
            place = self._by_text.get(text_of(value))
        except UnicodeDecodeError:
            return NEW
        if place is None and not (self._logical and isinstance(value, str)):
            found = value_of(value)
            place = None if found is None else self._by_value.get(found)
        if place is None and self._logical:
            place = self._by_text.get(text_of(value).capitalize())
            if place is None:
                raise ValueError(f"column {self.name!r} holds True and False; got {shown(value)}")
        return NEW if place is None else place

    def places(self, values: Iterable[Any]) -> list[int]:
        """Return the position of each value in `levels`.

        A warning tells of a new level that is of another kind than all levels.
        """
        listed = list(values)
        places = [self.place(value) for value in listed]
        for value in compress(listed, (place == NEW for place in places)):
            if self._is_odd(value):
                some = ", ".join(map(repr, self.levels[:3])) + ", …" * (len(self.levels) > 3)
                warnings.warn(
                    f"column {self.name!r}: {shown(value)} ({type(value).__name__}) is of another "
                    f"kind than the levels of the fit, {some}, and goes for a new one",
                    skip_file_prefixes=HERE,
                )
                break
        return places

    def _is_odd(self, value: object) -> bool:
        if self._type is None or (self._type is str and isinstance(value, str | bytes)):
            return False
        return kind_of(value) is not self._type

    def coded(self, values: Iterable[Any]) -> np.ndarray:
        """Return codes (n,) of values: the number of each one's feature, or ZEROS."""
        missing = self.other if self.missing is None else self.missing
        by_place = np.array([*self.codes, missing, self.other], dtype=np.int64)  # ABSENT, NEW
        return by_place[self.places(values)]

    def encoded(self, values: Values) -> np.ndarray:
        """Return features (n, width)."""
        codes = self.coded(objects(values))
        features = np.zeros((len(codes), self.width))
        rows = np.flatnonzero(codes != ZEROS)
        features[rows, codes[rows]] = 1.0
        return features

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
