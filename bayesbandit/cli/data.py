"""The data sets of `bayesbandit compare`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bayesbandit import environments as rooms
from bayesbandit.cli.options import said_of
from bayesbandit.tables.files import read, stem_of
from bayesbandit.tables.role_names import DEFAULTS

SIGNS_OF_A_LOG = {*DEFAULTS["reward"], *DEFAULTS["propensity"]}  # columns that a data set has not


def data_sets(
    data: Sequence[str],
    csv: Path | None,
    target: str | None,
    openml: Sequence[str],
    columns: Mapping[str, Sequence[str]],
    form: Mapping[str, str | None],
) -> list[Any]:
    """Return the data sets that a command line names; without names, the bundled ones.

    data: bundled sets. target: the column of the class. columns: those of --csv and
    --openml by role. form: sep, decimal and dates, by which --csv is read.
    Raise ValueError for options that do not fit together.
    """
    choices = {"drop": columns["drop"], "keep": columns["context"]}
    if csv is None:
        for option, value in {"target": target, **form}.items():
            if value is not None:
                raise ValueError(f"--{option} {value} needs --csv, the file that it is about")
        if columns["reward"] or (not openml and any(columns.values())):
            raise ValueError(f"{said_of(columns)} needs --csv or --openml, whose column it is")
    sets: list[Any] = []
    for name in data:
        if Path(name).is_file():
            raise ValueError(f"--data {name} is a file: --csv {name} reads it")
        sets.append(rooms.bundled(name))
    if csv is not None:
        sets.append(_of_file(csv, target, columns["reward"], choices, form))
    sets += [rooms.openml(name, **choices) for name in openml]
    return sets or [rooms.bundled(name) for name in rooms.BUNDLED]


def _of_file(
    csv: Path,
    target: str | None,
    rewards: Sequence[str],
    choices: Mapping[str, Sequence[str]],
    form: Mapping[str, str | None],
) -> Any:
    """Return the data set of a file, with a class to predict or what each arm pays.

    Raise ValueError for the log of a bandit, which lacks the rewards of the arms not chosen.
    """
    if bool(target) == bool(rewards):
        raise ValueError(
            "--csv needs --target, the column to predict, or --column reward=NAME for each arm"
        )
    texts = [target] if target else []
    table = read(csv, text=texts, levels=(), **form)
    named = {*texts, *rewards, *choices["drop"], *choices["keep"]}
    if signs := [str(name) for name in table if name in SIGNS_OF_A_LOG and name not in named]:
        raise ValueError(
            f"{csv} looks like the log of a bandit, by its columns {', '.join(signs)}: "
            f"`bayesbandit evaluate {csv}` says what policies would have earned. If it is a data "
            f"set, --column context={signs[-1]} uses such a column"
        )
    name = stem_of(csv)
    if target:
        return rooms.from_frame(table, target, name, drop=choices["drop"], keep=choices["keep"])
    return rooms.KnownRewards(table, rewards, name, **choices)
