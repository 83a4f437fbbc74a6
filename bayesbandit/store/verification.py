"""Verification of a log: compute every version again, and let it make its decisions again.

Each table is read once, row by row, as it was at one moment: memory does not grow with the log.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import Connection, Row, Select, and_, select

from bayesbandit.bandit.bandit import Bandit
from bayesbandit.bandit.decision import Decision
from bayesbandit.checks import floats
from bayesbandit.store import versions
from bayesbandit.store.ledger import (
    Ledger,
    change_of,
    of_decision,
    outcome_of,
    stored_of,
)
from bayesbandit.store.records import (
    BANDIT,
    DEFAULT,
    LEARN,
    LEARNED,
    REWARD,
    SNAPSHOT,
    TIMELY,
    Change,
    Stored,
)
from bayesbandit.store.rows import Parts, decision_of, layout_of, saved
from bayesbandit.store.settings import Settings, joined
from bayesbandit.store.tables import (
    decisions,
    events,
    opened,
    outcomes,
    rewards,
    snapshots,
    streams,
)
from bayesbandit.store.versions import Version, restored

AT_ONCE = 1000  # rows
CLOSE = 1e-9  # by how much a probability may differ on another machine
COLUMNS = ("kind", "id", "expected", "found", "said")


@dataclass
class Violations:
    """The violations that were found, one row each."""

    rows: list[tuple[str, str, object, object, str]] = field(default_factory=list)

    def add(self, kind: str, one: object, expected: object, found: object, said: str) -> None:
        self.rows.append((kind, str(one), expected, found, said))

    def frame(self) -> pd.DataFrame:
        return pd.DataFrame(self.rows, columns=list(COLUMNS)).astype({"id": str})


class Groups:
    """The rows of a query that is sorted by the column `by`, taken from the front."""

    def __init__(self, connection: Connection, query: Select[Any], by: str) -> None:
        self.by = by
        self.rows = iter(connection.execution_options(yield_per=AT_ONCE).execute(query))
        self.next = next(self.rows, None)

    def up_to(self, number: int) -> Iterator[Row[Any]]:
        """Yield the next rows whose value of `by` is at most this number."""
        while self.next is not None and self.next._mapping[self.by] <= number:
            row, self.next = self.next, next(self.rows, None)
            yield row


def violations(ledger: Ledger, parts: Parts) -> pd.DataFrame:
    """Return one row for each violation: see `DecisionLog.verify`."""
    how = ledger.settings()
    if how is None:
        return Violations().frame()
    with ledger.database.read() as connection:
        return Verification(ledger, connection, parts, how).all()


@dataclass
class Verification:
    """One check of a log, over one connection."""

    ledger: Ledger
    connection: Connection
    parts: Parts
    how: Settings
    found: Violations = field(default_factory=Violations)
    kept: set[int] = field(default_factory=set)  # versions with a snapshot
    entropies: dict[str, int] = field(default_factory=dict)  # of the latest stream

    def all(self) -> pd.DataFrame:
        self.check_references()
        self.check_streams()
        self.check_versions()
        return self.found.frame()

    def rows(self, query: Select[Any]) -> Iterator[Row[Any]]:
        """Yield the rows of a query."""
        yield from self.connection.execution_options(yield_per=AT_ONCE).execute(query)

    # ---- what belongs together -------------------------------------------------------------------

    def check_references(self) -> None:
        """Find rewards, outcomes and open rows without a decision, and decisions that are neither
        open nor closed, or both."""
        own = decisions.c.id
        for table, kind in ((rewards, "reward"), (outcomes, "outcome"), (opened, "open")):
            lost = select(table.c.decision_id).outerjoin(decisions, of_decision(table))
            for row in self.rows(lost.where(self.ledger.own(table), own.is_(None))):
                said = f"there is a row of {kind} and no decision {row.decision_id!r}"
                self.found.add(
                    f"{kind} without decision", row.decision_id, "a decision", None, said
                )
        is_open, is_closed = opened.c.decision_id, outcomes.c.decision_id
        state = (
            select(own, is_open.label("open"), is_closed.label("closed"))
            .outerjoin(opened, of_decision(opened))
            .outerjoin(outcomes, of_decision(outcomes))
            .where(self.ledger.own(decisions), is_open.is_(None) == is_closed.is_(None))
        )
        for row in self.rows(state):
            found = "neither" if row.open is None else "both"
            self.found.add("state", row.id, "open or closed", found, f"the decision is {found}")
        self.check_rewards()

    def check_rewards(self) -> None:
        """Find rewards that were observed before their decision, or count though they were late."""
        after = (
            select(rewards, decisions.c.decided_at)
            .join(decisions, of_decision(rewards))
            .where(self.ledger.own(rewards))
        )
        early = after.where(rewards.c.observed_at < decisions.c.decided_at)
        for row in self.rows(early):
            self.found.add(
                "clock",
                row.decision_id,
                row.decided_at,
                row.observed_at,
                "the reward was observed before the decision",
            )
        if self.how.wait is not None:
            late = after.where(
                rewards.c.status == TIMELY,
                rewards.c.observed_at > decisions.c.decided_at + self.how.wait,
            )
            for row in self.rows(late):
                self.found.add(
                    "late",
                    row.decision_id,
                    row.decided_at + self.how.wait,
                    row.observed_at,
                    "a reward counts that came too late",
                )

    # ---- streams of random numbers ---------------------------------------------------------------

    def check_streams(self) -> None:
        """Find missing calls, missing decisions of a call, and times that run backwards."""
        own = decisions.c
        order = own.stream, own.position, own.place
        found = (
            select(*order, own.size, own.decided_at, own.id, streams.c.key)
            .outerjoin(streams, and_(streams.c.key == own.stream, streams.c.bandit == own.bandit))
            .where(self.ledger.own(decisions))
        )
        for stream, rows in groupby(self.rows(found.order_by(*order)), key=lambda row: row.stream):
            position, place, size, at = -1, 0, 0, -(2**62)
            for row in rows:
                if row.key is None:
                    self.found.add("stream", row.id, "a known stream", stream, "no such stream")
                if row.position != position:
                    if place != size:
                        self._gap(stream, position, size, place)
                    if row.position != position + 1:
                        said = (
                            f"calls {position + 1} … {row.position - 1} of a stream are not there"
                        )
                        self.found.add("gap", stream, position + 1, row.position, said)
                    position, place, size = row.position, 0, row.size
                if row.decided_at < at:
                    said = "the decision is before the one before it"
                    self.found.add("clock", row.id, at, row.decided_at, said)
                place, at = place + 1, row.decided_at
            if place != size:
                self._gap(stream, position, size, place)

    def _gap(self, stream: str, position: int, size: int, place: int) -> None:
        said = f"call {position} of a stream has {place} of {size} decisions"
        self.found.add("gap", stream, size, place, said)

    # ---- versions --------------------------------------------------------------------------------

    def check_versions(self) -> None:
        """Compute every version again, and let it make its decisions again."""
        version = versions.first(self.ledger, self.parts)
        kept = select(snapshots.c.version).where(self.ledger.own(snapshots))
        self.kept = set(self.connection.execute(kept).scalars())
        self.check_snapshots()
        own, closed = decisions.c, outcomes.c
        decided = Groups(
            self.connection,
            select(decisions)
            .where(self.ledger.own(decisions))
            .order_by(own.version, own.stream, own.position, own.place),
            "version",
        )
        learned = Groups(self.connection, self.ledger.learned(), "learned_by")
        told = Groups(
            self.connection,
            select(closed.version, closed.position, rewards.c.value)
            .join(
                rewards,
                and_(
                    rewards.c.bandit == closed.bandit, rewards.c.decision_id == closed.decision_id
                ),
            )
            .where(self.ledger.own(outcomes), rewards.c.status == TIMELY)
            .order_by(
                closed.version,
                closed.position,
                rewards.c.observed_at,
                rewards.c.received_at,
                rewards.c.key,
            ),
            "version",
        )
        self.check_decisions(version, decided, 0)
        changes = select(events).where(self.ledger.own(events), events.c.version > 0)
        at, number = -(2**62), 0
        last: Version | None = version
        for row in self.rows(changes.order_by(events.c.version)):
            if row.at < at:
                said = f"version {row.version} is before the one before it"
                self.found.add("clock", row.version, at, row.at, said)
            if row.version != number + 1:
                said = f"versions {number + 1} … {row.version - 1} of the bandit are not there"
                self.found.add("gap", row.version, number + 1, row.version, said)
            at, number = row.at, row.version
            past = [*learned.up_to(number)]
            values = {
                place: [one.value for one in some]
                for place, some in groupby(told.up_to(number), key=lambda one: one.position)
            }
            change = change_of(row, [outcome_of(o) for o in past if o.outcome in LEARNED])
            if change.kind == LEARN:
                self.check_outcomes(past, values, change.detail["closed"])
            last = self.next(last, change)
            self.check_decisions(last, decided, number)
        for row in decided.up_to(2**62):
            self.found.add("version", row.id, f"at most {number}", row.version, "no such version")

    def check_snapshots(self) -> None:
        """Find missing snapshots: stored, and not deleted by the learner."""
        stored, removed = set[int](), set[int]()
        told = select(events.c.detail).where(self.ledger.own(events), events.c.kind == SNAPSHOT)
        for row in self.rows(told):
            detail = json.loads(row.detail)
            stored.add(detail["version"])
            removed.update(detail["removed"])
        for version in sorted(stored - removed - self.kept):
            said = f"the snapshot of version {version} is not there"
            self.found.add("snapshot", version, "a snapshot", "none", said)

    def next(self, version: Version | None, change: Change) -> Version | None:
        """Return the version after a change, and compare it with its snapshot if there is one.

        If it cannot be computed, return the version of the snapshot, or None.
        """
        made = None
        if version is not None and version.number + 1 == change.version:
            try:
                made = version.advance(change)
            except ValueError as error:
                said = f"version {change.version} cannot be computed: {error}"
                self.found.add("version", change.version, "a change", change.kind, said)
        kept = select(snapshots.c.data).where(
            self.ledger.own(snapshots), snapshots.c.version == change.version
        )
        data = self.connection.execute(kept).scalar() if change.version in self.kept else None
        if data is None:
            return made
        if made is None:
            return restored(self.ledger, (change.version, data), self.parts)
        if not same(made.bandit, restored(self.ledger, (change.version, data), self.parts).bandit):
            said = f"the snapshot of version {change.version} is not what was learned"
            self.found.add("snapshot", change.version, "what was learned", "another bandit", said)
        return made

    def check_outcomes(
        self, past: Sequence[Row[Any]], values: dict[int, list[float]], closed: int
    ) -> None:
        """Find missing outcomes of a version, and learned rewards that differ from what came.

        values: the rewards that came in time, by the place of the outcome in the version.
        """
        version = past[0].learned_by if past else 0
        if [row.learned_place for row in past] != list(range(closed)):
            said = f"version {version} closed {closed} decisions, and {len(past)} are there"
            self.found.add("gap", version, closed, len(past), said)
        for row in past:
            came = joined(values.get(row.learned_place, []), self.how)
            due = self.how.default_reward if came is None else came
            right = row.outcome not in (REWARD, DEFAULT) or (row.outcome == REWARD) == (
                came is not None
            )
            if row.reward is not None and (row.reward != due or not right):
                said = "what was learned is not the reward that came"
                self.found.add("reward", row.id, due, row.reward, said)

    # ---- decisions -------------------------------------------------------------------------------

    def check_decisions(self, version: Version | None, decided: Groups, number: int) -> None:
        """Find decisions whose probabilities are invalid, or differ from those of their version."""
        for _, rows in groupby(decided.up_to(number), key=lambda row: (row.stream, row.position)):
            call = [stored_of(row) for row in rows]
            whole = [self.is_distribution(one) for one in call]
            first = call[0]
            if first.version != number:
                said = f"version {first.version} of the bandit is not there"
                self.found.add("version", first.id, number, first.version, said)
            elif version is not None and all(whole) and len(call) == first.size:
                self.check_call(version, call)

    def is_distribution(self, one: Stored) -> bool:
        """Return whether a decision's probabilities, arm and propensity are valid by themselves."""
        p, before = one.probabilities, len(self.found.rows)
        if p.shape != (len(one.arms),) or not ((p >= 0) & (p <= 1 + CLOSE)).all():
            self.found.add("sum", one.id, "within [0, 1]", p.tolist(), "these are no probabilities")
        elif abs(total := float(p.sum()) - 1) > CLOSE:
            self.found.add("sum", one.id, 1.0, 1 + total, "the probabilities do not sum to 1")
        elif one.arm not in one.arms or one.propensity <= 0:
            said = "the arm is not one of those that could be chosen"
            self.found.add("arm", one.id, list(one.arms), one.arm, said)
        elif abs(gap := float(p[one.arms.index(one.arm)])) and gap != one.propensity:
            said = "the propensity is not the probability of the arm"
            self.found.add("propensity", one.id, gap, one.propensity, said)
        return len(self.found.rows) == before

    def check_call(self, version: Version, call: Sequence[Stored]) -> None:
        """Let a version make one call again, and compare its decisions with the log."""
        first, bandit = call[0], version.bandit
        if first.mode != BANDIT:
            return
        if first.arms != bandit.arms:
            said = "the arms are not those of the version"
            self.found.add("arm", first.id, list(bandit.arms), list(first.arms), said)
            return
        layout = layout_of(bandit, first.arms)
        try:
            logged = decision_of(layout, call)
            again = self.decided(version, call, logged.x)
        except ValueError as error:
            self.found.add("decision", first.id, "a decision", "none", str(error))
            return
        self.check_contexts(bandit, call, logged.x)
        probabilities, names = again.probabilities, np.asarray(again.arm).tolist()
        for i, one in enumerate(call):
            gap = float(np.abs(probabilities[i] - one.probabilities).max())
            bits = np.array_equal(again.rows[i], one.row, equal_nan=True)
            k = one.arms.index(one.arm)
            if not gap <= CLOSE:
                said = f"version {version.number} gives other probabilities"
                self.found.add(
                    "propensity", one.id, float(probabilities[i, k]), one.propensity, said
                )
            elif not np.allclose(again.rows[i], one.row, rtol=CLOSE, atol=CLOSE, equal_nan=True):
                said = f"version {version.number} gives other means, or chooses another arm"
                kind = "arm" if names[i] != one.arm else "moments"
                self.found.add(kind, one.id, names[i], one.arm, said)
            elif bits and one.arm != names[i]:
                self.found.add("arm", one.id, names[i], one.arm, "the row is of another arm")

    def check_contexts(self, bandit: Bandit, call: Sequence[Stored], x: np.ndarray) -> None:
        """Find contexts that do not encode to the logged numbers x (n, d).

        Contexts of arms with features are not compared: the log has no names for their rows.
        """
        texts = [one.context for one in call if one.context is not None]
        if bandit.of_arms or len(texts) < len(call):
            return
        given = [json.loads(text) for text in texts]
        if bandit.encoder is None:
            given = [[*one.values()] if isinstance(one, dict) else one for one in given]
        try:
            read = np.atleast_2d(floats(bandit.encoded(given), "contexts"))
        except (ValueError, TypeError):
            read = np.full(x.shape, np.nan)
        if read.shape != x.shape:
            read = np.full(x.shape, np.nan)
        for one, numbers, logged in zip(call, read, x, strict=True):
            if not np.allclose(numbers, logged, rtol=CLOSE, atol=CLOSE):
                said = "the context is not the numbers by which was decided"
                self.found.add("context", one.id, one.context, logged.tolist(), said)

    def decided(self, version: Version, call: Sequence[Stored], x: np.ndarray) -> Decision:
        first, bandit = call[0], version.bandit
        among = None if first.available == first.arms else first.available
        if bandit.of_arms:
            among = first.available
            x = np.array([one.x for one in call]).reshape(len(call), len(among), -1)
        entropy = self.entropies.get(first.stream)
        if entropy is None:
            found = select(streams.c.entropy).where(
                self.ledger.own(streams), streams.c.key == first.stream
            )
            entropy = int(self.connection.execute(found).scalar() or 0)
            self.entropies = {first.stream: entropy}
        return versions.decided(
            bandit, x, among, first.t, entropy, first.position, first.decided_at
        )


def same(one: Bandit, other: Bandit) -> bool:
    """Return whether two bandits have the same history up to rounding, and the same file."""
    x, y = one.history.ordered(), other.history.ordered()
    if one.arms != other.arms or one.t != other.t or x.shape != y.shape:
        return False
    return np.allclose(x, y, rtol=CLOSE, atol=CLOSE, equal_nan=True) and saved(one) == saved(other)
