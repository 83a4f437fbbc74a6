"""The data sets of `bayesbandit compare`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bayesbandit import environments as rooms
from bayesbandit.cli.options import said_of
from bayesbandit.tables.files import read, stem_of
from bayesbandit.tables.role_names import signs_of_a_log


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
    rewards = {role: columns[role] for role in ("reward", "cost") if columns[role]}
    choices = {"drop": columns["drop"], "keep": columns["context"]}
    if csv is None:
        settings = {"target": target, **form}
        for option, value in settings.items():
            if value is not None:
                raise ValueError(f"--{option} {value} needs --csv, the file that it is about")
        if rewards:
            raise ValueError(f"{said_of(rewards)} needs --csv, the file that it is about")
        if not openml and any(choices.values()):
            raise ValueError(f"{said_of(columns)} needs --csv or --openml, whose column it is")
    sets: list[Any] = []
    for name in data:
        if Path(name).is_file():
            raise ValueError(f"--data {name} is a file: --csv {name} reads it")
        sets.append(rooms.bundled(name))
    if csv is not None:
        sets.append(_of_file(csv, target, rewards, choices, form))
    sets += [rooms.openml(name, **choices) for name in openml]
    return sets or [rooms.bundled(name) for name in rooms.BUNDLED]


def _of_file(
    csv: Path,
    target: str | None,
    rewards: Mapping[str, Sequence[str]],
    choices: Mapping[str, Sequence[str]],
    form: Mapping[str, str | None],
) -> Any:
    """Return the data set of a file, with a class to predict or what each arm pays.

    Raise ValueError for the log of a bandit, which lacks the rewards of the arms not chosen.
    """
    options = [*(["--target"] if target else []), *(f"--column {role}=…" for role in rewards)]
    if len(options) != 1:
        raise ValueError(
            "--csv needs --target, the column to predict, or --column reward=NAME or cost=NAME for "
            "each arm" + (f"; got {' and '.join(options)}" if options else "")
        )
    texts = [target] if target else []
    table = read(csv, text=texts, **form)
    named = {name for each in (texts, *choices.values(), *rewards.values()) for name in each}
    classes = table[target].dropna().unique() if target in table else ()
    signs = [sign for sign in signs_of_a_log(table.columns, classes) if sign not in named]
    if signs:
        arm = f" --column arm={target}" if target else ""
        to_keep = " ".join(f"--column context={sign}" for sign in signs)
        raise ValueError(
            f"{csv} looks like the log of a bandit, by its columns {', '.join(map(str, signs))}: "
            f"`bayesbandit evaluate {csv}` says what policies would have earned (with{arm} "
            "--column reward=… --column propensity=…, where the names do not tell). If it is a "
            f"data set, {to_keep} uses these columns"
        )
    name = stem_of(csv)
    if target:
        return rooms.from_frame(table, target, name, **choices)
    rewarded, costs = rewards.get("reward", ()), rewards.get("cost", ())
    return rooms.KnownRewards(table, rewarded, name, costs=costs, **choices)
