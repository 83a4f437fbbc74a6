"""Reading a log: its bandit at a given time, tables of its decisions, and counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import Row, func, select, tuple_

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
COLUMNS = [
    "decision_id", "decided_at", "arm", "propensity", "arms", "probabilities", "mean", "sd", "x",
    "context", "reward", "rewarded_at", "status", "activated", "version",
]  # fmt: skip
DTYPES: dict[str, Any] = {
    "propensity": float,
    "reward": float,
    "activated": bool,
    "version": "int64",
}


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
    begin = to_microseconds(since, "since")
    end = to_microseconds(until, "until")
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
    rewards_in_time = [None if row.outcome == INACTIVE else row.value for row in rows]
    cells = [
        (
            one.id, one.decided_at, one.arm, one.propensity, one.arms, one.probabilities, None,
            None, one.row, one.context, came if row.reward is None else row.reward,
            row.observed_at, row.outcome or OPEN_STATE, row.shown, one.version,
        )
        for row, one, came in zip(rows, map(stored_of, rows), rewards_in_time, strict=True)
    ]  # fmt: skip
    frame = pd.DataFrame(cells, columns=COLUMNS, dtype=object)
    mean = frame["mean"].copy()
    sd = frame["sd"].copy()
    for alike in frame.groupby("arms", sort=False).indices.values():
        numbers = np.stack(frame["x"].iloc[alike].to_list())
        K = len(frame["arms"][alike[0]])
        record = numbers.view(row_type(numbers.shape[1] - TAIL - 3 * K, K))[:, 0]
        mean.iloc[alike] = [*record["mean"]]
        sd.iloc[alike] = [*deviation(record["rule"][:, None], record["scale"], record["last"])]
    x = pd.Series([numbers[:n_features] for numbers in frame["x"]], dtype=object)
    times = {name: _times(frame[name]) for name in ("decided_at", "rewarded_at")}
    return frame.assign(mean=mean, sd=sd, x=x, **times).astype(DTYPES)


def _times(at: pd.Series) -> pd.Series:
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
