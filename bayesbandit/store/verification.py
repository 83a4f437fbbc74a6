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
from sqlalchemy import ColumnElement, Connection, Row, Select, and_, or_, select

from bayesbandit.bandit.bandit import Bandit
from bayesbandit.checks import floats
from bayesbandit.store.ledger import (
    CLOCKS,
    Ledger,
    Snapshot,
    chained,
    change_of,
    of_decision,
    outcome_of,
    unknown_key,
)
from bayesbandit.store.records import (
    BANDIT,
    CHECKPOINT,
    INACTIVE,
    LATE,
    LEARN,
    LEARNED,
    REFUSED,
    RETIRED,
    REWARD,
    STARTED,
    SYSTEM,
    TIMELY,
    UNKNOWN,
    Change,
    Due,
    Outcome,
    Stored,
)
from bayesbandit.store.rows import Parts, decision_of, layout_of, saved, stored_of
from bayesbandit.store.settings import Settings, closed_by
from bayesbandit.store.tables import decisions, rewards, states, versions
from bayesbandit.store.versions import Erased, Version, decided, digests, restored

AT_ONCE = 1000  # rows read, and decisions made again, at a time
CLOSE = 1e-9  # by how much a probability may differ on another machine
COLUMNS = ("kind", "id", "expected", "found", "said")
TABLES = {"state": states, "reward": rewards}


def violations(ledger: Ledger, parts: Parts) -> pd.DataFrame:
    """Return one row for each violation: see `DecisionLog.verify`."""
    with ledger.database.read(patient=True) as connection:
        log = Verification(ledger, connection, parts)
        if log.begun():
            log.check_references()
            log.check_rewards()
            log.check_queue()
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
        said = "the log does not say how the bandit began, and nothing else can be checked"
        try:
            if (how := self.ledger.settings()) is not None:
                self.how, self.secret = how, self.ledger.secret()
                return True
        except (ValueError, KeyError, TypeError) as error:
            said = str(error)
        else:
            own = self.ledger.own
            some = (select(one.c.bandit).where(own(one)) for one in (decisions, states, versions))
            if not any(self.connection.execute(one.limit(1)).first() for one in some):
                return False
        self.add("version", 0, "how the bandit began", "none", said)
        return False

    # ---- what rows show by themselves ------------------------------------------------------------

    def check_references(self) -> None:
        """Find states and rewards without a decision, and decisions without a state."""
        for kind, table in TABLES.items():
            lost = select(table.c.decision_id).outerjoin(decisions, of_decision(table))
            lost = lost.where(self.ledger.own(table), decisions.c.id.is_(None))
            for row in self.rows(lost):
                said = f"there is a row of {kind} and no decision {row.decision_id!r}"
                self.add(f"{kind} without decision", row.decision_id, "a decision", None, said)
        lost = select(decisions.c.id).outerjoin(states, of_decision(states))
        for row in self.rows(lost.where(self.ledger.own(decisions), states.c.bandit.is_(None))):
            said = "the decision is neither open nor closed"
            self.add("state", row.id, "open or closed", "neither", said)

    def check_rewards(self) -> None:
        """Find rewards observed before their decision, and those whose status is wrong."""
        own = rewards.c
        decided_at = decisions.c.decided_at
        wait = self.how.wait
        known = (
            select(rewards, decided_at)
            .join(decisions, of_decision(rewards))
            .join(states, of_decision(states))
            .where(self.ledger.own(rewards))
        )
        for row in self.rows(known.where(own.observed_at < decided_at - CLOCKS)):
            said = "the reward was observed before the decision"
            self.add("clock", row.decision_id, row.decided_at, row.observed_at, said)
        in_time: ColumnElement[bool] = states.c.outcome.is_(None)
        if wait is not None:
            end = decided_at + wait
            for row in self.rows(known.where(own.status == TIMELY, own.observed_at > end)):
                said = "a reward counts that came too late"
                self.add("late", row.decision_id, row.decided_at + wait, row.observed_at, said)
            in_time = and_(in_time, own.observed_at <= end)
        if self.how.aggregate == "first":  # those after the first one are late
            in_time = and_(in_time, states.c.came == 0)
        strange = or_(own.status.not_in((TIMELY, LATE)), and_(own.status == LATE, in_time))
        for row in self.rows(known.where(strange)):
            before = row.key == unknown_key(row.key.rpartition(" unknown ")[0], row.value)
            if row.status != UNKNOWN or not before:  # else it came before the decision
                said = "a reward does not count that came in time"
                self.add("late", row.decision_id, TIMELY, row.status, said)

    def check_queue(self) -> None:
        """Find open decisions that would be learned too early, too late, or never."""
        told = select(rewards.c.bandit).where(
            rewards.c.bandit == states.c.bandit,
            rewards.c.decision_id == states.c.decision_id,
            rewards.c.status == TIMELY,
        )
        queue = select(states, decisions.c.decided_at, told.exists().label("told"))
        queue = queue.join(decisions, of_decision(states))
        for row in self.rows(queue.where(self.ledger.own(states), states.c.outcome.is_(None))):
            end = None if self.how.wait is None else row.decided_at + self.how.wait
            ready = self.how.aggregate == "first" and row.told
            ready = ready and (row.shown or not self.how.activation)
            early = row.due is not None and (end is None or row.due <= end)
            if not (early if ready else row.due == end) or bool(row.came) != bool(row.told):
                said = "the decision is not learned when it should be"
                self.add("open", row.decision_id, end, row.due, said)

    # ---- versions --------------------------------------------------------------------------------

    def check_versions(self) -> None:
        """Compute every version again, and let it make its decisions again.

        Raise the error of the first snapshot if no snapshot can be read, as if a part of the bandit
        was not given.
        """
        of_version = select(decisions).where(self.ledger.own(decisions))
        made = Groups(self.rows(of_version.order_by(decisions.c.version)))
        changes = select(versions).where(self.ledger.own(versions), versions.c.number >= 0)
        at = until = vouched = -(2**62)
        number = -1
        readable = False
        digest = b""
        last: Version | None = None
        for row in self.rows(changes.order_by(versions.c.number)):
            pruned = number == 0 and row.kind == CHECKPOINT  # what came before may have gone
            vouched = row.at + CLOCKS if pruned else vouched
            if row.at < at:
                said = f"version {row.number} is before the one before it"
                self.add("clock", row.number, at, row.at, said)
            if row.number != number + 1 and not pruned:
                said = f"versions {number + 1} … {row.number - 1} of the bandit are not there"
                self.add("gap", row.number, number + 1, row.number, said)
            whole = row.number == number + 1
            at = row.at
            number = row.number
            closing = self.ledger.closed().where(states.c.version == number)
            closed = self.connection.execute(closing).all()
            change = self.change(row, closed, digest if whole else None)
            digest = row.digest
            if change is not None:
                until = self.check_count(change, until, vouched)
                self.check_outcomes(last, change, closed)
            last = self.compared(self.computed(last, change), row)
            readable = readable or last is not None
            self.check_decisions(last, made, row)
        if self.unread is not None and not readable:
            raise self.unread
        closing = self.ledger.closed().where(states.c.version > number)
        for row in [*made.up_to(2**62), *self.rows(closing)]:
            self.add("version", row.id, f"at most {number}", "more", "no such version")

    def change(
        self, row: Row[Any], closed: Sequence[Row[Any]], before: bytes | None
    ) -> Change | None:
        """Return the change of a row, after comparing its digest; None if it cannot be read.

        closed: the decisions that it closed. before: the digest of the version before, if that is
        there.
        """
        outcomes = list[Outcome]()
        for one in closed:
            try:
                outcomes.append(outcome_of(one))
            except ValueError as error:
                self.add("decision", one.id, "a decision", "none", str(error))
        if row.number > 0 and before is not None:
            digest = chained(before, row.at, row.kind, row.detail, outcomes)
            if digest != row.digest:
                said = f"what version {row.number} closed is not what it closed when it was made"
                self.add("digest", row.number, row.digest.hex(), digest.hex(), said)
        if row.kind == STARTED:
            return None
        try:
            change = change_of(row, outcomes)
        except ValueError as error:
            said = f"version {row.number} cannot be computed: {error}"
            self.add("version", row.number, "a change", row.kind, said)
            return None
        told = change.detail["closed"] if change.kind == LEARN else 0
        if len(closed) != told:
            said = f"version {row.number} closed {told} decisions, and {len(closed)} are there"
            self.add("gap", row.number, told, len(closed), said)
        return change if len(outcomes) == len(closed) else None

    def check_count(self, change: Change, since: int, vouched: int) -> int:
        """Compare how many decisions there are with those that a version counted.

        since: until when was counted before. vouched: decisions of an earlier time may have been
        pruned. Return until when this version counted.
        """
        detail = change.detail
        if change.kind != LEARN or detail.get("until", since) <= since:
            return since
        between = self.ledger.decided_between(since, detail["until"])
        n = self.connection.execute(between).scalar() or 0
        if n < detail["decided"] and since >= vouched:
            said = (
                f"version {change.number} counted {detail['decided']} decisions, and {n} are left"
            )
            self.add("gap", change.number, detail["decided"], n, said)
        return int(detail["until"])

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
            alone = number == 0 and self.ledger.first_snapshot() is None
            if alone or (number == 0 and self.ledger.digest(1) is not None):  # it is not pruned
                said = "the snapshot of version 0 is not there"
                self.add("snapshot", 0, "a snapshot", "none", said)
            return made
        try:
            there = restored(self.ledger, Snapshot(number, row.digest, row.snapshot), self.parts)
        except ValueError as error:
            self.unread = self.unread or error
            self.add("snapshot", number, "a bandit", "none", str(error))
            return made
        if made is None:
            return there
        if not same(made.bandit, there.bandit):
            said = f"the snapshot of version {number} is not what was learned"
            self.add("snapshot", number, "what was learned", "another bandit", said)
        return made

    def check_outcomes(
        self, version: Version | None, change: Change, closed: Sequence[Row[Any]]
    ) -> None:
        """Find decisions that were closed otherwise than what came for them says."""
        told = self.ledger.came(self.connection, [row.id for row in closed])
        for one, row in zip(change.outcomes, closed, strict=True):
            if one.decision.erased:
                continue
            came = tuple(value for value, _ in told.get(row.id, []))
            shown = row.shown and one.outcome != INACTIVE  # else after it was closed
            retired = version.is_retired(one.decision) if version else one.outcome == RETIRED
            right = closed_by(Due(one.decision, len(came), shown, came), self.how, retired)
            if one.outcome == REFUSED and right.outcome in LEARNED:
                right = replace(right, outcome=REFUSED)
            if one.outcome != right.outcome:
                said = "the decision was closed in another way than what came for it"
                self.add("outcome", one.decision.id, right.outcome, one.outcome, said)
            elif one.reward != right.reward:
                said = "what was learned is not the reward that came"
                self.add("reward", one.decision.id, right.reward, one.reward, said)
        refused = {one.decision.id for one in change.outcomes if one.outcome == REFUSED}
        if refused and version is not None:
            given = [one for one in change.outcomes if one.outcome in (*LEARNED, REFUSED)]
            for id_ in sorted(refused - {*version.refused(given)}):
                said = "the reward was refused, and the bandit can learn it"
                self.add("outcome", id_, REWARD, REFUSED, said)

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
                if self.is_sound(stored, number) and not stored.erased:
                    good.append(stored)
            if version is not None:
                good.sort(key=lambda one: (one.arms, one.available))
                for _, alike in groupby(good, key=lambda one: (one.arms, one.available)):
                    self.decide_again(version, [*alike])

    def is_sound(self, one: Stored, number: int) -> bool:
        """Return whether a decision is one; add what is wrong with it."""
        before = len(self.found)
        p = one.probabilities
        if one.version != number:
            said = f"version {one.version} of the bandit is not there"
            self.add("version", one.id, number, one.version, said)
        elif one.mode not in (BANDIT, SYSTEM):
            self.add("mode", one.id, [BANDIT, SYSTEM], one.mode, "nobody decides in this way")
        elif (one.mode == SYSTEM) == (one.advice is None):
            said = "another system decided, and the log has no advice; or the other way round"
            self.add("advice", one.id, "both or neither", "one", said)
        elif p.shape != (len(one.arms),) or not ((p >= 0) & (p <= 1 + CLOSE)).all():
            self.add("sum", one.id, "within [0, 1]", p.tolist(), "these are no probabilities")
        elif abs(float(p.sum()) - 1) > CLOSE:
            said = "the probabilities do not sum to 1"
            self.add("sum", one.id, 1.0, float(p.sum()), said)
        elif one.arm not in one.arms or one.propensity <= 0:
            said = "the arm is not one of those that could be chosen"
            self.add("arm", one.id, list(one.arms), one.arm, said)
        elif one.propensity != (own := float(p[one.arms.index(one.arm)])):
            said = "the propensity is not the probability of the arm"
            self.add("propensity", one.id, own, one.propensity, said)
        return len(self.found) == before

    def decide_again(self, version: Version, some: Sequence[Stored]) -> None:
        """Compare decisions, all about the same arms, with those that a version makes again."""
        first = some[0]
        bandit = version.bandit
        if first.arms != bandit.arms:
            said = "the arms are not those of the version"
            for one in some:
                self.add("arm", one.id, list(bandit.arms), list(one.arms), said)
            return
        among = None if first.available == first.arms else first.available
        try:
            x = decision_of(layout_of(bandit, first.arms), some).x
            if bandit.of_arms:
                x = np.array([one.x for one in some]).reshape(len(some), len(first.available), -1)
            seeds = digests(self.secret, [one.id for one in some])
            t, at = [one.t for one in some], [one.decided_at for one in some]
            again = decided(bandit, x, among, seeds, t, at)
        except (ValueError, TypeError) as error:
            if len(some) == 1:
                self.add("decision", first.id, "a decision", "none", str(error))
            else:
                for one in some:
                    self.decide_again(version, [one])
            return
        self.check_contexts(bandit, some, x)
        number = version.number
        names = np.asarray(again.arm).tolist()
        for one, arm, p, row in zip(some, names, again.probabilities, again.rows, strict=True):
            if one.mode == SYSTEM:
                self.check_advice(one, arm, p)
            elif not np.abs(p - one.probabilities).max() <= CLOSE:
                own = float(p[one.arms.index(one.arm)])
                said = f"version {number} gives other probabilities"
                self.add("propensity", one.id, own, one.propensity, said)
            elif arm != one.arm:
                said = f"version {number} chooses another arm"
                self.add("arm", one.id, arm, one.arm, said)
            elif not np.allclose(row, one.row, rtol=CLOSE, atol=CLOSE, equal_nan=True):
                self.add("moments", one.id, arm, one.arm, f"version {number} gives other means")

    def check_advice(self, one: Stored, arm: object, p: np.ndarray) -> None:
        """Find advice that the version does not give: its arm, and its probabilities (K,)."""
        probability = float(p[one.arms.index(one.arm)])
        try:
            detail = json.loads(one.advice or "{}")
            right = detail["arm"] == arm and abs(detail["probability"] - probability) <= CLOSE
        except (ValueError, TypeError, KeyError):
            right = False
        if not right:
            said = "the advice is not what the bandit would have decided"
            self.add("advice", one.id, json.dumps([arm, probability]), one.advice, said)

    def check_contexts(self, bandit: Bandit, some: Sequence[Stored], x: np.ndarray) -> None:
        """Find contexts that do not encode to the logged numbers x (n, d).

        Contexts of arms with features are not compared: the log has no names for their rows.
        """
        if bandit.of_arms or not bandit.n_features:
            return
        try:
            given = [json.loads(one.context or "null") for one in some]
            if bandit.encoder is None:
                given = [[*one.values()] if isinstance(one, dict) else one for one in given]
            read = np.atleast_2d(floats(bandit.encoded(given), "contexts"))
            wrong = read.shape != x.shape
        except (ValueError, TypeError):
            wrong = True
        if wrong and len(some) > 1:
            for i, one in enumerate(some):
                self.check_contexts(bandit, [one], x[i : i + 1])
            return
        for i, (one, logged) in enumerate(zip(some, x, strict=True)):
            if wrong or not np.allclose(read[i], logged, rtol=CLOSE, atol=CLOSE):
                said = "the context is not the numbers by which was decided"
                self.add("context", one.id, one.context, logged.tolist(), said)


def same(one: Bandit, other: Bandit) -> bool:
    """Return whether two bandits have the same history up to rounding, and the same file."""
    x, y = one.history.ordered(), other.history.ordered()
    if one.arms != other.arms or one.t != other.t or x.shape != y.shape:
        return False
    return np.allclose(x, y, rtol=CLOSE, atol=CLOSE, equal_nan=True) and saved(one) == saved(other)
