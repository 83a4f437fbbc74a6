"""`bayesbandit log`: check the log of a service, copy it, and let go what it need not keep."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bayesbandit.cli.report import clear_errors, counted, say, show
from bayesbandit.cli.serving import (
    BanditName,
    LogUrl,
    OwnBalance,
    OwnModel,
    OwnPolicy,
    begun_log,
    parts_of,
)

log = typer.Typer(name="log", no_args_is_help=True, help=__doc__)


@log.command()
def verify(
    log: LogUrl,
    name: BanditName = "default",
    policy: OwnPolicy = None,
    model: OwnModel = None,
    balance: OwnBalance = None,
) -> None:
    """Compute every version again and make its decisions again; list what differs, or exit by 0."""
    with clear_errors(), begun_log(log, name) as opened:
        found = opened.verify(**parts_of(policy, model, balance))
    if len(found):
        show(found[["kind", "id", "said"]], "Violations")
        raise typer.Exit(1)
    say("The log is whole.")


@log.command()
def backup(
    log: LogUrl,
    out: Annotated[Path, typer.Option(help="The copy, a new file of SQLite.")],
    name: BanditName = "default",
) -> None:
    """Copy the whole database, as it is at one moment, to a file. Processes may go on meanwhile."""
    with clear_errors(), begun_log(log, name) as opened:
        opened.backup(out)
    say(f"All of it is in {out}")


@log.command()
def prune(
    log: LogUrl,
    name: BanditName = "default",
    policy: OwnPolicy = None,
    model: OwnModel = None,
    balance: OwnBalance = None,
) -> None:
    """Store a checkpoint, and delete the closed decisions and the versions that are older.

    `replay` and `verify` begin at the checkpoint from then on. Make a backup or an export first.
    """
    with clear_errors(), begun_log(log, name) as opened:
        number = opened.checkpoint(**parts_of(policy, model, balance))
        gone = opened.prune()
    say(f"Version {number} is a checkpoint; {counted(gone, 'decision')} before it deleted")


@log.command()
def erase(
    log: LogUrl,
    ids: Annotated[list[str], typer.Argument(help="Ids of decisions.")],
    name: BanditName = "default",
    policy: OwnPolicy = None,
    model: OwnModel = None,
    balance: OwnBalance = None,
) -> None:
    """Erase the contexts of decisions, as of a person who asks for it.

    The replay passes over the versions that learned them. `prune` deletes older snapshots.
    """
    with clear_errors(), begun_log(log, name) as opened:
        erased = opened.erase(ids, **parts_of(policy, model, balance))
    say(f"{counted(erased, 'context')} of {len(ids)} erased")


@log.command()
def export(
    log: LogUrl,
    out: Annotated[Path, typer.Option(help="A file: .csv, or .parquet.")],
    name: BanditName = "default",
    since: Annotated[str | None, typer.Option(help="Decisions from then on; UTC.")] = None,
    until: Annotated[str | None, typer.Option(help="Decisions before then.")] = None,
) -> None:
    """Write a row for each decision to a file that `bayesbandit evaluate` reads."""
    with clear_errors():
        if out.suffix not in (".csv", ".parquet"):
            raise ValueError(f"--out must end in .csv or .parquet; got {str(out)!r}")
        with begun_log(log, name) as opened:
            whole = opened.frame(since, until)
        for column in ("arms", "probabilities", "mean", "sd", "x"):
            whole[column] = [list(one) for one in whole[column]]
        if out.suffix == ".csv":
            whole.to_csv(out, index=False)
        else:
            whole.to_parquet(out, index=False)
    say(f"{counted(len(whole), 'decision')} in {out}")
