"""`bayesbandit report`: a living bandit on one page, by its log."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from io import BytesIO
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayesbandit.cli.output import PNG_SOFTWARE, check_file, clear_errors, counted, say
from bayesbandit.cli.serving import BanditName, LogUrl, begun_log
from bayesbandit.runtime.files import replacing

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.figure import Figure

    from bayesbandit.beliefs.drift_test import EProcess
    from bayesbandit.checks import Name
    from bayesbandit.ope import Log
    from bayesbandit.service.watching import Watch
    from bayesbandit.store.log import DecisionLog
    from bayesbandit.store.reading import Chunk

MAX_ARMS_SHOWN = 6  # that are drawn and judged, those most taken; the others are one line
LOGGED_POLICY = "as decided"
DRIFT_ERROR_RATE = 0.01  # the chance of an alarm where nothing has changed
MAX_POINTS = 1000  # of a curve
SHORTEST_LAG = 1e-6  # that is drawn, since the axis is logarithmic
VALUE_COLUMNS = ("estimate", "se", "low", "high", "ess")
QUANTILES = {"median": 0.5, "90%": 0.9, "99%": 0.99, "largest": 1.0}


def report(
    log: LogUrl,
    name: BanditName = "default",
    out: Annotated[Path, typer.Option(help="The page, a file.")] = Path("report.html"),
    since: Annotated[
        str | None, typer.Option(help='Decisions from then on, as "2026-11-01"; UTC.')
    ] = None,
) -> None:
    """How is the bandit doing? One page: what it decides and earns, what is late, what has changed.

    Decisions and rewards a day, arms' shares, mean reward by week, what each arm alone would have
    earned, effective sample sizes, floors, open decisions, lags, and drift of contexts.
    """
    with clear_errors():
        check_file(out)
        with begun_log(log, name) as opened:
            tables, figures, answer = watch(opened, since)
            begun = opened.ledger.begun()
            record = {
                "log": opened.ledger.database.shown, "name": opened.name,
                "since": since,
                "counts": opened.counts(), "bandit": begun.policy,
                "arms at the beginning": begun.arms,
                "bayesbandit": version("bayesbandit"), "python": platform.python_version(),
            }  # fmt: skip
        from bayesbandit.evaluation.page import page

        pictures = {name: (figure.get_suptitle(), _png(figure)) for name, figure in figures.items()}
        with replacing(out) as beside:
            html = page("A bandit at work", answer, pictures, tables, record)
            beside.write_text(html, encoding="utf-8")
    say(answer)
    say(f"All of it is in {out}")


def watch(
    log: DecisionLog, since: str | None = None, until: str | None = None
) -> tuple[dict[str, pd.DataFrame], dict[str, Figure], str]:
    """Return the tables and pictures of a log by their titles and names, and what it comes to."""
    import numpy as np
    import pandas as pd

    from bayesbandit.beliefs.drift_test import EProcess
    from bayesbandit.evaluation.text import HOURS_IN, unit_of
    from bayesbandit.ope import Log
    from bayesbandit.ope.logs.stored import AT_ONCE, of_chunks
    from bayesbandit.plots import service as plots
    from bayesbandit.service.watching import Watch
    from bayesbandit.store.reading import chunks
    from bayesbandit.store.rows import to_microseconds

    seen = Watch(log.ledger.begun())
    have_features = False  # the arms

    def watched() -> Iterator[Chunk]:
        nonlocal have_features
        for chunk in chunks(
            log.ledger, to_microseconds(since, "since"), to_microseconds(until, "until"), AT_ONCE
        ):
            seen.add(chunk)
            have_features = chunk.decisions[0].x is not None
            yield chunk

    parts, is_open = of_chunks(log, watched())
    if not seen.parts:
        raise ValueError(f"{log} has no decision in this time")
    never = np.isnan(parts["reward"]) & ~is_open
    evidence = EProcess()
    data = None
    if len(is_open) > 1 and not np.isnan(parts["reward"]).all():
        data = Log.made(parts)
        there = ~np.isnan(data.reward)
        arm = np.zeros(len(data)) if have_features else data.arm
        evidence.add(data.x[there], arm[there], data.reward[there])
    most = seen.most_taken(MAX_ARMS_SHOWN)
    weeks_table = by_week(seen, data, never)
    figures = {
        "counts": plots.daily(seen.by_day(), "a day", "Decisions and rewards a day"),
        "shares": plots.daily(
            seen.shares(most), "share of decisions", "Arms' shares of a day's decisions", top=1.03
        ),
        "values": plots.weekly_values(weeks_table),
    }
    values = [{"policy": LOGGED_POLICY, **value(data, None, never)}]
    values += [{"policy": str(arm), **value(data, arm, never)} for arm in most]
    tables = {
        "By week": weeks_table.assign(week=weeks_table["week"].dt.strftime("%Y-%m-%d")),
        "What each arm alone would have earned": pd.DataFrame(values),
        "How decisions were closed": seen.closed(),
    }
    said = verdict(seen, weeks_table)
    lags = seen.rows["lag"].dropna().clip(lower=0.0)  # clocks may differ
    if len(lags):
        unit = unit_of(lags.median())
        late = lags / HOURS_IN[unit]
        quantiles = {name: [late.quantile(q)] for name, q in QUANTILES.items()}
        title = f"{unit.capitalize()} from decision to reward"
        tables[title] = pd.DataFrame({"rewards": [len(late)], **quantiles})
        share = np.linspace(0.0, 1.0, min(len(late), MAX_POINTS) + 1)[1:]
        times = late.clip(SHORTEST_LAG).quantile(share).to_numpy()
        figures["lags"] = plots.reward_lags(times, share, unit)
        said += f" Half of the rewards came within {late.median():.3g} {unit}."
    tables["Contexts against the first 1,000"] = seen.drift()
    found = {title: table for title, table in tables.items() if len(table)}
    return found, figures, said + changed(evidence)


def value(
    data: Log | None, arm: Name | None, never: np.ndarray, rows: np.ndarray | None = None
) -> dict[str, float | str]:
    """Return estimate, se, low, high, ess, n, and why there is no interval, or "".

    data: None if too little is known. arm: the policy that always chooses it; None: the mean
    reward, which needs no propensities. never: a mask (n,) of rewards that will not come. rows: a
    mask (n,) of the rounds; None: all. Only rounds before the first open reward count.
    """
    from bayesbandit.ope import estimate

    unknown: dict[str, float | str] = {**dict.fromkeys(VALUE_COLUMNS, nan), "n": 0}
    if data is None:
        return unknown | {"refused": "too few rewards are known"}
    some = never if rows is None else never[rows]
    if some.any():
        said = f"{some.sum()} of {len(some)} decisions have no reward, and will have none"
        return unknown | {"refused": said}
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


def by_week(seen: Watch, data: Log | None, never: np.ndarray) -> pd.DataFrame:
    """Return a row a week, from Monday: decisions, their mean reward with its interval, and what
    there is to watch. A row without an interval says why."""
    import numpy as np
    import pandas as pd

    from bayesbandit.service.watching import monday

    at = np.empty(0) if data is None else data.time
    assert at is not None
    weeks = monday(pd.Series(np.round(at * 1e6).astype("datetime64[us]"))).to_numpy()
    counts = seen.by_week()
    found = pd.DataFrame(
        [value(data, None, never, weeks == week) for week in counts.index.to_numpy()],
        index=counts.index,
    )
    values = found[["estimate", "se", "low", "high"]].rename(columns={"estimate": "value"})
    return (
        counts[["decisions", "rewards", "open"]]
        .join([values, counts["at_floor"], found["refused"]])
        .reset_index()
    )


def verdict(seen: Watch, weeks: pd.DataFrame) -> str:
    """Return what a log comes to, in sentences."""
    rows = seen.rows
    first, last = (f"{at:%Y-%m-%d}" for at in (rows["day"].min(), rows["day"].max()))
    span = f"on {first}" if first == last else f"from {first} to {last}"
    said = (
        f"{counted(len(rows), 'decision')} {span} (UTC), "
        f"{rows['lag'].count():,} with a reward that came, {rows['is_open'].sum():,} open."
    )
    if (known := weeks[weeks["low"].notna()]).size:
        row = known.iloc[-1]
        said += (
            f" In the week from {row['week']:%Y-%m-%d} a decision earned {row['value']:.4g} "
            f"[{row['low']:.4g}, {row['high']:.4g}]."
        )
    return said


def changed(evidence: EProcess) -> str:
    """Return a sentence on whether rewards follow one law; none where there are no rewards."""
    if not len(evidence.log_e):
        return ""
    at = evidence.test(DRIFT_ERROR_RATE).at
    if at is None:
        return " Nothing says that the rewards have changed."
    return (
        f" The rewards have changed: the evidence passed {1 / DRIFT_ERROR_RATE:,.0f} at reward "
        f"{at + 1:,}. "
        "That happens by chance in one log of as many."
    )


def _png(figure: Figure) -> bytes:
    file = BytesIO()
    figure.savefig(file, format="png", dpi=150, metadata={"Software": PNG_SOFTWARE})
    return file.getvalue()
