"""`bayesbandit report`: a living bandit on one page, by its log."""

from __future__ import annotations

import platform
import warnings
from importlib.metadata import version
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayesbandit.cli.output import check_file, clear_errors, counted, png, say
from bayesbandit.cli.serving import LogUrl, begun_log
from bayesbandit.runtime.files import replacing

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.figure import Figure

    from bayesbandit.checks import Name
    from bayesbandit.ope import Log
    from bayesbandit.store.log import DecisionLog

MAX_ARMS_SHOWN = 6  # that are drawn and judged, those most taken; the others are one line
LOGGED_POLICY = "as decided"
DRIFT_ERROR_RATE = 0.01  # the chance of an alarm where nothing has changed
REWARDS_AT_ONCE = 10_000  # that the drift test takes in at a time
LAG_TABLE = "Hours from decision to reward"
VALUE_COLUMNS = ("estimate", "se", "low", "high", "ess")
QUANTILES = {"median": 0.5, "90%": 0.9, "99%": 0.99, "largest": 1.0}


def report(
    log: LogUrl,
    out: Annotated[Path, typer.Option(help="The page, a file.")] = Path("report.html"),
    since: Annotated[
        str | None, typer.Option(help='Decisions from then on, as "2026-11-01"; UTC.')
    ] = None,
) -> None:
    """How is the bandit doing? One page: what it decides and earns, what is late, what has changed.

    Decisions and rewards a day, arms' shares, mean reward by week, what each arm alone would have
    earned, effective sample sizes, open decisions, lags, and whether rewards have changed.
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
    reward = rows["reward"][rows["counts"]]
    data = Log.of(log, since=since) if len(reward) > 1 and reward.notna().any() else None
    most = rows["arm"].value_counts().index[:MAX_ARMS_SHOWN].tolist()
    weeks = by_week(rows, data)
    figures = {
        "counts": plots.daily(watching.by_day(rows), "a day", "Decisions and rewards a day"),
        "shares": plots.daily(
            watching.shares(rows, most), "share of decisions",
            "Arms' shares of a day's decisions", top=1.03,
        ),
        "values": plots.weekly_values(weeks),
    }  # fmt: skip
    lost = int(rows["lost"].sum())
    values = [
        {"policy": LOGGED_POLICY if arm is None else str(arm), **value(data, arm, lost)}
        for arm in (None, *most)
    ]
    tables = {
        "By week": weeks.assign(week=weeks["week"].dt.strftime("%Y-%m-%d")),
        "What each arm alone would have earned": pd.DataFrame(values),
        "How decisions were closed": watching.closed(rows),
    }
    answer = verdict(rows, weeks)
    lags = rows["lag"].dropna().clip(lower=0.0)  # clocks may differ
    if len(lags):
        quantiles = {name: [lags.quantile(q)] for name, q in QUANTILES.items()}
        tables[LAG_TABLE] = pd.DataFrame({"rewards": [len(lags)], **quantiles})
        half = pd.Timedelta(hours=lags.median()).round("ms")
        minute = pd.Timedelta(minutes=1)
        within = half if half >= minute else f"{half.total_seconds():g} seconds"
        answer += f" Half of the rewards came within {within}."
    if data is not None:
        answer += changed(data)
    return tables, figures, answer


def value(
    data: Log | None, arm: Name | None, lost: int, rows: np.ndarray | None = None
) -> dict[str, float | str]:
    """Return estimate, se, low, high, ess, n, and why there is no interval, or "".

    data: None if too little is known. arm: the policy that always chooses it; None: the mean
    reward, which needs no propensities. lost: how many rewards will not come. rows: a mask (n,) of
    the rounds; None: all. Only rounds before the first open reward count.
    """
    from bayesbandit.ope import estimate

    unknown: dict[str, float | str] = {**dict.fromkeys(VALUE_COLUMNS, nan), "n": 0}
    if data is None:
        return unknown | {"refused": "too few rewards are known"}
    if lost:
        return unknown | {"refused": f"{counted(lost, 'decision')} will have no reward"}
    try:
        with warnings.catch_warnings(action="ignore"):
            part = data if rows is None else data[rows]
            one = estimate(part, arm, missing="open", force=arm is None)
    except ValueError as error:
        return unknown | {"refused": str(error)}
    return {
        "estimate": one.value, "se": one.se, "low": one.low, "high": one.high, "ess": one.ess,
        "n": one.n, "refused": one.refused,
    }  # fmt: skip


def by_week(rows: pd.DataFrame, data: Log | None) -> pd.DataFrame:
    """Return a row a week, from Monday: decisions, their mean reward with its interval, and what
    there is to watch. A row without an interval says why."""
    import numpy as np
    import pandas as pd

    from bayesbandit.cli import watching

    at = np.empty(0) if data is None or data.time is None else data.time
    weeks = watching.monday(pd.Series(np.round(at * 1e6).astype("datetime64[us]"))).to_numpy()
    counts = watching.by_week(rows)
    lost = zip(counts.index.to_numpy(), counts.pop("lost").tolist(), strict=True)
    estimates = [value(data, None, n, weeks == week) for week, n in lost]
    values = pd.DataFrame(estimates, index=counts.index).rename(columns={"estimate": "value"})
    return counts.join(values[["value", "se", "low", "high", "refused"]]).reset_index()


def verdict(rows: pd.DataFrame, weeks: pd.DataFrame) -> str:
    """Return what a log comes to, in sentences."""
    first, last = (f"{at:%Y-%m-%d}" for at in (rows["decided_at"].min(), rows["decided_at"].max()))
    span = f"on {first}" if first == last else f"from {first} to {last}"
    sentence = (
        f"{counted(len(rows), 'decision')} {span} (UTC), "
        f"{rows['lag'].count():,} with a reward that came, {rows['is_open'].sum():,} open."
    )
    if (with_interval := weeks[weeks["low"].notna()]).size:
        row = with_interval.iloc[-1]
        sentence += (
            f" In the week from {row['week']:%Y-%m-%d} a decision earned {row['value']:.4g} "
            f"[{row['low']:.4g}, {row['high']:.4g}]."
        )
    return sentence


def changed(data: Log) -> str:
    """Return a sentence on whether rewards follow one law."""
    import numpy as np

    from bayesbandit.beliefs.drift_test import EProcess

    evidence = EProcess()
    rewarded = np.flatnonzero(~np.isnan(data.reward))
    names = data.arm
    for part in np.split(rewarded, range(REWARDS_AT_ONCE, len(rewarded), REWARDS_AT_ONCE)):
        evidence.add(data.x[part], names[part], data.reward[part])
    at = evidence.test(DRIFT_ERROR_RATE).at
    if at is None:
        return " Nothing says that the rewards have changed."
    return (
        f" The rewards have changed: the evidence passed {1 / DRIFT_ERROR_RATE:,.0f} at reward "
        f"{at + 1:,}. "
        "That happens by chance in one log of as many."
    )
