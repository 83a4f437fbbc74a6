"""Reading a log: its bandit at a given time, tables of its decisions, and counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import Row, func, select, tuple_

from bayesbandit.checks import Name
from bayesbandit.kernels.row_layout import TAIL, row_type
from bayesbandit.predictions import deviation
from bayesbandit.store.database import microseconds
from bayesbandit.store.ledger import Ledger, recorded
from bayesbandit.store.records import INACTIVE
from bayesbandit.store.rows import Parts, stored_of, to_microseconds
from bayesbandit.store.tables import decisions, rewards, states, versions
from bayesbandit.store.versions import Version, catch_up, restored

OPEN_STATE = "open"
BEFORE_ALL_TIME = -(2**63)


def rebuilt(ledger: Ledger, parts: Parts, until: object, version: int | None) -> Version:
    """Return the newest version up to a time and a number, computed from the first version."""
    if until is not None:
        by_time = ledger.newest(to_microseconds(until, "until"))
        if by_time < 0:
            raise ValueError(f"the log has no bandit before {until!r}")
        version = by_time if version is None else min(version, by_time)
    ledger.begun()
    if (snapshot := ledger.snapshot(oldest=True)) is None:
        raise ValueError(f"the log {ledger} has lost the snapshot of version 0")
    if version is not None and not snapshot.number <= version <= ledger.newest():
        raise ValueError(f"version must be {snapshot.number} … {ledger.newest()}; got {version!r}")
    return catch_up(ledger, restored(snapshot, parts), parts, version)


def frames(
    ledger: Ledger, since: object, until: object, size: int = 2_000
) -> Iterator[pd.DataFrame]:
    """Yield the tables of `DecisionLog.frames`; none for a log without a bandit."""
    beginning = ledger.beginning()
    begin, end = to_microseconds(since, "since"), to_microseconds(until, "until")
    columns = decisions.c
    query = recorded().order_by(columns.decided_at, columns.id)
    if end is not None:
        query = query.where(columns.decided_at < end)
    last = (-(2**62) if begin is None else begin, "")  # no id is ""
    while beginning is not None:
        after = tuple_(columns.decided_at, columns.id) > last
        with ledger.database.read(patient=True) as connection:
            rows = connection.execute(query.where(after).limit(size)).all()
        if not rows:
            return
        yield table(rows, beginning.n_features)
        last = (rows[-1].decided_at, rows[-1].id)


def table(rows: Sequence[Row[Any]], n_features: int) -> pd.DataFrame:
    """Return the table of decisions as `recorded` has them: one row for each."""
    stored = [stored_of(row) for row in rows]
    mean = pd.Series([None] * len(stored), dtype=object)
    sd = mean.copy()
    groups: dict[tuple[Name, ...], list[int]] = {}
    for i, one in enumerate(stored):
        groups.setdefault(one.arms, []).append(i)
    for arms, which in groups.items():
        records = np.stack([stored[i].row for i in which])
        K = len(arms)
        record = records.view(row_type(records.shape[1] - TAIL - 3 * K, K))[:, 0]
        scale = deviation(record["rule"][:, None], record["scale"], record["last"])
        mean.iloc[which] = [*record["mean"]]
        sd.iloc[which] = [*scale]

    def plain(name: str) -> pd.Series:
        return pd.Series([getattr(one, name) for one in stored], dtype=object)

    columns = {
        "decision_id": plain("id"),
        "decided_at": _times([one.decided_at for one in stored]),
        "arm": plain("arm"),
        "propensity": plain("propensity").astype(np.float64),
        "arms": plain("arms"),
        "probabilities": plain("probabilities"),
        "mean": mean,
        "sd": sd,
        "x": pd.Series([one.row[:n_features] for one in stored], dtype=object),
        "context": plain("context"),
        "reward": np.array([reward_of(row) for row in rows], dtype=np.float64),
        "rewarded_at": _times([row.observed_at for row in rows]),
        "status": pd.Series([row.outcome or OPEN_STATE for row in rows], dtype=object),
        "activated": np.array([row.shown for row in rows], dtype=np.bool_),
        "version": plain("version").astype(np.int64),
    }
    return pd.DataFrame(columns)


def reward_of(row: Row[Any]) -> float | None:
    """Return the reward of a decision: that learned, else what came, but for one not shown."""
    came: float | None = None if row.outcome == INACTIVE else row.value
    return came if row.reward is None else row.reward


def _times(at: Sequence[int | None]) -> pd.Series:
    moments = [BEFORE_ALL_TIME if one is None else one for one in at]
    return pd.Series(np.array(moments, dtype=np.int64).view("datetime64[us]")).dt.tz_localize("UTC")


def counts(ledger: Ledger) -> dict[str, int]:
    """Return the counts of `DecisionLog.counts`."""
    totals: dict[str, int] = {"decisions": 0, "open": 0}
    closed = select(states.c.outcome, func.count())
    came = select(rewards.c.status, func.count())
    of_versions = select(func.count(), func.count(versions.c.snapshot))
    with ledger.database.read(patient=True) as connection:
        for outcome, n in connection.execute(closed.group_by(states.c.outcome)):
            totals["open" if outcome is None else f"closed: {outcome}"] = n
            totals["decisions"] += n
        for status, n in connection.execute(came.group_by(rewards.c.status)):
            totals[f"rewards: {status}"] = n
        totals["versions"], totals["snapshots"] = connection.execute(of_versions).one()
    return totals


def waiting(ledger: Ledger) -> tuple[int, int]:
    """Return how many decisions are open, and how many of them a learner could learn now."""
    every = select(func.count()).where(states.c.outcome.is_(None))
    due = every.where(states.c.due <= microseconds())
    return ledger.one(every, patient=True), ledger.one(due, patient=True)
