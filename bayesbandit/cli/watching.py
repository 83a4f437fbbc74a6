"""What a log's decisions show for the report, as tables: by day and week, and how closed."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from scipy.special import ndtri

from bayesbandit.checks import Name
from bayesbandit.store.log import DecisionLog
from bayesbandit.store.reading import OPEN_STATE
from bayesbandit.store.records import INACTIVE

REPORT_COLUMNS = ["decided_at", "rewarded_at", "arm", "reward", "status", "activated"]
OTHER_ARMS = "all others"
NORMAL_QUANTILE = float(ndtri(0.975))  # of intervals of 95 %
DAYS_PER_YEAR = pd.Timedelta(days=366)


def decisions_of(log: DecisionLog, since: str | None = None) -> pd.DataFrame:
    """Return a row for each decision: when it was decided and rewarded, its arm, reward (NaN unless
    it was shown) and status, its week, the hours to its reward, whether it is open, and whether it
    is to have a reward."""
    parts = [part[REPORT_COLUMNS].copy() for part in log.frames(since)]  # no views of all columns
    if not parts:
        raise ValueError(f"{log} has no decision in this time")
    rows = pd.concat(parts, ignore_index=True)
    shown = rows["activated"] | (not log.ledger.begun().settings.activation)
    earns = shown & (rows["status"] != INACTIVE)
    decided = rows["decided_at"].dt.tz_localize(None)
    rewarded = rows["rewarded_at"].dt.tz_localize(None)
    day = decided.dt.floor("D")
    return rows.assign(
        decided_at=decided,
        rewarded_at=rewarded,
        reward=rows["reward"].where(earns),
        week=day - pd.to_timedelta(day.dt.day_of_week, unit="D"),  # its Monday
        lag=(rewarded - decided).dt.total_seconds() / 3600.0,
        is_open=rows["status"] == OPEN_STATE,
        earns=earns,
    )


def by_day(rows: pd.DataFrame) -> pd.DataFrame:
    """Return decisions by their day, and rewards by the day on which they were observed."""
    day = rows["decided_at"].dt.floor("D")
    rewarded = rows["rewarded_at"].dropna().dt.floor("D")
    right = rewarded.between(day.min(), day.max() + DAYS_PER_YEAR)  # clocks may be wrong
    counts = {"decisions": day.value_counts(), "rewards": rewarded[right].value_counts()}
    return pd.DataFrame(counts).sort_index().asfreq("D").fillna(0.0)


def shares(rows: pd.DataFrame, most: Sequence[Name]) -> pd.DataFrame:
    """Return the arms' shares by day, `most` first; the others are one."""
    names = {arm: str(arm) for arm in most}
    shown = rows["arm"].map(lambda arm: names.get(arm, OTHER_ARMS))
    table = pd.crosstab(rows["decided_at"].dt.floor("D"), shown, normalize="index")
    order = dict.fromkeys([*names.values(), OTHER_ARMS])
    return table[[name for name in order if name in table]]


def by_week(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row a week, from Monday: decisions, rewards, open decisions, and the mean of the
    rewards with its standard error and 95 % interval. There is none where a reward is not known:
    those that come fast may be other ones than those that come late, or never."""
    weeks = rows.groupby("week").agg(
        decisions=("arm", "size"),
        rewards=("lag", "count"),
        open=("is_open", "sum"),
        value=("reward", "mean"),
        se=("reward", "sem"),
    )
    by_row = rows.groupby("week")
    all_known = by_row["earns"].sum() == by_row["reward"].count()
    reach = NORMAL_QUANTILE * weeks["se"].where(all_known)
    return weeks.assign(low=weeks["value"] - reach, high=weeks["value"] + reach).reset_index()


def closed(rows: pd.DataFrame) -> pd.DataFrame:
    """Return how many decisions are open or were closed in which way, and how old they are."""
    by_status = rows.groupby("status")["decided_at"].agg(["size", "min"])
    hours = (rows["decided_at"].max() - by_status["min"]).dt.total_seconds() / 3600.0
    n = by_status["size"]
    table = {"decisions": n, "oldest_hours": hours, "share": n / len(rows)}
    return pd.DataFrame(table).rename_axis("status").reset_index()
