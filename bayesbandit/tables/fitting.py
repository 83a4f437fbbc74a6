"""What becomes of a table's columns: their types decide."""

from __future__ import annotations

import re
import shlex
import warnings
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import Name
from bayesbandit.tables.columns import (
    NESTED,
    Column,
    Date,
    LeftOut,
    Levels,
    Number,
    distinct,
    is_arrow_category,
    is_missing,
)
from bayesbandit.tables.dates import microseconds
from bayesbandit.tables.words import text_of, words_in

if TYPE_CHECKING:
    import pandas as pd

NUMBERS = {"integer", "floating", "mixed-integer-float", "decimal"}  # by pandas' infer_dtype
DATES = {"datetime64", "datetime", "date", "period"}
TEXT = {"string", "bytes", "mixed", "mixed-integer"}
LEVELS = {*TEXT, "boolean", "categorical", "empty"}

MAX_LEVELS = 20  # of a column of text, and features of any column; rarer levels are pooled
IDENTIFYING = {"id", "ids", "uid", "uuid", "guid", "identifier", "rowid", "userid", "customerid"}
INDEX = r"Unnamed: \d+"  # the name that pandas gives to the index that `to_csv` wrote
MIN_ROWS_TO_BE_NUMBERED = 100  # for whole numbers to be an identifier by themselves
MAX_GAPS = 0.05  # more numbers in their range than there are of them
MAX_NAMED = 5  # columns that a sentence names
HERE = (str(Path(__file__).parents[1]),)  # a warning is of the line that called the package


class NoFeatures(ValueError):
    """An error: no column of a table can be used."""


@dataclass
class Fit:
    """What a fit found: a column of each of the table's; those that a rule left out, which `keep`
    brings back; and the bytes by which columns repeat each other."""

    keep: Collection[Name]
    columns: dict[Name, Column] = field(default_factory=dict)
    ruled_out: list[LeftOut] = field(default_factory=list)
    numbers: dict[Name, tuple[Number, np.ndarray]] = field(default_factory=dict)
    seen: dict[object, Name] = field(default_factory=dict)
    repeats: list[str] = field(default_factory=list)

    def leave(self, name: Name, why: str, by_rule: bool = False) -> None:
        self.columns[name] = LeftOut(name, why)
        if by_rule:
            self.ruled_out.append(LeftOut(name, why))

    def note(self, name: Name, values: object) -> None:
        """Note which column a column repeats."""
        other = self.seen.setdefault(values, name)
        if other != name:
            self.repeats.append(f"{name!r} repeats {other!r}")

    def check(self) -> None:
        """Raise NoFeatures unless a column can be used."""
        left = [column for column in self.columns.values() if isinstance(column, LeftOut)]
        if len(left) == len(self.columns):
            why = "; ".join(f"{column.name!r}: {column.why}" for column in left)
            raise NoFeatures(f"no column tells the rows apart ({why})")

    def remarks(self) -> list[str]:
        """Return sentences about columns that a rule left out, and that repeat others."""
        said = []
        if self.ruled_out:
            which = "; ".join(f"{left.name!r} ({left.why})" for left in self.ruled_out)
            one = self.ruled_out[0].name
            said.append(
                f"left out {which}. keep=[{one!r}], or --keep {shlex.quote(str(one))}, uses one; "
                f"{_drop(one)} without a word"
            )
        if self.repeats:
            which = ", ".join(self.repeats[:MAX_NAMED])
            more = len(self.repeats) - MAX_NAMED
            which += f", and {more} more repeat others" if more > 0 else ""
            said.append(f"{which} in every row; drop=, or --drop, leaves a column out")
        return said


def _drop(name: Name) -> str:
    return f"drop=[{name!r}], or --drop {shlex.quote(str(name))}, leaves it out"


def warn_of(sentences: Iterable[str], name: str = "") -> None:
    """Warn of each sentence. name: the name of the data."""
    for sentence in sentences:
        warnings.warn(f"{name and name + ': '}{sentence}", skip_file_prefixes=HERE)


def fit(frame: pd.DataFrame, drop: Collection[Name], keep: Collection[Name]) -> Fit:
    """Return what becomes of each column of a table.

    drop: columns to leave out. keep: columns to use though a rule leaves them out.
    """
    found = Fit(keep)
    for name in frame.columns:
        if name in drop:
            found.leave(name, "dropped")
        else:
            _sort(found, name, frame[name])
    _standardise(found)
    return found


def _sort(found: Fit, name: Name, column: pd.Series) -> None:
    import pandas as pd

    kind = "categorical" if is_arrow_category(column) else pd.api.types.infer_dtype(column)
    if kind in NUMBERS:
        _fit_number(found, Number(name, 0.0), column, whole=kind == "integer")
    elif kind in DATES:
        _fit_date(found, name, column)
    elif kind in LEVELS and not any(isinstance(value, NESTED) for value in _objects(column, kind)):
        _fit_levels(found, name, column, kind)
    else:
        raise TypeError(
            f"column {name!r} holds {kind} ({column.dtype}); allowed are numbers, text, "
            "categories, booleans and dates: make it one of these, or drop it"
        )


def _objects(column: pd.Series, kind: str) -> Iterable[object]:
    return column if kind == "mixed" else ()


def _fit_number(found: Fit, column: Number, values: pd.Series, whole: bool) -> None:
    known, name = column.known(values), column.name
    low, high = np.fmin.reduce(known), np.fmax.reduce(known)  # NaN only where all are
    if not low < high:
        found.leave(name, "it has no value" if np.isnan(low) else "it never varies")
    elif name not in found.keep and (why := _identifies(column, known, whole)):
        found.leave(name, why, by_rule=True)
    else:
        found.columns[name] = column
        found.numbers[name] = (column, known)
        found.note(name, known.tobytes())


def _fit_date(found: Fit, name: Name, values: pd.Series) -> None:
    moments, missing = microseconds(values, name)
    known = moments[~missing]
    if name in found.keep and len(known):
        _fit_number(found, Date(name, 0.0, origin=int(known.min())), values, whole=False)
    elif not len(known) or known.min() == known.max():
        found.leave(name, "it never varies" if len(known) else "it has no value")
    else:
        found.leave(name, "dates", by_rule=True)


def _identifies(column: Number, known: np.ndarray, whole: bool) -> str:
    """Return why numbers (n,) are an identifier; "" where they are a measurement.

    They are whole, and the name says so; or they are integers that all differ, of many rows, and
    leave hardly a number of their range out.
    """
    there = known[~np.isnan(known)]
    if isinstance(column, Date) or not (there == np.floor(there)).all():
        return ""
    if why := says_identifier(column.name):
        return why
    n, span = len(known), there.max() - there.min() + 1
    numbered = whole and n >= MIN_ROWS_TO_BE_NUMBERED and span <= (1 + MAX_GAPS) * n
    if numbered and len(np.unique(there)) == n:
        return "an identifier: its values number the rows"
    return ""


def _standardise(found: Fit) -> None:
    """Give columns of numbers their medians, means and standard deviations.

    The sums are those of scikit-learn's StandardScaler of a table, to the bit.
    """
    if not found.numbers:
        return
    numbers = np.stack([known for _, known in found.numbers.values()])  # (p, n)
    n = numbers.shape[1]
    median = np.nanmedian(numbers, axis=1)
    numbers = np.where(np.isnan(numbers), median[:, None], numbers)
    mean = numbers.sum(axis=1) / n
    numbers -= mean[:, None]
    rounding = numbers.sum(axis=1) ** 2 / n
    numbers **= 2
    variance = (numbers.sum(axis=1) - rounding) / n
    eps = np.finfo(np.float64).eps
    constant = variance <= n * eps * variance + (n * mean * eps) ** 2
    scale = np.where(constant, 1.0, np.sqrt(variance))
    for j, (column, _) in enumerate(found.numbers.values()):
        found.columns[column.name] = replace(
            column, median=float(median[j]), mean=float(mean[j]), scale=float(scale[j])
        )


def _fit_levels(found: Fit, name: Name, column: pd.Series, kind: str) -> None:
    places, texts = _texts(column, name)
    counts = np.bincount(places[places >= 0], minlength=len(texts))
    missing = int((places < 0).sum())
    if len(texts) + (missing > 0) <= 1:
        found.leave(name, "it never varies" if texts else "it has no value")
    elif counts.max() == 1:
        if name in found.keep:
            raise ValueError(
                f"column {name!r} cannot be kept: no text in it occurs twice, so that no level can "
                "be learned from"
            )
        found.leave(name, "all of its values differ", by_rule=True)
    elif name not in found.keep and (why := says_identifier(name)):
        found.leave(name, why, by_rule=True)
    elif name not in found.keep and kind in TEXT and len(texts) > MAX_LEVELS:
        found.leave(
            name,
            f"text with {len(texts):,} different values, such as {texts[0]!r:.40}; a category of "
            f"text has at most {MAX_LEVELS}",
            by_rule=True,
        )
    else:
        found.columns[name] = _levels(name, texts, counts, missing)
        found.note(name, (places.tobytes(), *texts))


def _texts(column: pd.Series, name: Name) -> tuple[np.ndarray, list[str]]:
    """Return the place (n,) of each value in a list of different texts; −1 if it is missing."""
    import pandas as pd

    places, values = distinct(column)
    try:
        texts = [None if is_missing(value) else text_of(value) for value in values]
        again, found = pd.factorize(np.array(texts, dtype=object))
    except UnicodeDecodeError as error:
        raise ValueError(f"column {name!r} has bytes that are no text: {error}") from error
    if places is not None:
        again = np.append(again, -1)[places]
    return again, list(found)  # values of one text are one level


def _levels(name: Name, texts: list[str], counts: np.ndarray, missing: int) -> Levels:
    """Return a column of sorted levels; a missing value is the last one.

    Levels that occur once are pooled, and the rarest where there would be more than MAX_LEVELS
    features. Of two features the second is left, as scikit-learn's OneHotEncoder has them.
    """
    order = sorted(range(len(texts)), key=texts.__getitem__)
    every = np.append(counts[order], [missing] if missing else []).astype(np.int64)
    rare = every < 2
    if np.count_nonzero(~rare) + 1 > MAX_LEVELS:
        rare[np.argsort(every, kind="stable")[: len(every) - (MAX_LEVELS - 1)]] = True
    codes = np.cumsum(~rare) - 1
    pooled = np.count_nonzero(~rare)
    codes[rare] = pooled
    if pooled + rare.any() == 2:
        codes, pooled = codes - 1, pooled - 1  # ZEROS is −1
    alone = [k for k in range(len(texts)) if not rare[k]]
    return Levels(
        name,
        tuple(texts[order[k]] for k in alone),
        tuple(int(codes[k]) for k in alone),
        int(codes[-1]) if missing else None,
        int(pooled) if rare.any() else None,
    )


def check_no_identifier(names: Collection[Name], option: str) -> None:
    """Raise ValueError for columns that would be contexts and are identifiers by their names.

    option: the argument that names the contexts.
    """
    for name in names:
        if why := says_identifier(name):
            raise ValueError(
                f"column {name!r} is {why}, and would be a context: {option}=[…] names the columns "
                "that are contexts"
            )


def says_identifier(name: Any) -> str:
    """Return why a column identifies rows or persons by its name, as customer_id and orderId do;
    "" if it does not."""
    if re.fullmatch(INDEX, str(name)):
        return "an index that was written with the table"
    last = words_in(name)[-1:]
    return "an identifier, by its name" if IDENTIFYING.intersection(last) else ""
