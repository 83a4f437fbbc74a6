"""What becomes of a table's columns: their types decide."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import FLOAT_EPSILON, PACKAGE_FOLDER, Array, Name
from bayesbandit.tables.columns import (
    NESTED,
    Column,
    Date,
    LeftOut,
    Levels,
    Number,
    codes_of,
    is_arrow_category,
    level_of,
    mapped,
)
from bayesbandit.tables.words import datetimes, is_missing

if TYPE_CHECKING:
    import pandas as pd

NUMERIC_KINDS = {"integer", "floating", "mixed-integer-float", "decimal"}  # by pandas' infer_dtype
DATES = {"datetime64", "datetime", "date", "period"}
TEXT = {"string", "bytes", "mixed", "mixed-integer"}
LEVEL_KINDS = {*TEXT, "boolean", "categorical"}

MAX_LEVELS = 20  # of a column of text, and features of any column; rarer levels are pooled
IDENTIFYING = {"id", "ids", "uid", "uuid", "guid", "identifier", "rowid", "userid", "customerid"}
WORD_PATTERN = r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+"  # of a name in snake_case or camelCase
INDEX = r"Unnamed: \d+"  # the name that pandas gives to the index that `to_csv` wrote
MIN_ROWS_TO_BE_NUMBERED = 100  # for whole numbers to be an identifier by themselves
MAX_GAPS = 0.05  # more numbers in their range than there are of them
# reasons that give no warning
WAS_DROPPED = "dropped"
NEVER_VARIES = "it never varies"
HAS_NO_VALUE = "it has no value"
ALL_DIFFER = "all of its values differ"


class NoFeatures(ValueError):
    """An error: no column of a table can be used."""


def fit(frame: pd.DataFrame, drop: Collection[Name], keep: Collection[Name]) -> list[Column]:
    """Return what becomes of each column of a table.

    drop: columns to leave out. keep: columns to use though a rule leaves them out.
    """
    return [
        LeftOut(name, WAS_DROPPED) if name in drop else _column(name, frame[name], name in keep)
        for name in frame.columns
    ]


def _column(name: Name, values: pd.Series, keep: bool) -> Column:
    import pandas as pd

    if values.isna().all():
        return LeftOut(name, HAS_NO_VALUE)
    kind = "categorical" if is_arrow_category(values) else pd.api.types.infer_dtype(values)
    if kind in NUMERIC_KINDS:
        return _number(Number(name, 0.0), values, kind == "integer", keep)
    if kind in DATES:
        first = np.nanmin(datetimes(values, f"column {name!r} holds dates")).astype(np.int64)
        return _number(Date(name, 0.0, origin=int(first)), values, False, keep)
    if kind in LEVEL_KINDS and not (
        kind == "mixed" and any(isinstance(one, NESTED) for one in values)
    ):
        return _levels(name, values, kind in TEXT, keep)
    raise TypeError(
        f"column {name!r} holds {kind} ({values.dtype}); allowed are numbers, text, "
        "categories, booleans and dates: make it one of these, or drop it"
    )


def _number(column: Number, values: pd.Series, is_whole: bool, keep: bool) -> Column:
    """Return what becomes of numbers or dates."""
    name = column.name
    codes = codes_of([column], values.to_frame(name))[:, 0]
    present = codes[~np.isnan(codes)]
    if present.min() == present.max():
        return LeftOut(name, NEVER_VARIES)
    if not keep and isinstance(column, Date):
        return LeftOut(name, "dates")
    if not keep and (present == np.floor(present)).all():
        if why := says_identifier(name):
            return LeftOut(name, why)
        if is_whole and _numbers_the_rows(present, len(codes)):
            return LeftOut(name, "an identifier: its values number the rows")
    median = np.median(present)
    filled = np.where(np.isnan(codes), median, codes)
    mean = filled.mean()
    sd = filled.std()
    # numbers that differ by rounding errors alone are not made larger (Chan et al. 1983)
    scale = sd if sd > FLOAT_EPSILON * len(filled) * abs(mean) else 1.0
    return replace(column, median=float(median), mean=float(mean), scale=float(scale))


def _numbers_the_rows(values: Array, n: int) -> bool:
    """Return whether integers of n rows all differ, and leave hardly one of their range out."""
    span = values.max() - values.min() + 1
    numbered = n >= MIN_ROWS_TO_BE_NUMBERED and span <= (1 + MAX_GAPS) * n
    return bool(numbered and len(np.unique(values)) == n)


def _levels(name: Name, values: pd.Series, is_text: bool, keep: bool) -> Column:
    import pandas as pd

    try:
        texts = mapped(values, lambda one: None if is_missing(one) else level_of(one), object)
        counts = Counter(texts.tolist())
        # of a category's levels as it declares them, so that a formula's first one is that
        if isinstance(values.dtype, pd.CategoricalDtype):
            order = [level_of(one) for one in values.cat.categories]
        else:
            order = sorted(counts.keys() - {None})
    except ValueError as error:
        raise ValueError(f"column {name!r} has values that are no text: {error}") from error
    missing = counts.pop(None, 0)
    if len(counts) + (missing > 0) <= 1:
        return LeftOut(name, NEVER_VARIES)
    if max(counts.values()) == 1 and keep:
        raise ValueError(
            f"column {name!r} cannot be kept: no text in it occurs twice, so that no level can "
            "be learned from"
        )
    if max(counts.values()) == 1:
        return LeftOut(name, ALL_DIFFER)
    if not keep and (why := says_identifier(name)):
        return LeftOut(name, why)
    if not keep and is_text and len(counts) > MAX_LEVELS:
        return LeftOut(
            name,
            f"text with {len(counts):,} different values, such as {next(iter(counts))!r:.40}; a "
            f"category of text has at most {MAX_LEVELS}",
        )
    every: dict[str | None, int] = {text: counts[text] for text in order if text in counts}
    if missing:
        every[None] = missing
    return _pooled(name, every)


def _pooled(name: Name, every: Mapping[str | None, int]) -> Levels:
    """Return a column of levels in this order. every: how often each text is there; None: none.

    Levels that occur once are pooled, and the rarest where there would be more than MAX_LEVELS
    features. A missing value is a level, too, the last.
    """
    rare = {level for level, count in every.items() if count < 2}
    if len(every) - len(rare) + 1 > MAX_LEVELS:
        by_count = sorted(every, key=every.__getitem__)
        rare.update(by_count[: len(every) - (MAX_LEVELS - 1)])
    alone = tuple(text for text in every if text is not None and text not in rare)
    try:
        "".join(alone).encode()
    except UnicodeError as error:  # a lone surrogate
        raise ValueError(f"column {name!r} has values that are no text: {error}") from error
    return Levels(name, alone, missing=None in every and None not in rare, pooled=bool(rare))


def remarks(columns: Sequence[Column]) -> list[str]:
    """Return a sentence about the columns that a rule left out; none without any."""
    left = [one for one in columns if isinstance(one, LeftOut)]
    ruled_out = [one for one in left if one.why not in (WAS_DROPPED, NEVER_VARIES, HAS_NO_VALUE)]
    if not ruled_out:
        return []
    which = "; ".join(f"{one.name!r} ({one.why})" for one in ruled_out)
    name = ruled_out[0].name
    return [
        f"left out {which}. keep=[{name!r}], or --column context={name!r}, uses one; "
        f"drop=[{name!r}], or --column drop={name!r}, leaves it out without a word"
    ]


def warn_of(sentences: Iterable[str], name: str = "") -> None:
    """Warn of each sentence. name: the name of the data."""
    for sentence in sentences:
        warnings.warn(f"{name and name + ': '}{sentence}", skip_file_prefixes=PACKAGE_FOLDER)


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
    last = "".join(re.findall(WORD_PATTERN, str(name))[-1:]).lower()
    return "an identifier, by its name" if last in IDENTIFYING else ""
