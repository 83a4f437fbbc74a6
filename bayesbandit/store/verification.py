"""Verification of a log: a fold over its versions, and a map over their decisions.

Every version is computed again from the one before it, and each makes its decisions again, by the
random numbers of their ids. Each table is read row by row, as it was at one moment: memory does not
grow with the log.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import batched, groupby
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import Connection, Row, Select, or_, select, true

from bayesbandit.bandit.bandit import Bandit
from bayesbandit.bandit.choosing import choose_by_seeds
from bayesbandit.checks import floats
from bayesbandit.store.ledger import (
    CLOCK_TOLERANCE,
    Ledger,
    Snapshot,
    chained,
    change_of,
    of_decision,
    outcome_of,
)
from bayesbandit.store.records import (
    CHECKPOINT,
    INACTIVE,
    LEARNED,
    REFUSED,
    RETIRED,
    STARTED,
    TIMELY,
    UNKNOWN,
    Change,
    Due,
    Outcome,
    Stored,
)
from bayesbandit.store.rows import Parts, decision_of, layout_of, saved, seeds_of, stored_of
from bayesbandit.store.settings import Settings, closed_by
from bayesbandit.store.tables import decisions, rewards, states, versions
from bayesbandit.store.versions import Erased, Version, restored

AT_ONCE = 1000  # rows read, and decisions made again, at a time
PROBABILITY_TOLERANCE = 1e-9  # by how much a number may differ on another machine
COLUMNS = ("kind", "id", "expected", "found", "said")


def violations(ledger: Ledger, parts: Parts) -> pd.DataFrame:
    """Return one row for each violation: see `DecisionLog.verify`."""
    with ledger.database.read(patient=True) as connection:
        log = Verification(ledger, connection, parts)
        if log.begun():
            log.check_references()
            log.check_rewards()
            log.check_versions()
        return pd.DataFrame(log.found, columns=list(COLUMNS)).astype({"id": str})


class Groups:
    """The decisions of a query that is sorted by their version, taken from the front."""

    def __init__(self, rows: Iterator[Row[Any]]) -> None:
        self.rows = rows
        self.next = next(self.rows, None)

    def up_to(self, version: int) -> Iterator[Row[Any]]:
        """Yield the next rows of this version or an earlier one."""
        while self.next is not None and self.next.version <= version:
            row, self.next = self.next, next(self.rows, None)
            yield row


@dataclass
class Verification:
    """A log, as it was at one moment, and the violations that were found: one row each.

    unread: why the first snapshot could not be read.
    """

    ledger: Ledger
    connection: Connection
    parts: Parts
    how: Settings = field(default_factory=Settings)
    secret: bytes = b""
    unread: ValueError | None = None
    found: list[tuple[str, str, object, object, str]] = field(default_factory=list)

    def add(self, kind: str, one: object, expected: object, found: object, said: str) -> None:
        """Add a violation."""
        self.found.append((kind, str(one), expected, found, said))

    def rows(self, query: Select[Any]) -> Iterator[Row[Any]]:
        """Yield the rows of a query."""
        yield from self.connection.execution_options(yield_per=AT_ONCE).execute(query)

    def begun(self) -> bool:
        """Return whether the log says how its bandit began; an empty one has nothing to say."""
        try:
            if (known := self.ledger.beginning()) is not None:
                self.how, self.secret = known.settings, known.secret
                return True
        except ValueError as error:
            self.add("version", 0, "how the bandit began", "none", str(error))
            return False
        own = (select(one.c.bandit).where(self.ledger.own(one)) for one in (decisions, versions))
        if any(self.connection.execute(one.limit(1)).first() for one in own):
            said = "the log does not say how the bandit began, and nothing else can be checked"
            self.add("version", 0, "how the bandit began", "none", said)
        return False

    # ---- what rows show by themselves ------------------------------------------------------------

    def check_references(self) -> None:
        """Find states and rewards without a decision, and decisions without a state.

        A reward that was of an unknown decision when it came is what it says, and no violation.
        """
        own = self.ledger.own
        had_decision = rewards.c.status != UNKNOWN
        for kind, table, claims in (("state", states, true()), ("reward", rewards, had_decision)):
            lost = select(table.c.decision_id).outerjoin(decisions, of_decision(table))
            for row in self.rows(lost.where(own(table), decisions.c.id.is_(None), claims)):
                said = f"there is a row of {kind} and no decision {row.decision_id!r}"
                self.add(f"{kind} without decision", row.decision_id, "a decision", None, said)
        lost = select(decisions.c.id).outerjoin(states, of_decision(states))
        for row in self.rows(lost.where(own(decisions), states.c.bandit.is_(None))):
            said = "the decision is neither open nor closed"
            self.add("state", row.id, "open or closed", "neither", said)

    def check_rewards(self) -> None:
        """Find rewards that count though they came before their decision, or too late."""
        at, decided_at = rewards.c.observed_at, decisions.c.decided_at
        wrong = at < decided_at - CLOCK_TOLERANCE
        if self.how.wait is not None:
            wrong = or_(wrong, at > decided_at + self.how.wait)
        counted = (
            select(rewards, decided_at)
            .join(decisions, of_decision(rewards))
            .where(self.ledger.own(rewards), rewards.c.status == TIMELY, wrong)
        )
        for row in self.rows(counted):
            said = "a reward counts that came before its decision, or too late"
            self.add("reward", row.decision_id, row.decided_at, row.observed_at, said)

    # ---- versions --------------------------------------------------------------------------------

    def check_versions(self) -> None:
        """Compute every version again, and let it make its decisions again.

        Raise the error of the first snapshot if no snapshot can be read, as if a part of the bandit
        was not given.
        """
        own = self.ledger.own
        of_version = select(decisions).where(own(decisions)).order_by(decisions.c.version)
        made = Groups(self.rows(of_version))
        changes = select(versions).where(own(versions), versions.c.number >= 0)
        before: Row[Any] | None = None
        last: Version | None = None
        readable = False
        for row in self.rows(changes.order_by(versions.c.number)):
            closing = self.ledger.closed().where(states.c.version == row.number)
            closed = self.connection.execute(closing).all()
            change = self.change(before, row, closed)
            if change is not None:
                self.check_outcomes(last, change, closed)
            last = self.compared(self.computed(last, change), row)
            readable = readable or last is not None
            self.check_decisions(last, made, row)
            before = row
        if self.unread is not None and not readable:
            raise self.unread
        number = -1 if before is None else before.number
        closing = self.ledger.closed().where(states.c.version > number)
        for row in [*made.up_to(2**62), *self.rows(closing)]:
            self.add("version", row.id, f"at most {number}", "more", "no such version")

    def change(
        self, before: Row[Any] | None, row: Row[Any], closed: Sequence[Row[Any]]
    ) -> Change | None:
        """Return the change of a version, after comparing it with the version before.

        closed: the decisions that it closed. Return None if it cannot be read.
        """
        number = row.number
        outcomes = list[Outcome]()
        for one in closed:
            try:
                outcomes.append(outcome_of(one))
            except ValueError as error:
                self.add("decision", one.id, "a decision", "none", str(error))
        if before is not None:
            if row.at < before.at:
                said = f"version {number} is before the one before it"
                self.add("clock", number, before.at, row.at, said)
            pruned = before.number == 0 and row.kind == CHECKPOINT  # what came between may go
            if number == before.number + 1:
                digest = chained(before.digest, row.at, row.kind, row.detail, outcomes)
                if digest != row.digest:
                    said = f"what version {number} closed is not what it closed when it was made"
                    self.add("digest", number, row.digest.hex(), digest.hex(), said)
            elif not pruned:
                said = f"versions {before.number + 1} … {number - 1} of the bandit are not there"
                self.add("gap", number, before.number + 1, number, said)
            if before.number == 0 and before.snapshot is None and not pruned:
                said = "the snapshot of version 0 is not there"
                self.add("snapshot", 0, "a snapshot", "none", said)
        if row.kind == STARTED:
            return None
        try:
            change = change_of(row, outcomes)
        except ValueError as error:
            said = f"version {number} cannot be computed: {error}"
            self.add("version", number, "a change", row.kind, said)
            return None
        return change if len(outcomes) == len(closed) else None

    def computed(self, last: Version | None, change: Change | None) -> Version | None:
        """Return the version after a change; None if it cannot be computed."""
        if last is None or change is None or change.number != last.number + 1:
            return None
        try:
            return last.advance(change)
        except Erased:
            return None
        except ValueError as error:
            said = f"version {change.number} cannot be computed: {error}"
            self.add("version", change.number, "a change", change.kind, said)
            return None

    def compared(self, made: Version | None, row: Row[Any]) -> Version | None:
        """Return this version, as it was made or as its snapshot has it, after comparing both."""
        number = row.number
        if row.snapshot is None:
            return made
        try:
            there = restored(self.ledger, Snapshot(number, row.digest, row.snapshot), self.parts)
        except ValueError as error:
            self.unread = self.unread or error
            self.add("snapshot", number, "a bandit", "none", str(error))
            return made
        if made is None:
            return there
        if saved(made.bandit) != saved(there.bandit):
            said = f"the snapshot of version {number} is not what was learned"
            self.add("snapshot", number, "what was learned", "another bandit", said)
        return made

    def check_outcomes(
        self, version: Version | None, change: Change, closed: Sequence[Row[Any]]
    ) -> None:
        """Find decisions that were closed otherwise than what came for them says."""
        own = self.ledger.own(states), states.c.version == change.number
        told = self.ledger.came(self.connection, select(states.c.decision_id).where(*own))
        for one, row in zip(change.outcomes, closed, strict=True):
            if one.decision.erased:
                continue
            came = tuple(value for value, _ in told.get(row.id, []))
            shown = row.shown and one.outcome != INACTIVE  # else after it was closed
            retired = version.is_retired(one.decision) if version else one.outcome == RETIRED
            right = closed_by(Due(one.decision, len(came), shown, came), self.how, retired)
            if one.outcome == REFUSED and right.outcome in LEARNED:
                right = replace(right, outcome=REFUSED)
            expected, found = (right.outcome, right.reward), (one.outcome, one.reward)
            if expected != found:
                said = "the decision was closed in another way than what came for it"
                self.add("outcome", one.decision.id, expected, found, said)

    # ---- decisions -------------------------------------------------------------------------------

    def check_decisions(self, version: Version | None, made: Groups, row: Row[Any]) -> None:
        """Let a version make its decisions again, and compare them with the log.

        made: the decisions of this version come next. Those of versions that were pruned, or that
        cannot be computed, are only read.
        """
        number = row.number
        for some in batched(made.up_to(number), AT_ONCE):
            good = list[Stored]()
            for one in some:
                if one.version < number and row.kind == CHECKPOINT:
                    continue  # of a version that was pruned
                try:
                    stored = stored_of(one)
                except ValueError as error:
                    self.add("decision", one.id, "a decision", "none", str(error))
                    continue
                if one.version != number:
                    said = f"version {one.version} of the bandit is not there"
                    self.add("version", one.id, number, one.version, said)
                elif not stored.erased:
                    good.append(stored)
            if version is not None:
                good.sort(key=_arms)
                for _, alike in groupby(good, key=_arms):
                    self.decide_again(version, [*alike])

    def decide_again(self, version: Version, some: Sequence[Stored]) -> None:
        """Compare decisions, all about the same arms, with those that a version makes again."""
        first = some[0]
        bandit = version.bandit
        try:
            if first.arms != bandit.arms:
                raise ValueError(f"the arms of version {version.number} are {list(bandit.arms)}")
            among = None if first.available == first.arms else first.available
            x = decision_of(layout_of(bandit, first.arms), some).x
            contexts = _contexts(bandit, some, x)
            if bandit.of_arms:
                x = np.array([one.x for one in some]).reshape(len(some), len(first.available), -1)
            seeds = seeds_of(self.secret, [one.id for one in some])
            t, at = [one.t for one in some], [one.decided_at for one in some]
            again = choose_by_seeds(bandit, x, among, seeds, t, at)
        except (ValueError, TypeError) as error:
            if len(some) == 1:
                self.add("decision", first.id, "a decision", "none", str(error))
            else:
                for one in some:
                    self.decide_again(version, [one])
            return
        names = np.asarray(again.arm).tolist()
        p = again.probabilities
        own = p[np.arange(len(some)), [bandit.number(arm) for arm in names]]
        right = _alike(p, [one.probabilities for one in some])
        right &= _alike(own, [one.propensity for one in some])
        same = _alike(again.rows, [one.row for one in some])
        given = _alike(contexts, [*x])
        said = f"version {version.number} decides otherwise"
        for i, one in enumerate(some):
            if names[i] != one.arm:
                self.add("arm", one.id, names[i], one.arm, said)
            elif not right[i]:
                self.add("propensity", one.id, p[i].tolist(), one.probabilities.tolist(), said)
            elif not same[i]:
                self.add("moments", one.id, again.rows[i].tolist(), one.row.tolist(), said)
            if not (bandit.of_arms or given[i]):
                how = "the context is not the numbers by which was decided"
                self.add("context", one.id, one.context, x[i].tolist(), how)


def _arms(one: Stored) -> tuple[object, object]:
    return one.arms, one.available


def _alike(computed: np.ndarray, logged: Sequence[Any]) -> np.ndarray:
    """Return which rows (n,) have the same numbers, but for rounding.

    computed: (n, …). logged: n arrays or numbers, which may have other shapes.
    """
    blank = np.full(computed.shape[1:], np.nan)
    whole = np.array([np.shape(one) == blank.shape for one in logged])
    table = np.array([one if fits else blank for one, fits in zip(logged, whole, strict=True)])
    near = np.isclose(
        computed, table, rtol=PROBABILITY_TOLERANCE, atol=PROBABILITY_TOLERANCE, equal_nan=True
    )
    return np.asarray(whole & near.reshape(len(whole), -1).all(axis=1))


def _contexts(bandit: Bandit, some: Sequence[Stored], x: np.ndarray) -> np.ndarray:
    """Return the numbers (n, d) to which the contexts of decisions encode, as they were given.

    For arms with features it is the logged x (n, d): the log has no names for their rows.
    """
    if bandit.of_arms or not bandit.n_features:
        return x
    given = [json.loads(one.context or "null") for one in some]
    if bandit.encoder is None:
        given = [[*one.values()] if isinstance(one, dict) else one for one in given]
    return np.atleast_2d(floats(bandit.encoded(given), "contexts"))
