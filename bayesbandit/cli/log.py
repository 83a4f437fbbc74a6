"""The commands `bayesbandit log …`, about the log of a service."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from bayesbandit.cli.output import check_file, clear_errors, counted, say, show
from bayesbandit.cli.serving import LogUrl, begun_log
from bayesbandit.runtime.files import replacing

log = typer.Typer(
    name="log",
    no_args_is_help=True,
    help="Check the log of a service, copy it, and let go what it need not keep.",
)


@log.command()
def verify(
    log: LogUrl,
) -> None:
    """Compute every version again and make its decisions again; list what differs, or exit by 0."""
    with clear_errors(), begun_log(log) as opened:
        violations = opened.verify()
    if len(violations):
        show(violations[["kind", "id", "said"]], "Violations")
        raise typer.Exit(1)
    say("The log is whole.")


@log.command()
def backup(
    log: LogUrl,
    out: Annotated[Path, typer.Argument(help="The copy, a new file of SQLite.")],
) -> None:
    """Copy the whole database, as it is at one moment, to a file. Processes may go on meanwhile."""
    with clear_errors(), begun_log(log) as opened:
        check_file(out)
        opened.backup(out)
    say(f"All of it is in {out}")


@log.command()
def prune(
    log: LogUrl,
) -> None:
    """Store a checkpoint, and delete the closed decisions and the versions that are older.

    `replay` and `verify` begin at the checkpoint from then on. Make a backup or an export first.
    """
    with clear_errors(), begun_log(log) as opened:
        number = opened.checkpoint()
        gone = opened.prune()
    say(f"Version {number} is a checkpoint; {counted(gone, 'decision')} before it deleted")


@log.command()
def erase(
    log: LogUrl,
    ids: Annotated[list[str], typer.Argument(help="Ids of decisions.")],
) -> None:
    """Erase the contexts of decisions, as of a person who asks for it.

    The replay passes over the versions that learned them. `prune` deletes older snapshots.
    """
    with clear_errors(), begun_log(log) as opened:
        erased = opened.erase(ids)
    say(f"{counted(erased, 'context')} of {len(ids)} erased")


@log.command()
def export(
    log: LogUrl,
    out: Annotated[Path, typer.Argument(help="A file: .csv, or .parquet.")],
) -> None:
    """Write a row for each decision to a CSV or Parquet file.

    Lists are JSON in a CSV file, with null where a number is infinite or missing.

    In a Parquet file arms are text if some are text and some numbers.
    """
    with clear_errors():
        if out.suffix not in (".csv", ".parquet"):
            raise ValueError(f"the file must end in .csv or .parquet; got {str(out)!r}")
        check_file(out)
        with begun_log(log) as opened:
            frame = opened.frame()
        of_csv = out.suffix == ".csv"
        if not of_csv and len({type(arm) for arms in frame["arms"] for arm in arms}) > 1:
            frame["arm"] = frame["arm"].map(str)  # a column of Parquet has one type
            frame["arms"] = [[*map(str, arms)] for arms in frame["arms"]]
        for column in ("arms", "probabilities", "mean", "sd", "x"):
            lists = map(list, frame[column])
            frame[column] = [strict_json(one) if of_csv else one for one in lists]
        with replacing(out) as beside:
            write = frame.to_csv if of_csv else frame.to_parquet
            write(beside, index=False)
    say(f"{counted(len(frame), 'decision')} in {out}")


def strict_json(values: list[object]) -> str:
    """Return a list as JSON, in which a number that is not finite is null."""
    from bayesbandit.checks import json_text

    text = json_text(values)
    return json.dumps(json.loads(text, parse_constant=lambda constant: None))
