"""Reading a log: its bandit at a given time, tables of its decisions, and counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from sqlalchemy import func, select, tuple_

from bayesbandit.checks import Name
from bayesbandit.kernels.row_layout import TAIL, row_type
from bayesbandit.predictions import deviation
from bayesbandit.store.database import microseconds
from bayesbandit.store.ledger import Ledger, of_decision
from bayesbandit.store.records import INACTIVE, Stored
from bayesbandit.store.rows import Parts, stored_of, to_microseconds
from bayesbandit.store.settings import Settings, joined
from bayesbandit.store.tables import decisions, rewards, states, versions
from bayesbandit.store.versions import Version, catch_up, restored

OPEN_STATE = "open"
BEFORE_ALL_TIME = -(2**63)
Closed = dict[str, tuple[str, float | None]]  # by decision id: the outcome, and the reward learned
Came = dict[str, list[tuple[float, int]]]  # by decision id: rewards in time, and when observed


class Chunk(NamedTuple):
    """Consecutive decisions, and what came for them. activated: ids of those that were shown."""

    decisions: list[Stored]
    closed: Closed
    came: Came
    activated: set[str]


def rebuilt(ledger: Ledger, parts: Parts, until: object, version: int | None) -> Version:
    """Return the newest version up to a time and a number, computed from the first version."""
    if until is not None:
        by_time = ledger.newest(to_microseconds(until, "until"))
        if by_time < 0:
            raise ValueError(f"the log has no bandit before {until!r}")
        version = by_time if version is None else min(version, by_time)
    ledger.begun()
    if (kept := ledger.snapshot(oldest=True)) is None:
        raise ValueError(f"the log {ledger} has lost the snapshot of version 0")
    if version is not None and not kept.number <= version <= ledger.newest():
        raise ValueError(f"version must be {kept.number} … {ledger.newest()}; got {version!r}")
    return catch_up(ledger, restored(ledger, kept, parts), parts, version)


def empty() -> pd.DataFrame:
    """Return a table without decisions."""
    return table(Chunk([], {}, {}, set()), Settings(), 0)


def frames(
    ledger: Ledger, since: object, until: object, size: int = 10_000
) -> Iterator[pd.DataFrame]:
    """Yield the tables of `DecisionLog.frames`; none for a log without a bandit."""
    known = ledger.beginning()
    begin, end = to_microseconds(since, "since"), to_microseconds(until, "until")
    if known is not None:
        for chunk in chunks(ledger, begin, end, size):
            yield table(chunk, known.settings, known.n_features)


def chunks(ledger: Ledger, begin: int | None, end: int | None, size: int) -> Iterator[Chunk]:
    """Yield chunks of at most `size` decisions with begin ≤ decided_at < end, in order of time."""
    own = decisions.c
    last = (-(2**62) if begin is None else begin, "")  # no id is ""
    found = select(decisions, states.c.outcome, states.c.reward, states.c.shown)
    found = found.outerjoin(states, of_decision(states)).where(ledger.of_bandit(decisions))
    found = found.order_by(own.decided_at, own.id).limit(size)
    if end is not None:
        found = found.where(own.decided_at < end)
    while True:
        after = tuple_(own.decided_at, own.id) > last
        with ledger.database.read(patient=True) as connection:
            rows = connection.execute(found.where(after)).all()
            came = ledger.came(connection, [row.id for row in rows])
        if not rows:
            return
        closed = {row.id: (row.outcome, row.reward) for row in rows if row.outcome is not None}
        active = {row.id for row in rows if row.shown}
        yield Chunk([stored_of(row) for row in rows], closed, came, active)
        last = (rows[-1].decided_at, rows[-1].id)


def table(chunk: Chunk, how: Settings, n_features: int) -> pd.DataFrame:
    """Return the table of a chunk: one row for each decision."""
    rows = chunk.decisions
    reward, at, status = joined_rewards(chunk, how)
    mean = np.empty(len(rows), dtype=object)
    sd = np.empty(len(rows), dtype=object)
    for which, _, means, scales in means_and_sds(rows):
        for i, m, s in zip(which, means, scales, strict=True):
            mean[i], sd[i] = m, s
    return pd.DataFrame(
        {
            "decision_id": pd.Series([row.id for row in rows], dtype=object),
            "decided_at": _times([row.decided_at for row in rows]),
            "arm": pd.Series([row.arm for row in rows], dtype=object),
            "propensity": np.array([row.propensity for row in rows], dtype=np.float64),
            "arms": pd.Series([row.arms for row in rows], dtype=object),
            "probabilities": pd.Series([row.probabilities for row in rows], dtype=object),
            "mean": mean,
            "sd": sd,
            "x": pd.Series([row.row[:n_features] for row in rows], dtype=object),
            "context": pd.Series([row.context for row in rows], dtype=object),
            "reward": reward,
            "rewarded_at": _times(at),
            "status": pd.Series(status, dtype=object),
            "activated": np.array([row.id in chunk.activated for row in rows], dtype=np.bool_),
            "version": np.array([row.version for row in rows], dtype=np.int64),
        }
    )


def joined_rewards(chunk: Chunk, how: Settings) -> tuple[np.ndarray, list[int], list[str]]:
    """Return the rewards (n,) of decisions, when they were observed, and the status of each.

    Without a reward they are NaN and `BEFORE_ALL_TIME`. A status is "open", or how the decision was
    closed.
    """
    reward = np.full(len(chunk.decisions), np.nan)
    at = []
    status = []
    for i, row in enumerate(chunk.decisions):
        told = chunk.came.get(row.id, [])
        own = joined([value for value, _ in told], how)
        outcome, learned = chunk.closed.get(row.id, (OPEN_STATE, own))
        known = own if learned is None and outcome != INACTIVE else learned
        reward[i] = np.nan if known is None else known
        status.append(outcome)
        at.append(told[0 if how.aggregate == "first" else -1][1] if told else BEFORE_ALL_TIME)
    return reward, at, status


def means_and_sds(
    rows: Sequence[Stored],
) -> Iterator[tuple[list[int], tuple[Name, ...], np.ndarray, np.ndarray]]:
    """Yield groups of decisions about the same arms.

    A group is the indices of its decisions in `rows`, the arms, and the arms' means and standard
    deviations (n, K) at the moment of each decision.
    """
    groups: dict[tuple[Name, ...], list[int]] = {}
    for i, row in enumerate(rows):
        groups.setdefault(row.arms, []).append(i)
    for arms, which in groups.items():
        own = np.stack([rows[i].row for i in which])
        K = len(arms)
        record = own.view(row_type(own.shape[1] - TAIL - 3 * K, K))[:, 0]
        sd = deviation(record["rule"][:, None], record["scale"], record["last"])
        yield which, arms, record["mean"], sd


def _times(at: Sequence[int]) -> pd.Series:
    return pd.Series(np.array(at, dtype=np.int64).view("datetime64[us]")).dt.tz_localize("UTC")


def counts(ledger: Ledger) -> dict[str, int]:
    """Return the counts of `DecisionLog.counts`."""
    found: dict[str, int] = {"decisions": 0, "open": 0}
    closed = select(states.c.outcome, func.count()).where(ledger.of_bandit(states))
    came = select(rewards.c.status, func.count()).where(ledger.of_bandit(rewards))
    made = select(func.count(), func.count(versions.c.snapshot)).where(ledger.of_bandit(versions))
    with ledger.database.read(patient=True) as connection:
        for outcome, n in connection.execute(closed.group_by(states.c.outcome)):
            found["open" if outcome is None else f"closed: {outcome}"] = n
            found["decisions"] += n
        for status, n in connection.execute(came.group_by(rewards.c.status)):
            found[f"rewards: {status}"] = n
        found["versions"], found["snapshots"] = connection.execute(made).one()
    return found


def waiting(ledger: Ledger) -> tuple[int, int]:
    """Return how many decisions are open, and how many of them a learner could learn now."""
    is_open = ledger.of_bandit(states), states.c.outcome.is_(None)
    every = select(func.count()).where(*is_open)
    due = every.where(states.c.due <= microseconds())
    return ledger.one(every, patient=True), ledger.one(due, patient=True)
