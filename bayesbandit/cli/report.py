"""`bayesbandit report`: a living bandit on one page, by its log."""

from __future__ import annotations

import platform
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayesbandit.cli.output import check_file, clear_errors, counted, png, say
from bayesbandit.cli.serving import LogUrl, begun_log
from bayesbandit.runtime.files import replacing

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from bayesbandit.ope import Log
    from bayesbandit.store.log import DecisionLog

MAX_ARMS_SHOWN = 6  # that are drawn, those most taken; the others are one line
DRIFT_ERROR_RATE = 0.01  # the chance of an alarm where nothing has changed
LAG_TABLE = "Hours from decision to reward"
QUANTILES = {"median": 0.5, "90%": 0.9, "99%": 0.99, "largest": 1.0}


def report(
    log: LogUrl,
    out: Annotated[Path, typer.Option(help="The page, a file.")] = Path("report.html"),
    since: Annotated[
        str | None, typer.Option(help='Decisions from then on, as "2026-11-01"; UTC.')
    ] = None,
) -> None:
    """How is the bandit doing? One page: what it decides and earns, what is late, what has changed.

    Decisions and rewards a day, arms' shares, mean reward by week, open decisions, lags, and
    whether rewards have changed. `bayesbandit evaluate` says what other policies would have earned.
    """
    with clear_errors():
        check_file(out)
        with begun_log(log) as opened:
            tables, figures, answer = watch(opened, since)
            begun = opened.ledger.begun()
            record = {
                "log": opened.ledger.database.shown,
                "since": since,
                "counts": opened.counts(), "bandit": begun.policy,
                "arms at the beginning": begun.arms,
                "bayesbandit": version("bayesbandit"), "python": platform.python_version(),
            }  # fmt: skip
        from bayesbandit.evaluation.page import page

        pictures = {name: (figure.get_suptitle(), png(figure)) for name, figure in figures.items()}
        with replacing(out) as beside:
            html = page("A bandit at work", answer, pictures, tables, record)
            beside.write_text(html, encoding="utf-8")
    say(answer)
    say(f"All of it is in {out}")


def watch(
    log: DecisionLog, since: str | None = None
) -> tuple[dict[str, pd.DataFrame], dict[str, Figure], str]:
    """Return the tables and pictures of a log by their titles and names, and what it comes to."""
    import pandas as pd

    from bayesbandit.cli import watching
    from bayesbandit.ope import Log
    from bayesbandit.plots import service as plots

    rows = watching.decisions_of(log, since)
    most = rows["arm"].value_counts().index[:MAX_ARMS_SHOWN].tolist()
    weeks = watching.by_week(rows)
    figures = {
        "counts": plots.daily(watching.by_day(rows), "a day", "Decisions and rewards a day"),
        "shares": plots.daily(
            watching.shares(rows, most), "share of decisions",
            "Arms' shares of a day's decisions", top=1.03,
        ),
    }  # fmt: skip
    tables = {
        "By week": weeks.assign(week=weeks["week"].dt.strftime("%Y-%m-%d")),
        "How decisions were closed": watching.closed(rows),
    }
    answer = verdict(rows)
    lags = rows["lag"].dropna().clip(lower=0.0)  # clocks may differ
    if len(lags):
        quantiles = {name: [lags.quantile(q)] for name, q in QUANTILES.items()}
        tables[LAG_TABLE] = pd.DataFrame({"rewards": [len(lags)], **quantiles})
    if rows["reward"].count() > 1:
        answer += changed(Log.of(log, since=since))
    return tables, figures, answer


def verdict(rows: pd.DataFrame) -> str:
    """Return what a log comes to, in a sentence."""
    first, last = (f"{at:%Y-%m-%d}" for at in (rows["decided_at"].min(), rows["decided_at"].max()))
    span = f"on {first}" if first == last else f"from {first} to {last}"
    return (
        f"{counted(len(rows), 'decision')} {span} (UTC), "
        f"{rows['lag'].count():,} with a reward that came, {rows['is_open'].sum():,} open."
    )


def changed(data: Log) -> str:
    """Return a sentence on whether rewards follow one law."""
    import numpy as np

    from bayesbandit.beliefs.drift_test import e_process

    given = ~np.isnan(data.reward)
    at = e_process(data.x[given], data.arm[given], data.reward[given], DRIFT_ERROR_RATE).at
    if at is None:
        return " Nothing says that the rewards have changed."
    return (
        f" The rewards have changed: the evidence passed {1 / DRIFT_ERROR_RATE:,.0f} at reward "
        f"{at + 1:,}. "
        "Where nothing has changed, and mean rewards are near linear in the contexts, that happens "
        "by chance in one log of as many."
    )
