"""The data sets of `bayesbandit compare`, and the sentence that states its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit import environments as rooms
from bayesbandit.tables.files import CSV, LINES, PARQUET, kind_of, read, stem_of
from bayesbandit.tables.role_names import signs_of_a_log

if TYPE_CHECKING:
    import pandas as pd

FILES = (*PARQUET, *LINES, *CSV)  # of --data
SHOWN = 40  # the most columns of a data set that the terminal lists


def data_sets(
    data: Sequence[str],
    csv: Path | None,
    target: str | None,
    reward: Sequence[str],
    cost: Sequence[str],
    openml: Sequence[str],
    folder: Path | None,
    drop: Sequence[str],
    keep: Sequence[str],
    form: Mapping[str, Any],
) -> list[Any]:
    """Return the data sets that a command line names; without names, the bundled ones.

    target, reward, cost: columns of --csv, for the class, or for each arm. drop, keep: columns of
    --csv and --openml. form: sep, decimal and dates, by which --csv is read.
    Raise ValueError for options that do not fit together.
    """
    given = {"--target": [target] if target else [], "--reward": reward, "--cost": cost}
    asked = [option for option, names in given.items() if names]
    if csv is None and asked:
        option = asked[0]
        raise ValueError(f"{option} {given[option][0]} needs --csv, the file that has this column")
    if csv is not None and len(asked) != 1:
        raise ValueError(
            "--csv needs --target, the column to predict, or a --reward or a --cost for each arm"
            + (f"; got {' and '.join(asked)}" if asked else "")
        )
    for option, value in form.items():
        if value is not None and csv is None:
            raise ValueError(f"--{option} {value} needs --csv, the file that it tells how to read")
    for option, names in (("--drop", drop), ("--keep", keep)):
        if names and csv is None and not openml:
            raise ValueError(f"{option} {names[0]} needs --csv or --openml, whose column it is")
    sets: list[Any] = [rooms.bundled(name) for name in data]
    if csv is not None:
        table, name = read(csv, text=given["--target"], **form), stem_of(csv)
        refuse_log(csv, table, target, {*given["--target"], *reward, *cost, *drop, *keep})
        if target:
            sets.append(rooms.from_frame(table, target, name, drop=drop, keep=keep))
        else:
            sets.append(rooms.KnownRewards(table, reward, name, costs=cost, drop=drop, keep=keep))
    sets += [rooms.openml(name, drop=drop, keep=keep) for name in openml]
    sets += rooms.folder(folder) if folder is not None else []
    return sets or [rooms.bundled(name) for name in rooms.BUNDLED]


def refuse_log(path: Path, table: pd.DataFrame, target: str | None, chosen: set[str]) -> None:
    """Raise ValueError if a table looks like a bandit's log.

    A log does not have the rewards of the other arms, which `compare` needs. chosen: columns of
    which the user has said what they are.
    """
    classes = table[target].dropna().unique() if target in table else ()
    signs = [name for name in signs_of_a_log(table.columns, classes) if name not in chosen]
    if signs:
        arm = "" if target is None else f" --column arm={target}"
        raise ValueError(
            f"{path} looks like the log of a bandit, by its columns {', '.join(map(str, signs))}: "
            f"`bayesbandit evaluate {path}` says what policies would have earned, and `bayesbandit "
            f"compare --log {path}` which bandit learns best (with{arm} --column reward=… --column "
            "propensity=…, where the names do not tell). If it is a data set, "
            f"{' '.join(f'--keep {name}' for name in signs)} uses these columns"
        )


def split_files(data: Sequence[str], csv: Path | None) -> tuple[list[str], Path | None]:
    """Return the bundled sets of --data, and the one file of --data or --csv.

    Raise ValueError for more than one file.
    """
    files = [Path(name) for name in data if kind_of(Path(name)) in FILES]
    names = [name for name in data if Path(name) not in files]
    if len(files) + (csv is not None) > 1:
        given = [*map(str, files), *([str(csv)] if csv is not None else [])]
        raise ValueError(f"give one file of your own; got {', '.join(given)}")
    return names, files[0] if files else csv


def columns(sets: Sequence[Any]) -> dict[str, pd.DataFrame]:
    """Return a table for each data set, by title, of how its columns are used.

    Lazy data sets have no table.
    """
    loaded = [data for data in sets if not data.is_lazy]
    return {f"{data.name}: what became of its columns": data.encoder.summary() for data in loaded}


def listed(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the table that the terminal shows, the first `SHOWN`."""
    return table if len(table) <= SHOWN else table.head(SHOWN)


def verdict(ranking: pd.DataFrame) -> list[str | tuple[str, str]]:
    """Return the result of a ranking as a sentence, in texts or (text, style)."""
    best, *tied = winners(ranking)
    reward = f"mean reward {best.mean_reward:.3f} a round"
    if tied:
        names = " and ".join(bandit.bandit for bandit in (best, *tied))
        return ["None is best on this data: ", (names, "bold"), f" tie, {reward}."]
    if len(ranking) == 1:
        return [(best.bandit, "bold"), f": {reward}."]
    if best.wins == best.losses == 0:
        name = best.bandit, "bold"
        return ["Least regret, but no significant difference: ", name, f", {reward}."]
    return [
        "Best on this data: ",
        (best.bandit, "bold"),
        f", {reward}; it beats the others "
        f"significantly {times(best.wins)} and loses {times(best.losses)} "
        "(p < .05 each, uncorrected).",
    ]


def times(n: int) -> str:
    """Return "once" or "n times"."""
    return "once" if n == 1 else f"{n:,} times"


def winners(ranking: pd.DataFrame) -> list[Any]:
    """Return the rows of the best bandit and of those that tie with it, up to rounding errors."""
    first = ranking.iloc[0]
    keys = ["normalised_regret", "mean_rank"]
    same = np.isclose(ranking[keys], first[keys].astype(float), rtol=1e-13, atol=0.0).all(axis=1)
    return [*ranking[same].itertuples()]
