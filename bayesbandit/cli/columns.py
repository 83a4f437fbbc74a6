"""The option --column ROLE=COLUMN of the commands that read a log, and former spellings of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from bayesbandit.cli.report import warn
from bayesbandit.tables.role_names import PROBABILITY, ROLES

Column = Annotated[
    list[str] | None,
    typer.Option(
        help="ROLE=COLUMN, as reward=clicked: the column of a role, where its name does not tell. "
        f"Roles are {', '.join(ROLES)}, and {PROBABILITY}ARM for each arm. May be repeated."
    ),
]
Drop = Annotated[list[str] | None, typer.Option(help="A column to leave out. May be repeated.")]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        help="A column that is a context although its name is that of a role, or it looks like "
        "dates or an id. May be repeated."
    ),
]
Sep = Annotated[
    str | None,
    typer.Option(help="The separator of a CSV file, as ';'. Default: the one that fits."),
]
Decimal = Annotated[
    str | None, typer.Option(help="The decimal mark of a CSV file, '.' or ','. Default: '.'.")
]
Dates = Annotated[str | None, typer.Option(help="The format of a CSV file's dates, as '%d/%m/%Y'.")]
Errors = Annotated[
    str, typer.Option(help='What becomes of an odd line of vw --dsjson: "raise", or "skip" it.')
]
FORMER = ("--arm", "--reward", "--propensity", "--time", "--batch")  # now --column ROLE=COLUMN


def columns_of(texts: Sequence[str] | None) -> dict[str, Any]:
    """Return the columns that --column names, as `bb.ope.read_log` takes them."""
    found: dict[str, Any] = {}
    each: dict[str | int, str] = {}
    for text in texts or ():
        role, equals, column = text.partition("=")
        if not equals or not column:
            raise ValueError(f"--column takes ROLE=COLUMN, as reward=clicked; got {text!r}")
        arm = role.removeprefix(PROBABILITY)
        if role not in ROLES and (arm == role or not arm):
            raise ValueError(
                f"--column: a role is one of {', '.join(ROLES)}, {PROBABILITY}ARM; got {role!r}"
            )
        if role in found or (arm != role and _name(arm) in each):
            raise ValueError(f"--column takes each role once; got {', '.join(texts or ())}")
        if arm == role:
            found[role] = column
        else:
            each[_name(arm)] = column
    return found | ({"probabilities": each} if each else {})


def _name(text: str) -> str | int:
    return int(text) if text.isdecimal() else text


class FormerSpellings(TyperGroup):
    """Commands that take the former spellings of the options for columns, too."""

    def resolve_command(self, context: Any, args: list[str]) -> Any:
        """Return the command of a command line, and its arguments."""
        command, *rest = args or [""]
        if command == "learn" and any(text.partition("=")[0] == "--data" for text in rest):
            warn("`learn --data FILES` is now called `train FILES`")
            args = ["train", *_renamed(rest)]
        elif command == "evaluate":
            args = [command, *_renamed(rest)]
        return super().resolve_command(context, args)


def _renamed(args: Sequence[str]) -> list[str]:
    """Return arguments with the present names of options."""
    found, rest = list[str](), iter(args)
    for text in rest:
        option, equals, value = text.partition("=")
        if option in (*FORMER, "--probability-of", "--data"):
            value = value if equals else next(rest, "")
        if option in FORMER:
            found += ["--column", f"{option.removeprefix('--')}={value}"]
        elif option == "--probability-of":
            found += ["--column", f"{PROBABILITY}{value}"]
        elif option == "--data":
            found.append(value)
        else:
            found.append(text.replace("--preset", "--bandit", 1) if option == "--preset" else text)
    return found
