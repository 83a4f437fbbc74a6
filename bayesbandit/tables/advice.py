"""What one should know of a fit: columns left out by a rule that may be wrong, and others of which
little can be learned."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterable
from pathlib import Path

from bayesbandit.checks import Name
from bayesbandit.tables.columns import Column, Levels
from bayesbandit.tables.recognition import Recognised

HERE = (str(Path(__file__).parent),)
MOST = 0.5  # the share of rows that pooled levels may have without a word


def remarks(found: Recognised, columns: Iterable[Column]) -> list[str]:
    """Sentences on the columns of a fit, as it found them and as it uses them."""
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
    """On a column most of whose rows are of pooled levels; "" of another."""
    if column.pooled is None:
        return ""
    known = found.levels[column.name].dropna()
    share = 1 - known.isin(column.levels).mean()
    if share <= MOST:
        return ""
    return (
        f"{column.name!r} has {known.nunique():,} different texts: {len(column.levels)} are "
        f"levels, and all others, {share:.0%} of the rows, are one. Make it numbers or fewer "
        f"levels, where that tells more; {_drop(column.name)}"
    )


def _twice(found: Recognised) -> list[str]:
    """On columns that repeat another in every row."""
    first: dict[object, Name] = {}
    said = []
    rows: dict[Name, object] = {name: of.tobytes() for name, (_, of) in found.numbers.items()}
    rows |= {name: tuple(text.where(text.notna(), None)) for name, text in found.levels.items()}
    for name, values in rows.items():
        other = first.setdefault(values, name)
        if other != name:
            said.append(f"{name!r} repeats {other!r} in every row; {_drop(name)}")
    return said


def warn_of(sentences: Iterable[str], name: str = "") -> None:
    """The sentences as warnings, about the data of this name."""
    for sentence in sentences:
        warnings.warn(f"{name and name + ': '}{sentence}", skip_file_prefixes=HERE)
