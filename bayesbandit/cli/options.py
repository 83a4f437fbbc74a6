"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Protocol, runtime_checkable

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from bayesbandit.runtime.addresses import hidden, shown
from bayesbandit.tables.role_names import DEFAULTS, PROBABILITY_PREFIX, ROLES

PANELS = {  # of the help, with their options
    "Data": ("data", "csv", "target", "openml", "column", "sep", "decimal", "dates"),
    "Bandits": ("bandit", "tune"),
    "Rewards, where a log begins": ("wait", "default_reward", "aggregate", "activation"),
}
ROLES_OF_SEVERAL_COLUMNS = ("drop", "context")  # roles that several columns may have
ROLES_OF_LOGS = (*ROLES, *ROLES_OF_SEVERAL_COLUMNS)
ROLES_OF_DATA_SETS = ("reward", "cost", *ROLES_OF_SEVERAL_COLUMNS)
USUAL_NAMES = "; ".join(" or ".join(names) for names in DEFAULTS.values())
BESIDE_ROLES = (
    "drop leaves a column out; context uses one although its name or its values speak against it."
)

LogColumn = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ROLE=NAME",
        help="The column of a role, where its name does not tell: reward=clicked. Roles are "
        f"{', '.join(ROLES)}, and {PROBABILITY_PREFIX}ARM for each arm; {BESIDE_ROLES} Without it "
        f"these names tell the role: {USUAL_NAMES}; and probability_ARM or p_ARM, if each chosen "
        "arm has one.",
    ),
]
DataColumn = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ROLE=NAME",
        help="A column of --csv or --openml: reward=mail, what the arm “mail” pays, one for each "
        f"arm; cost=mail, what it costs; {BESIDE_ROLES}",
    ),
]
Sep = Annotated[
    str | None,
    typer.Option(help="The separator of a CSV file, as ';'. Default: a comma; a tab for .tsv."),
]
Decimal = Annotated[
    str | None,
    typer.Option(help="The decimal mark of a CSV file, '.' or ','. Default: '.'."),
]
Dates = Annotated[
    str | None,
    typer.Option(help="The format of a CSV file's dates, as '%d/%m/%Y'."),
]
Jobs = Annotated[int, typer.Option(help="Processes to use; -1: all cores.")]
Out = Annotated[
    Path,
    typer.Option(help="Folder for results; a run found there goes on."),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything.")]


@runtime_checkable
class UsageError(Protocol):
    """An error of a command line."""

    message: str


class Command(TyperCommand):
    """A command whose help has panels."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        panels = {option: panel for panel, options in PANELS.items() for option in options}
        for one in self.params:
            if isinstance(one, TyperOption):
                one.rich_help_panel = panels.get(one.name or "")


class Commands(TyperGroup):
    """The commands. A usage error quotes what was typed, but no password of a database."""

    def invoke(self, ctx: Any) -> Any:
        """Invoke the command that the context names."""
        words = [*getattr(ctx, "_protected_args", ()), *ctx.args]
        try:
            return super().invoke(ctx)
        except Exception as error:  # of typer's own copy of click, or of click: by what they have
            if not isinstance(error, UsageError):
                raise
            message = error.message
            for word in filter(lambda word: "://" in word, words):
                message = message.replace(word, shown(word))
            error.message = hidden(message)
            raise


def columns_of(texts: Sequence[str] | None) -> dict[str, Any]:
    """Return the columns of a log that --column names, as `bb.ope.read_log` takes them."""
    found: dict[str, Any] = {}
    each: dict[str | int, str] = {}
    listed: dict[str, list[str]] = {role: [] for role in ROLES_OF_SEVERAL_COLUMNS}
    for role, column in _pairs(texts):
        arm = role.removeprefix(PROBABILITY_PREFIX)
        if role in found or (arm != role and _name(arm) in each):
            raise ValueError(f"--column takes each role once; got {', '.join(texts or ())}")
        if role in ROLES_OF_SEVERAL_COLUMNS:
            listed[role].append(column)
        elif role in ROLES:
            found[role] = column
        elif arm and arm != role:
            each[_name(arm)] = column
        else:
            raise ValueError(
                f"--column: a role is one of {', '.join(ROLES_OF_LOGS)}, {PROBABILITY_PREFIX}ARM; "
                f"got {role!r}"
            )
    found |= {"drop": listed["drop"], "keep": listed["context"]}
    return found | ({"probabilities": each} if each else {})


def columns_of_data_set(texts: Sequence[str] | None) -> dict[str, list[str]]:
    """Return the columns of a data set that --column names, by their roles."""
    found: dict[str, list[str]] = {role: [] for role in ROLES_OF_DATA_SETS}
    for role, column in _pairs(texts):
        if role not in found:
            raise ValueError(f"--column: a role is one of {', '.join(found)}; got {role!r}")
        found[role].append(column)
    return found


def said_of(columns: Mapping[str, Sequence[str]]) -> str:
    """Return the first of some columns as --column names it."""
    return next(f"--column {role}={names[0]}" for role, names in columns.items() if names)


def _pairs(texts: Sequence[str] | None) -> list[tuple[str, str]]:
    """Return the roles and names of --column."""
    pairs = []
    for text in texts or ():
        role, equals, column = text.partition("=")
        if not equals or not column:
            raise ValueError(f"--column takes ROLE=NAME, as reward=clicked; got {text!r}")
        pairs.append((role, column))
    return pairs


def _name(text: str) -> str | int:
    return int(text) if text.isdecimal() else text
