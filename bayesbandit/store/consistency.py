"""Checks of a log by its rows alone: what belongs together is there, and times run forward.

Each query is read row by row: memory does not grow with the log.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import pandas as pd
from sqlalchemy import ColumnElement, Connection, Row, Select, Table, and_, func, or_, select

from bayesbandit.store.ledger import CLOCKS, Ledger, of_decision, unknown_key
from bayesbandit.store.records import ACTIVATED, ADVISED, LATE, SNAPSHOT, SYSTEM, TIMELY, UNKNOWN
from bayesbandit.store.settings import Settings
from bayesbandit.store.tables import (
    decisions,
    events,
    opened,
    outcomes,
    rewards,
    snapshots,
    streams,
)

AT_ONCE = 1000  # rows
COLUMNS = ("kind", "id", "expected", "found", "said")
OF_DECISIONS = ((rewards, "reward"), (outcomes, "outcome"), (opened, "open"), (events, "event"))
TABLES = decisions, opened, rewards, outcomes, events, snapshots, streams


@dataclass
class Checked:
    """A log, as it was at one moment, and the violations that were found: one row each."""

    ledger: Ledger
    connection: Connection
    found: list[tuple[str, str, object, object, str]] = field(default_factory=list)

    def add(self, kind: str, one: object, expected: object, found: object, said: str) -> None:
        """Add a violation."""
        self.found.append((kind, str(one), expected, found, said))

    def frame(self) -> pd.DataFrame:
        """Return the violations."""
        return pd.DataFrame(self.found, columns=list(COLUMNS)).astype({"id": str})

    def rows(self, query: Select[Any]) -> Iterator[Row[Any]]:
        """Yield the rows of a query."""
        yield from self.connection.execution_options(yield_per=AT_ONCE).execute(query)


def settings(log: Checked) -> Settings | None:
    """Return how rewards are joined; None if the log does not say it, or is empty."""
    try:
        how = log.ledger.settings()
    except ValueError as error:
        log.add("version", 0, "how the bandit began", "none", str(error))
        return None
    some = (select(table.c.bandit).where(log.ledger.own(table)).limit(1) for table in TABLES)
    if how is None and any(log.connection.execute(one).first() for one in some):
        said = "the log does not say how the bandit began, and nothing else can be checked"
        log.add("version", 0, "how the bandit began", "none", said)
    return how


def check_rows(log: Checked, how: Settings) -> None:
    """Add all violations that rows show by themselves."""
    check_references(log)
    check_rewards(log, how)
    check_queue(log, how)
    check_snapshots(log)
    check_streams(log)


def check_references(log: Checked) -> None:
    """Find rewards, outcomes, events and open rows without a decision, decisions that are neither
    open nor closed, or both, and decisions of another system without advice."""
    own = decisions.c.id
    for table, kind in OF_DECISIONS:
        lost = select(table.c.decision_id).outerjoin(decisions, of_decision(table))
        lost = lost.where(log.ledger.own(table), table.c.decision_id.is_not(None), own.is_(None))
        for row in log.rows(lost):
            said = f"there is a row of {kind} and no decision {row.decision_id!r}"
            log.add(f"{kind} without decision", row.decision_id, "a decision", None, said)
    is_open, is_closed = opened.c.decision_id, outcomes.c.decision_id
    state = (
        select(own, is_open.label("open"), is_closed.label("closed"))
        .outerjoin(opened, of_decision(opened))
        .outerjoin(outcomes, of_decision(outcomes))
        .where(log.ledger.own(decisions), is_open.is_(None) == is_closed.is_(None))
    )
    for row in log.rows(state):
        found = "neither" if row.open is None else "both"
        log.add("state", row.id, "open or closed", found, f"the decision is {found}")
    advised = and_(of_decision(events), events.c.kind == ADVISED)
    alone = select(own).outerjoin(events, advised).where(log.ledger.own(decisions))
    for row in log.rows(alone.where((decisions.c.mode == SYSTEM) == events.c.id.is_(None))):
        said = "another system decided, and the log has no advice; or the other way round"
        log.add("advice", row.id, "both or neither", "one", said)


def check_rewards(log: Checked, how: Settings) -> None:
    """Find rewards that were observed before their decision, and those whose status is wrong."""
    own, decided = rewards.c, decisions.c.decided_at
    known = (
        select(rewards, decided)
        .join(decisions, of_decision(rewards))
        .outerjoin(opened, of_decision(opened))
        .where(log.ledger.own(rewards))
    )
    for row in log.rows(known.where(own.observed_at < decided - CLOCKS)):
        said = "the reward was observed before the decision"
        log.add("clock", row.decision_id, row.decided_at, row.observed_at, said)
    in_time: ColumnElement[bool] = opened.c.decision_id.is_not(None)
    if how.wait is not None:
        end = decided + how.wait
        for row in log.rows(known.where(own.status == TIMELY, own.observed_at > end)):
            said, end_of_row = "a reward counts that came too late", row.decided_at + how.wait
            log.add("late", row.decision_id, end_of_row, row.observed_at, said)
        in_time = and_(in_time, own.observed_at <= end)
    if how.aggregate == "first":  # those after the first one are late
        other = rewards.alias()
        first = select(other.c.key).where(
            other.c.bandit == own.bandit,
            other.c.decision_id == own.decision_id,
            other.c.status == TIMELY,
        )
        in_time = and_(in_time, ~first.exists())
    strange = or_(own.status.not_in((TIMELY, LATE)), and_(own.status == LATE, in_time))
    for row in log.rows(known.where(strange)):
        before = row.key == unknown_key(row.key.rpartition(" unknown ")[0], row.value)
        if row.status != UNKNOWN or not before:  # else it came before the decision
            said = "a reward does not count that came in time"
            log.add("late", row.decision_id, TIMELY, row.status, said)


def check_queue(log: Checked, how: Settings) -> None:
    """Find open decisions that would be learned too early, too late, or never."""

    def there(table: Table, condition: ColumnElement[bool]) -> ColumnElement[bool]:
        own = table.c.bandit == opened.c.bandit, table.c.decision_id == opened.c.decision_id
        return select(table.c.bandit).where(*own, condition).exists()

    ready = there(rewards, rewards.c.status == TIMELY)
    if how.activation:
        ready = and_(ready, there(events, events.c.kind == ACTIVATED))
    queue = select(opened.c.decision_id, opened.c.due, decisions.c.decided_at, ready.label("ready"))
    queue = queue.join(decisions, of_decision(opened)).where(log.ledger.own(opened))
    for row in log.rows(queue):
        end = None if how.wait is None else row.decided_at + how.wait
        if how.aggregate == "first" and row.ready:
            right = row.due is not None and (end is None or row.due <= end)
        else:
            right = row.due == end
        if not right:
            said = "the decision is not learned when it should be"
            log.add("open", row.decision_id, end, row.due, said)


def check_snapshots(log: Checked) -> None:
    """Find missing snapshots, stored and not deleted by the learner, and those of no version."""
    stored, removed = set[int](), set[int]()
    own = snapshots.c.version
    kept = {*log.connection.execute(select(own).where(log.ledger.own(snapshots))).scalars()}
    newest = log.connection.execute(
        select(func.max(events.c.version)).where(log.ledger.own(events))
    ).scalar_one()
    told = select(events.c.id, events.c.detail).where(
        log.ledger.own(events), events.c.kind == SNAPSHOT
    )
    for row in log.rows(told):
        try:
            detail = json.loads(row.detail)
            stored.add(detail["version"])
            removed.update(detail["removed"])
        except (ValueError, TypeError, KeyError) as error:
            log.add("event", row.id, "a snapshot", row.detail, f"it cannot be read: {error}")
    for version in sorted(({0} | stored) - removed - kept):
        said = f"the snapshot of version {version} is not there"
        log.add("snapshot", version, "a snapshot", "none", said)
    for version in sorted(one for one in kept if not 0 <= one <= newest):
        said = f"there is a snapshot of version {version}, and no such version"
        log.add("snapshot", version, f"at most {newest}", version, said)


def check_streams(log: Checked) -> None:
    """Find missing calls, missing decisions of a call, and times that run backwards."""
    own = decisions.c
    order = own.stream, own.position, own.place
    found = (
        select(*order, own.size, own.decided_at, own.id, streams.c.key)
        .outerjoin(streams, and_(streams.c.key == own.stream, streams.c.bandit == own.bandit))
        .where(log.ledger.own(decisions))
    )
    for stream, rows in groupby(log.rows(found.order_by(*order)), key=lambda row: row.stream):
        last, at = -1, -(2**62)
        for position, some in groupby(rows, key=lambda row: row.position):
            call = [*some]
            if position != last + 1:
                said = f"calls {last + 1} … {position - 1} of a stream are not there"
                log.add("gap", stream, last + 1, position, said)
            sizes = {row.size for row in call}
            if [row.place for row in call] != [*range(len(call))] or sizes != {len(call)}:
                said = f"call {position} of a stream lacks decisions, or has them in other places"
                log.add("gap", stream, call[0].size, len(call), said)
            for row in call:
                if row.key is None:
                    log.add("stream", row.id, "a known stream", stream, "no such stream")
                if row.decided_at < at:
                    said = "the decision is before the one before it"
                    log.add("clock", row.id, at, row.decided_at, said)
                at = row.decided_at
            last = position
