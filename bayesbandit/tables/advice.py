"""Warnings about a fit: columns that a rule left out, and columns that teach little."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterable
from pathlib import Path

from bayesbandit.checks import Name
from bayesbandit.tables.columns import Column, Levels
from bayesbandit.tables.recognition import Recognised

HERE = (str(Path(__file__).parents[1]),)  # a warning is of the line that called the package
SHOWN = 5  # columns at most in a sentence on all
MOST = 0.5  # the share of rows that pooled levels may have without a word


def remarks(found: Recognised, columns: Iterable[Column]) -> list[str]:
    """Return sentences about the columns of a fit, as recognised and as used."""
    pooled = [column for column in columns if isinstance(column, Levels)]
    said = [_left_out(found)] if found.guessed else []
    return [*said, *filter(None, (_pooled(found, column) for column in pooled)), *_twice(found)]


def _left_out(found: Recognised) -> str:
    which = "; ".join(f"{left.name!r} ({left.why})" for left in found.guessed)
    one = found.guessed[0].name
    return (
        f"left out {which}. keep=[{one!r}], or --keep {shlex.quote(str(one))}, uses one; "
        f"{_drop(one)} without a word"
    )


def _drop(name: Name) -> str:
    return f"drop=[{name!r}], or --drop {shlex.quote(str(name))}, leaves it out"


def _pooled(found: Recognised, column: Levels) -> str:
    """Return a sentence on a column most of whose rows are of pooled levels; "" of another."""
    if column.pooled is None:
        return ""
    known = found.levels[column.name].dropna()
    pooled = known[~known.isin(column.levels)]
    if len(pooled) <= MOST * len(known):
        return ""
    return (
        f"of the {known.nunique():,} different texts of {column.name!r} the rarest "
        f"{pooled.nunique():,}, {len(pooled) / len(known):.0%} of the rows, are one level, "
        f"'other'. Make it numbers or fewer levels, where that tells more; {_drop(column.name)}"
    )


def _twice(found: Recognised) -> list[str]:
    """Return a sentence on columns that repeat another in every row."""
    first: dict[object, Name] = {}
    rows: dict[Name, object] = {name: of.tobytes() for name, (_, of) in found.numbers.items()}
    rows |= {name: tuple(text.where(text.notna(), None)) for name, text in found.levels.items()}
    pairs = [
        (name, other) for name in rows if (other := first.setdefault(rows[name], name)) != name
    ]
    if not pairs:
        return []
    said = ", ".join(f"{name!r} repeats {other!r}" for name, other in pairs[:SHOWN])
    more = f", and {len(pairs) - SHOWN} more repeat others" if len(pairs) > SHOWN else ""
    return [f"{said}{more} in every row; {_drop(pairs[0][0])}"]


def warn_of(sentences: Iterable[str], name: str = "") -> None:
    """Warn of each sentence. name: the name of the data."""
    for sentence in sentences:
        warnings.warn(f"{name and name + ': '}{sentence}", skip_file_prefixes=HERE)
