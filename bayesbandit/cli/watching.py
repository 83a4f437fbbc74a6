"""`bayesbandit report`: a living bandit on one page, by its log."""

from __future__ import annotations

import platform
import warnings
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from bayesbandit.cli.report import MAKER, clear_errors, say
from bayesbandit.cli.serving import BanditName, LogUrl
from bayesbandit.runtime.files import replacing
from bayesbandit.store.log import DecisionLog

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from bayesbandit.ope import Estimate, Log
    from bayesbandit.service.watching import Watched

ARMS = 6  # that are drawn and judged, those most taken; the others are one line
LOGGED = "as decided"
HYPHEN = "\u2011"  # at which no line ends
QUANTILES = {"median": 0.5, "90%": 0.9, "99%": 0.99, "largest": 1.0}


def report(
    log: LogUrl,
    name: BanditName = "default",
    out: Annotated[Path, typer.Option(help="The page, a file.")] = Path("report.html"),
    since: Annotated[
        str | None, typer.Option(help='Decisions from then on, as "2026-11-01"; UTC.')
    ] = None,
    until: Annotated[str | None, typer.Option(help="Decisions before then.")] = None,
) -> None:
    """How is the bandit doing? One page: what it decides and earns, what is late, what has changed.

    Decisions and rewards a day, arms' shares, mean reward by week, what each arm alone would have
    earned, effective sample sizes, floors, open decisions, lags, and drift of contexts.
    """
    with clear_errors():
        with DecisionLog(log, name) as opened:
            tables, figures, answer = watch(opened, since, until)
            record = {
                "log": opened.ledger.database.shown, "name": opened.name,
                "since": since, "until": until,
                "counts": opened.counts(), "bandit": opened.ledger.beginning()["policy"],
                "arms at the beginning": opened.ledger.beginning()["arms"],
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
    log: DecisionLog, since: str | None, until: str | None
) -> tuple[dict[str, pd.DataFrame], dict[str, Figure], str]:
    """Return the tables and pictures of a log by their titles and names, and what it comes to."""
    from bayesbandit import plots
    from bayesbandit.service.watching import watched

    if log.ledger.settings() is None:
        raise log.ledger.nothing()
    seen = watched(log, since, until)
    own = seen.decisions
    weeks, arms = by_week(log, seen), of_arms(log, since, until, seen)
    lags = (own["rewarded_at"] - own["decided_at"]).dt.total_seconds().dropna() / 3600
    figures = {
        "counts": plots.daily_counts(by_day(own)),
        "shares": plots.arm_shares(shares(own)),
        "values": plots.weekly_values(weeks),
    }
    if len(lags):
        figures["lags"] = plots.reward_lags(lags.to_numpy())
    tables = {
        "By week": weeks.assign(
            week=weeks["week"].dt.strftime("%Y-%m-%d").str.replace("-", HYPHEN)
        ),
        "What each arm alone would have earned": arms,
        "How decisions were closed": closed(own),
        "Hours from decision to reward": delays(lags),
        f"Contexts against {_fit(log)}": seen.contexts,
    }
    return {title: table for title, table in tables.items() if len(table)}, figures, verdict(
        own, weeks, lags
    )  # fmt: skip


def by_day(own: pd.DataFrame) -> pd.DataFrame:
    """Return decisions by their day, and rewards by the day on which they were observed."""
    import pandas as pd

    decided = own["decided_at"].dt.floor("D").value_counts()
    came = own["rewarded_at"].dropna().dt.floor("D").value_counts()
    table = pd.DataFrame({"decisions": decided, "rewards": came}).sort_index()
    return table.asfreq("D").fillna(0.0)


def shares(own: pd.DataFrame) -> pd.DataFrame:
    """Return the arms' shares by day, those most taken first; the others are one."""
    most = own["arm"].value_counts().index[:ARMS]
    arm = own["arm"].where(own["arm"].isin(most), "all others")
    counts = own.groupby([own["decided_at"].dt.floor("D"), arm]).size().unstack(fill_value=0)
    order = [name for name in (*most, "all others") if name in counts]
    return counts[list(dict.fromkeys(order))].div(counts.sum(axis=1), axis=0)


def by_week(log: DecisionLog, seen: Watched) -> pd.DataFrame:
    """Return a row a week, from Monday: decisions, their mean reward with its interval, and what
    there is to watch. An interval that `bb.ope` refuses is none, and the row says why."""
    import pandas as pd

    own = seen.decisions
    start = own["decided_at"].dt.floor("D")
    start -= pd.to_timedelta(start.dt.dayofweek, unit="D")
    rows = []
    for week, some in own.groupby(start):
        begin = max(week, own["decided_at"].iloc[0])
        end = min(week + pd.Timedelta(7, "D"), own["decided_at"].iloc[-1] + pd.Timedelta(1, "us"))
        found, refused = mean_reward(log, begin, end, some)
        row = {
            "week": week.tz_localize(None),
            "decisions": len(some),
            "rewards": int(some["rewarded_at"].notna().sum()),
            "open": int((some["status"] == "open").sum()),
            "value": np.nan if found is None else found.value,
            "se": np.nan if found is None else found.se,
            "low": np.nan if found is None else found.low,
            "high": np.nan if found is None else found.high,
            "at_floor": float(some["floor"].mean()),
            "fallback": float((some["mode"] == "fallback").mean()),
            "agreement": float(some["agrees"].mean()) if some["agrees"].notna().any() else np.nan,
            "refused": refused,
        }
        rows.append(row)
    return pd.DataFrame(rows)


def mean_reward(
    log: DecisionLog, begin: pd.Timestamp, end: pd.Timestamp, own: pd.DataFrame
) -> tuple[Estimate | None, str]:
    """Return the mean reward of the decisions of a time, or None, and why there is no interval."""
    from bayesbandit.ope import Log, estimate

    try:
        data = Log.of(log, since=begin, until=end, snapshots=False)
        with warnings.catch_warnings(action="ignore"):
            found = estimate(data, None, "ips", "equal", missing=_missing(own))
    except ValueError as error:
        return None, str(error)
    return found, found.refused


def of_arms(log: DecisionLog, since: str | None, until: str | None, seen: Watched) -> pd.DataFrame:
    """Return what the policy earned and each of the arms most taken would have earned, with
    effective sample sizes."""
    import pandas as pd

    from bayesbandit.ope import Log, evaluate

    own = seen.decisions
    try:
        data: Log = Log.of(log, since=since, until=until, snapshots=False)
        most = own["arm"].value_counts().index[:ARMS]
        names = {str(arm): arm for arm in data.arms if str(arm) in set(most)}
        policies = {LOGGED: None, **{name: names[name] for name in most if name != LOGGED}}
        with warnings.catch_warnings(action="ignore"):
            table = evaluate(data, policies, missing=_missing(own)).table.reset_index()
    except ValueError as error:
        return pd.DataFrame({"policy": [LOGGED], "refused": [str(error)]})
    return table[["policy", "estimate", "se", "low", "high", "ess", "n", "refused"]]


def _missing(own: pd.DataFrame) -> str | None:
    """Return what missing rewards are: those of open decisions may come; others are for `bb.ope`
    to refuse."""
    lost = own["reward"].isna()
    return "open" if lost.any() and (own["status"][lost] == "open").all() else None


def closed(own: pd.DataFrame) -> pd.DataFrame:
    """Return how many decisions are open or were closed in which way, and how old they are."""
    now = own["decided_at"].max()
    ages = own.assign(age=(now - own["decided_at"]).dt.total_seconds() / 3600)
    table = ages.groupby("status").agg(decisions=("age", "size"), oldest_hours=("age", "max"))
    return table.assign(share=table["decisions"] / len(own)).reset_index()


def delays(lags: pd.Series) -> pd.DataFrame:
    """Return quantiles of the hours after which rewards came."""
    import pandas as pd

    if not len(lags):
        return pd.DataFrame()
    found = {name: [float(lags.quantile(q))] for name, q in QUANTILES.items()}
    return pd.DataFrame({"rewards": [len(lags)], **found})


def verdict(own: pd.DataFrame, weeks: pd.DataFrame, lags: pd.Series) -> str:
    """Return what a log comes to, in sentences."""
    first, last = own["decided_at"].iloc[0], own["decided_at"].iloc[-1]
    said = (
        f"{len(own):,} decisions from {first:%Y-%m-%d} to {last:%Y-%m-%d} (UTC), "
        f"{len(lags):,} with a reward that came, {(own['status'] == 'open').sum():,} open."
    )
    if (known := weeks[weeks["low"].notna()]).size:
        row = known.iloc[-1]
        said += (
            f" In the week from {row['week']:%Y-%m-%d} a decision earned {row['value']:.4g} "
            f"[{row['low']:.4g}, {row['high']:.4g}]."
        )
    if len(lags):
        said += f" Half of the rewards came within {lags.median():.3g} hours."
    if own["agrees"].notna().any():
        said += f" The bandit agrees with the present system in {own['agrees'].mean():.1%}."
    return said


def _fit(log: DecisionLog) -> str:
    encoded = log.ledger.beginning()["encoder"] is not None
    return "the encoder's fit" if encoded else "the first decisions"


def _png(figure: Figure) -> bytes:
    file = BytesIO()
    figure.savefig(file, format="png", dpi=150, metadata={"Software": MAKER})
    return file.getvalue()
