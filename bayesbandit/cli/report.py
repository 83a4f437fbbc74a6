"""`bayesbandit report`: a living bandit on one page, by its log."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayesbandit.cli.output import MAKER, check_file, clear_errors, counted, say
from bayesbandit.cli.serving import BanditName, LogUrl, begun_log
from bayesbandit.runtime.files import replacing

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from bayesbandit.beliefs.drift_test import EProcess
    from bayesbandit.ope.pooled import ArmValue, MeanReward
    from bayesbandit.service.watching import Watch
    from bayesbandit.store.log import DecisionLog

MAX_ARMS_SHOWN = 6  # that are drawn and judged, those most taken; the others are one line
LOGGED = "as decided"
DRIFT_ERROR_RATE = 0.01  # the chance of an alarm where nothing has changed
YEAR = 366  # days
HYPHEN = "\u2011"  # at which no line ends
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
            begun = opened.ledger.beginning() or {}
            record = {
                "log": opened.ledger.database.shown, "name": opened.name,
                "since": since,
                "counts": opened.counts(), "bandit": begun["policy"],
                "arms at the beginning": begun["arms"],
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
    """Return the tables and pictures of a log by their titles and names, and what it comes to.

    The log is read once, in parts: memory does not grow with it.
    """
    import numpy as np

    from bayesbandit import plots
    from bayesbandit.beliefs.drift_test import EProcess
    from bayesbandit.evaluation.text import HOURS_IN, unit_of
    from bayesbandit.ope.pooled import ArmValue, MeanReward, parts
    from bayesbandit.service.watching import Watch, most_taken, week_of
    from bayesbandit.store.rows import moment

    if log.ledger.settings() is None:
        raise log.ledger.no_bandit()
    most = most_taken(log.ledger, moment(since, "since"), moment(until, "until"), MAX_ARMS_SHOWN)
    seen = Watch(log.ledger, most)
    everything = MeanReward()
    weekly: dict[int, MeanReward] = {}
    values = [ArmValue(arm) for arm in most]
    evidence = EProcess()
    for part in parts(log, since, until):
        seen.add(part.chunk)
        everything.add(part.reward, part.is_open)
        if part.log is not None:
            data = part.log
            there = ~np.isnan(part.log.reward)
            one_model = part.chunk[0][0].x is not None  # arms have features
            arm = np.zeros(len(there)) if one_model else data.arm
            evidence.add(data.x[there], arm[there], data.reward[there])
        weeks = week_of(part.at)
        for week in np.unique(weeks).tolist():
            own = weeks == week
            weekly.setdefault(week, MeanReward()).add(part.reward[own], part.is_open[own])
        with warnings.catch_warnings(action="ignore"):
            for value in values:
                value.add(part.log, part.reward, part.is_open)
    if not seen.n:
        raise ValueError(f"{log} has no decision in this time")
    weeks_table = by_week(seen, weekly)
    figures = {
        "counts": plots.daily_counts(by_day(seen)),
        "shares": plots.arm_shares(shares(seen)),
        "values": plots.weekly_values(weeks_table),
    }
    unit = unit_of(seen.lags.quantile(0.5)) if seen.lags.n else "hours"
    if seen.lags.n:
        hours, share = seen.lags.curve()
        figures["lags"] = plots.reward_lags(hours / HOURS_IN[unit], share, unit)
    tables = {
        "By week": weeks_table.assign(
            week=weeks_table["week"].dt.strftime("%Y-%m-%d").str.replace("-", HYPHEN)
        ),
        "What each arm alone would have earned": of_arms(everything, values),
        "How decisions were closed": closed(seen),
        f"{unit.capitalize()} from decision to reward": delays(seen, HOURS_IN[unit]),
        "Contexts against the first decisions": seen.drift.table(),
    }
    found = {title: table for title, table in tables.items() if len(table)}
    return found, figures, verdict(seen, weeks_table) + changed(evidence)


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
    last = max(seen.decided) + YEAR
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

    from bayesbandit.service.watching import OTHERS

    days = sorted(seen.decided)
    names = [*dict.fromkeys([*seen.most.values(), OTHERS])]
    table = pd.DataFrame(
        {name: [seen.taken[day, name] / seen.decided[day] for day in days] for name in names},
        index=_dates(days),
    )
    return table.loc[:, table.any()]


def by_week(seen: Watch, values: Mapping[int, MeanReward]) -> pd.DataFrame:
    """Return a row a week, from Monday: decisions, their mean reward with its interval, and what
    there is to watch. A row without an interval says why."""
    import pandas as pd

    from bayesbandit.ope.pooled import MeanReward

    rows = []
    for week in sorted(seen.weeks):
        counts = seen.weeks[week]
        found = values.get(week, MeanReward()).summary()
        n = counts["decisions"]
        row = {
            "decisions": n,
            "rewards": counts["rewards"],
            "open": counts["open"],
            "value": found["estimate"],
            "se": found["se"],
            "low": found["low"],
            "high": found["high"],
            "at_floor": counts["floor"] / n,
            "refused": found["refused"],
        }
        rows.append(row)
    table = pd.DataFrame(rows)
    table.insert(0, "week", _dates(sorted(seen.weeks)))
    return table


def of_arms(everything: MeanReward, values: Sequence[ArmValue]) -> pd.DataFrame:
    """Return what the policy earned and each of the arms most taken would have earned, with
    effective sample sizes."""
    import pandas as pd

    rows = [{"policy": LOGGED, **everything.summary()}]
    return pd.DataFrame(rows + [{"policy": str(one.arm), **one.summary()} for one in values])


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
    figure.savefig(file, format="png", dpi=150, metadata={"Software": MAKER})
    return file.getvalue()
