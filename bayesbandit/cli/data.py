"""The data sets of `bayesbandit compare`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesbandit import environments as rooms
from bayesbandit.cli.options import said_of
from bayesbandit.tables.files import read, stem_of
from bayesbandit.tables.role_names import signs_of_a_log

if TYPE_CHECKING:
    import pandas as pd


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
    own = [f"--target {target}"] if target is not None else []
    own += [f"--{option} {value}" for option, value in form.items() if value is not None]
    rewards = {role: columns[role] for role in ("reward", "cost") if columns[role]}
    own += [said_of(rewards)] if rewards else []
    if csv is None and own:
        raise ValueError(f"{own[0]} needs --csv, the file that it is about")
    choices = {"drop": columns["drop"], "keep": columns["context"]}
    if csv is None and not openml and any(choices.values()):
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
    """Return the data set of a file, with a class to predict or what each arm pays."""
    if (target is not None) + len(rewards) != 1:
        asked = [*(["--target"] if target else []), *(f"--column {role}=…" for role in rewards)]
        raise ValueError(
            "--csv needs --target, the column to predict, or --column reward=NAME or cost=NAME for "
            "each arm" + (f"; got {' and '.join(asked)}" if asked else "")
        )
    texts = [] if target is None else [target]
    table = read(csv, text=texts, **form)
    name = stem_of(csv)
    named = {*texts, *choices["drop"], *choices["keep"]}
    named.update(*rewards.values())
    classes = table[target].dropna().unique() if target in table else ()
    signs = [sign for sign in signs_of_a_log(table.columns, classes) if sign not in named]
    if signs:
        kept = " ".join(f"--column context={sign}" for sign in signs)
        raise ValueError(
            _is_log(csv, f"by its columns {', '.join(map(str, signs))}", target)
            + f". If it is a data set, {kept} uses these columns"
        )
    if target is not None:
        return rooms.from_frame(table, target, name, **choices)
    rewarded, costs = rewards.get("reward", ()), rewards.get("cost", ())
    return rooms.KnownRewards(table, rewarded, name, costs=costs, **choices)


def _is_log(path: Path, why: str, target: str | None) -> str:
    """Return the sentence that sends a log to `evaluate`.

    A log does not have the rewards of the other arms, which `compare` needs.
    """
    arm = "" if target is None else f" --column arm={target}"
    return (
        f"{path} looks like the log of a bandit, {why}: `bayesbandit evaluate {path}` says what "
        f"policies would have earned (with{arm} --column reward=… --column propensity=…, where the "
        "names do not tell)"
    )


def columns_by_title(sets: Sequence[Any]) -> dict[str, pd.DataFrame]:
    """Return a table for each data set, by title, of how its columns are used."""
    return {f"{data.name}: what became of its columns": data.encoder.summary() for data in sets}
