"""`bayesbandit report`: a living bandit on one page, by its log."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
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
DAYS_PER_YEAR = 366
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
    from bayesbandit.service.watching import Watch, most_taken
    from bayesbandit.store.reading import chunks
    from bayesbandit.store.rows import moment

    log.ledger.begun()
    begin, end = moment(since, "since"), moment(until, "until")
    most = most_taken(log.ledger, begin, end, MAX_ARMS_SHOWN)
    seen = Watch(log.ledger, most)
    have_features = False  # the arms

    def watched() -> Iterator[Chunk]:
        nonlocal have_features
        for chunk in chunks(log.ledger, begin, end, AT_ONCE):
            seen.add(chunk)
            have_features = chunk.decisions[0].x is not None
            yield chunk

    parts, is_open = of_chunks(log, watched())
    if not seen.n:
        raise ValueError(f"{log} has no decision in this time")
    never = np.isnan(parts["reward"]) & ~is_open
    evidence = EProcess()
    data = None
    if len(is_open) > 1 and not np.isnan(parts["reward"]).all():
        data = Log.made(parts)
        there = ~np.isnan(data.reward)
        arm = np.zeros(len(data)) if have_features else data.arm
        evidence.add(data.x[there], arm[there], data.reward[there])
    weeks_table = by_week(seen, data, never)
    figures = {
        "counts": plots.daily(by_day(seen), "a day", "Decisions and rewards a day"),
        "shares": plots.daily(
            shares(seen), "share of decisions", "Arms' shares of a day's decisions", top=1.03
        ),
        "values": plots.weekly_values(weeks_table),
    }
    unit = unit_of(seen.lags.quantile(0.5)) if seen.lags.n else "hours"
    if seen.lags.n:
        hours, share = seen.lags.curve()
        figures["lags"] = plots.reward_lags(hours / HOURS_IN[unit], share, unit)
    values = [{"policy": LOGGED_POLICY, **value(data, None, never)}]
    values += [{"policy": str(arm), **value(data, arm, never)} for arm in most]
    tables = {
        "By week": weeks_table.assign(week=weeks_table["week"].dt.strftime("%Y-%m-%d")),
        "What each arm alone would have earned": pd.DataFrame(values),
        "How decisions were closed": closed(seen),
        f"{unit.capitalize()} from decision to reward": delays(seen, HOURS_IN[unit]),
        "Contexts against the first 1,000": seen.drift.table(),
    }
    found = {title: table for title, table in tables.items() if len(table)}
    return found, figures, verdict(seen, weeks_table) + changed(evidence)


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


def _dates(days: Iterable[int]) -> pd.DatetimeIndex:
    """Return days since 1970 as dates."""
    import numpy as np
    import pandas as pd

    return pd.DatetimeIndex(np.array([*days], dtype="datetime64[D]"))


def by_day(seen: Watch) -> pd.DataFrame:
    """Return decisions by their day, and rewards by the day on which they were observed."""
    import pandas as pd

    # clocks may be wrong
    first = min(seen.decided)
    last = max(seen.decided) + DAYS_PER_YEAR
    days = sorted({*seen.decided, *(day for day in seen.rewarded if first <= day <= last)})
    counts = {
        "decisions": [seen.decided[day] for day in days],
        "rewards": [seen.rewarded[day] for day in days],
    }
    table = pd.DataFrame(counts, index=_dates(days), dtype=float)
    return table.asfreq("D").fillna(0.0)


def shares(seen: Watch) -> pd.DataFrame:
    """Return the arms' shares by day, those most taken first; the others are one."""
    import pandas as pd

    from bayesbandit.service.watching import OTHER_LEVELS

    days = sorted(seen.decided)
    names = [*dict.fromkeys([*seen.most.values(), OTHER_LEVELS])]
    table = pd.DataFrame(
        {name: [seen.taken[day, name] / seen.decided[day] for day in days] for name in names},
        index=_dates(days),
    )
    return table.loc[:, table.any()]


def by_week(seen: Watch, data: Log | None, never: np.ndarray) -> pd.DataFrame:
    """Return a row a week, from Monday: decisions, their mean reward with its interval, and what
    there is to watch. A row without an interval says why."""
    import numpy as np
    import pandas as pd

    from bayesbandit.service.watching import week_of

    at = np.empty(0) if data is None else data.time
    assert at is not None
    weeks = week_of(np.round(at * 1e6).astype(np.int64))
    rows = []
    for week in sorted(seen.weeks):
        counts = seen.weeks[week]
        found = value(data, None, never, weeks == week)
        rows.append(
            {
                **{name: counts[name] for name in ("decisions", "rewards", "open")},
                "value": found["estimate"],
                **{name: found[name] for name in ("se", "low", "high")},
                "at_floor": counts["floor"] / counts["decisions"],
                "refused": found["refused"],
            }
        )
    table = pd.DataFrame(rows)
    table.insert(0, "week", _dates(sorted(seen.weeks)))
    return table


def closed(seen: Watch) -> pd.DataFrame:
    """Return how many decisions are open or were closed in which way, and how old they are."""
    import pandas as pd

    rows = [
        {
            "status": status,
            "decisions": n,
            "oldest_hours": (seen.last - oldest) / 3.6e9,
            "share": n / seen.n,
        }
        for status, (n, oldest) in sorted(seen.status.items())
    ]
    return pd.DataFrame(rows)


def delays(seen: Watch, unit: float) -> pd.DataFrame:
    """Return quantiles of the times after which rewards came, to 1%. unit: in hours."""
    import pandas as pd

    if not seen.lags.n:
        return pd.DataFrame()
    found = {name: [seen.lags.quantile(q) / unit] for name, q in QUANTILES.items()}
    return pd.DataFrame({"rewards": [seen.lags.n], **found})


def verdict(seen: Watch, weeks: pd.DataFrame) -> str:
    """Return what a log comes to, in sentences."""
    from bayesbandit.evaluation.text import HOURS_IN, unit_of

    days = [f"{datetime.fromtimestamp(at / 1e6, UTC):%Y-%m-%d}" for at in (seen.first, seen.last)]
    span = f"on {days[0]}" if days[0] == days[1] else f"from {days[0]} to {days[1]}"
    is_open = sum(week["open"] for week in seen.weeks.values())
    said = (
        f"{counted(seen.n, 'decision')} {span} (UTC), "
        f"{seen.lags.n:,} with a reward that came, {is_open:,} open."
    )
    if (known := weeks[weeks["low"].notna()]).size:
        row = known.iloc[-1]
        said += (
            f" In the week from {row['week']:%Y-%m-%d} a decision earned {row['value']:.4g} "
            f"[{row['low']:.4g}, {row['high']:.4g}]."
        )
    if seen.lags.n:
        hours = seen.lags.quantile(0.5)
        unit = unit_of(hours)
        said += f" Half of the rewards came within {hours / HOURS_IN[unit]:.3g} {unit}."
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
