"""What `bayesbandit compare` plays on: data sets by name, file, number or folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesbandit import environments as rooms

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 40  # columns of a data set at most in the terminal


def data_sets(
    data: Sequence[str], csv: Path | None, target: str | None, openml: Sequence[str],
    folder: Path | None, drop: Sequence[str], keep: Sequence[str],
) -> list[Any]:  # fmt: skip
    """The data sets that a command line names, or else the bundled ones. drop, keep: columns of
    --csv and --openml."""
    if csv is None and target is not None:
        raise ValueError(f"--target {target} needs --csv, the file that has this column")
    if csv is not None and target is None:
        raise ValueError("--csv needs --target, the column to predict")
    for option, names in (("--drop", drop), ("--keep", keep)):
        if names and csv is None and not openml:
            raise ValueError(f"{option} {names[0]} needs --csv or --openml, whose column it is")
    sets: list[Any] = [rooms.bundled(name) for name in data]
    if csv is not None and target is not None:
        sets.append(rooms.from_csv(csv, target, drop=drop, keep=keep))
    sets += [rooms.openml(name, drop=drop, keep=keep) for name in openml]
    sets += rooms.folder(folder) if folder is not None else []
    return sets or [rooms.bundled(name) for name in rooms.BUNDLED]


def columns(sets: Sequence[Any]) -> dict[str, pd.DataFrame]:
    """By data set: what became of each column. Of those that load when they are played, nothing."""
    return {one.name: one.encoder.summary() for one in sets if not one.is_lazy}


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """The first columns of many."""
    return table if len(table) <= SHOWN else table.head(SHOWN)
