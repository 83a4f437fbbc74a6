"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Protocol, runtime_checkable

import typer
from typer.core import TyperGroup

from bayesbandit.runtime.addresses import hidden
from bayesbandit.tables.role_names import COLUMN_ROLES, DEFAULTS, PROBABILITY_PREFIX

DATA_PANEL = "Data"
BANDITS_PANEL = "Bandits"
ROLES_OF_SEVERAL_COLUMNS = ("drop", "context")  # roles that several columns may have
ROLES_OF_LOGS = (*COLUMN_ROLES, *ROLES_OF_SEVERAL_COLUMNS)
ROLES_OF_DATA_SETS = ("reward", *ROLES_OF_SEVERAL_COLUMNS)
USUAL_NAMES = "; ".join(" or ".join(names) for names in DEFAULTS.values())
BESIDE_ROLES = (
    "drop leaves a column out; context uses one although its name or its values speak against it."
)

LogColumn = Annotated[
    list[str] | None,
    typer.Option(
        rich_help_panel=DATA_PANEL,
        metavar="ROLE=NAME",
        help="The column of a role, where its name does not tell: reward=clicked. Roles are "
        f"{', '.join(COLUMN_ROLES)}, and {PROBABILITY_PREFIX}ARM for each arm; {BESIDE_ROLES} "
        f"Without it these names tell the role: {USUAL_NAMES}; and probability_ARM or p_ARM, if "
        "each chosen arm has one.",
    ),
]
DataColumn = Annotated[
    list[str] | None,
    typer.Option(
        rich_help_panel=DATA_PANEL,
        metavar="ROLE=NAME",
        help="A column of --csv or --openml: reward=mail, what the arm “mail” pays, one for each "
        f"arm; {BESIDE_ROLES}",
    ),
]
Sep = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=DATA_PANEL,
        help="The separator of a CSV file, as ';'. Default: a comma; a tab for .tsv.",
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=DATA_PANEL,
        help="The decimal mark of a CSV file, '.' or ','. Default: '.'.",
    ),
]
Dates = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=DATA_PANEL,
        help="The format of a CSV file's dates, as '%d/%m/%Y'.",
    ),
]
Jobs = Annotated[int, typer.Option(help="Processes to use; -1: all cores.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything.")]
Out = Annotated[
    Path,
    typer.Option(help="Folder for results; a run found there goes on."),
]


@runtime_checkable
class UsageError(Protocol):
    """An error of a command line."""

    message: str


class Commands(TyperGroup):
    """The commands. A usage error quotes what was typed, but no password of a database."""

    def invoke(self, ctx: Any) -> Any:
        """Invoke the command that the context names."""
        try:
            return super().invoke(ctx)
        except Exception as error:  # of typer's own copy of click, or of click: by what they have
            if isinstance(error, UsageError):
                error.message = hidden(error.message)
            raise


def columns_of(texts: Sequence[str] | None) -> dict[str, Any]:
    """Return the columns of a log that --column names, as `bb.ope.read_log` takes them."""
    named = by_role(texts, ROLES_OF_LOGS, PROBABILITY_PREFIX)
    columns: dict[str, Any] = {"drop": named.pop("drop"), "keep": named.pop("context")}
    if any(len(names) > 1 for names in named.values()):
        raise ValueError(f"--column takes each role once; got {', '.join(texts or ())}")
    of_roles = {role: names[0] for role, names in named.items() if names}
    arms = {
        role: role.removeprefix(PROBABILITY_PREFIX) for role in of_roles if role not in COLUMN_ROLES
    }
    each = {int(arm) if arm.isdecimal() else arm: of_roles.pop(role) for role, arm in arms.items()}
    return columns | of_roles | ({"probabilities": each} if each else {})


def by_role(
    texts: Sequence[str] | None, roles: Sequence[str], prefix: str | None = None
) -> dict[str, list[str]]:
    """Return the columns that --column names, by role; also by a role that begins with a prefix."""
    columns: dict[str, list[str]] = {role: [] for role in roles}
    for text in texts or ():
        role, equals, column = text.partition("=")
        if not equals or not column:
            raise ValueError(f"--column takes ROLE=NAME, as reward=clicked; got {text!r}")
        if role not in roles and not (prefix and role.startswith(prefix) and role != prefix):
            allowed = [*roles, f"{prefix}ARM"] if prefix else roles
            raise ValueError(f"--column: a role is one of {', '.join(allowed)}; got {role!r}")
        columns.setdefault(role, []).append(column)
    return columns


def said_of(columns: Mapping[str, Sequence[str]]) -> str:
    """Return the first of some columns as --column names it."""
    return next(f"--column {role}={names[0]}" for role, names in columns.items() if names)
