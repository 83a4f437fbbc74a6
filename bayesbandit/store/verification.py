"""Verification of a log: compute every version again, and let it make its decisions again.

Each table is read once, row by row, as it was at one moment: memory does not grow with the log.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import Connection, Row, Select, and_, select

from bayesbandit.bandit.bandit import Bandit
from bayesbandit.bandit.decision import Decision
from bayesbandit.checks import floats
from bayesbandit.store import versions
from bayesbandit.store.consistency import AT_ONCE, Checked, check_rows, settings
from bayesbandit.store.ledger import Ledger, change_of, outcome_of, stored_of
from bayesbandit.store.records import (
    ACTIVATED,
    ADVISED,
    BANDIT,
    FALLBACK,
    INACTIVE,
    LEARN,
    LEARNED,
    OVERRULED,
    REFUSED,
    RETIRED,
    REWARD,
    SYSTEM,
    TIMELY,
    Due,
    Outcome,
    Stored,
)
from bayesbandit.store.rows import Parts, decision_of, layout_of, saved
from bayesbandit.store.settings import Settings, closed_by
from bayesbandit.store.tables import decisions, events, outcomes, rewards, snapshots, streams
from bayesbandit.store.versions import Version, restored

CLOSE = 1e-9  # by how much a probability may differ on another machine
Values = dict[int, tuple[float, ...]]  # the rewards in time, by the place of the outcome


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
    with ledger.database.read(patient=True) as connection:
        log = Checked(ledger, connection)
        if (how := settings(log)) is not None:
            check_rows(log, how)
            Verification(log, parts, how).check_versions()
        return log.frame()


@dataclass
class Verification:
    """The check of a log's versions.

    unread: why the first snapshot could not be read. entropies: that of the latest stream.
    """

    log: Checked
    parts: Parts
    how: Settings
    unread: ValueError | None = None
    entropies: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ledger, self.connection = self.log.ledger, self.log.connection

    # ---- versions --------------------------------------------------------------------------------

    def check_versions(self) -> None:
        """Compute every version again, and let it make its decisions again.

        Raise the error of the first snapshot if no snapshot can be read, as if a part of the bandit
        was not given.
        """
        own, closed = decisions.c, outcomes.c
        decided = Groups(
            self.connection,
            select(decisions)
            .where(self.ledger.own(decisions))
            .order_by(own.version, own.stream, own.position, own.place),
            "version",
        )
        learned = Groups(self.connection, self.ledger.learned(), "learned_by")
        same_decision = and_(
            rewards.c.bandit == closed.bandit, rewards.c.decision_id == closed.decision_id
        )
        told = Groups(
            self.connection,
            select(closed.version, closed.position, rewards.c.value)
            .join(rewards, same_decision)
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
        changes = select(events).where(self.ledger.own(events), events.c.version >= 0)
        at, number, readable = -(2**62), -1, False
        last: Version | None = None
        for row in self.log.rows(changes.order_by(events.c.version)):
            if row.at < at:
                said = f"version {row.version} is before the one before it"
                self.log.add("clock", row.version, at, row.at, said)
            if row.version != number + 1:
                said = f"versions {number + 1} … {row.version - 1} of the bandit are not there"
                self.log.add("gap", row.version, number + 1, row.version, said)
            at, number = row.at, row.version
            values = {
                place: tuple(one.value for one in some)
                for place, some in groupby(told.up_to(number), key=lambda one: one.position)
            }
            past = self.check_outcomes(last, number, [*learned.up_to(number)], values)
            made = None if number == 0 else self.computed(last, row, past)
            last = self.compared(made, number)
            readable = readable or last is not None
            self.check_decisions(last, decided, number)
        if self.unread is not None and not readable:
            raise self.unread
        for row in [*decided.up_to(2**62), *learned.up_to(2**62)]:
            self.log.add("version", row.id, f"at most {number}", "more", "no such version")

    def computed(
        self, version: Version | None, row: Row[Any], past: Sequence[Outcome] | None
    ) -> Version | None:
        """Return the version after the change of a row; None if it cannot be computed."""
        number = row.version
        try:
            change = change_of(row, [one for one in past or () if one.outcome in LEARNED])
            closed = change.detail["closed"] if change.kind == LEARN else 0
            if past is not None and len(past) != closed:
                said = f"version {number} closed {closed} decisions, and {len(past)} are there"
                self.log.add("gap", number, closed, len(past), said)
            if version is not None and version.number + 1 == number and past is not None:
                return version.advance(change)
        except ValueError as error:
            said = f"version {number} cannot be computed: {error}"
            self.log.add("version", number, "a change", row.kind, said)
        return None

    def compared(self, made: Version | None, number: int) -> Version | None:
        """Return this version, as it was made or as its snapshot has it, after comparing both."""
        kept = select(snapshots.c.data).where(
            self.ledger.own(snapshots), snapshots.c.version == number
        )
        if (data := self.connection.execute(kept).scalar()) is None:
            return made
        try:
            there = restored(self.ledger, (number, data), self.parts)
        except ValueError as error:
            self.unread = self.unread or error
            self.log.add("snapshot", number, "a bandit", "none", str(error))
            return made
        if made is None:
            return there
        if not same(made.bandit, there.bandit):
            said = f"the snapshot of version {number} is not what was learned"
            self.log.add("snapshot", number, "what was learned", "another bandit", said)
        return made

    def check_outcomes(
        self, version: Version | None, number: int, rows: Sequence[Row[Any]], values: Values
    ) -> list[Outcome] | None:
        """Return the outcomes of version `number`, in order; None if a decision cannot be read.

        Find those in other places, and those that differ from what came. version: the one before.
        """
        places = [(row.learned_by, row.learned_place) for row in rows]
        if places != [(number, i) for i in range(len(rows))]:
            said = f"version {number} lacks outcomes, or has them in other places"
            self.log.add("gap", number, len(rows), len({*places}), said)
        ids = [row.id for row in rows]
        active = self.happened(ACTIVATED, ids) if self.how.activation else set()
        quiet = [row.id for row in rows if row.outcome == INACTIVE]
        overruled = self.happened(OVERRULED, quiet) if quiet else set()
        found = list[Outcome]()
        for row in rows:
            try:
                one = outcome_of(row)
            except ValueError:  # `check_decisions` says it
                continue
            found.append(one)
            activated = row.id in active and one.outcome != INACTIVE  # else after it was closed
            due = Due(
                one.decision, 0, activated, row.id in overruled, values.get(row.learned_place, ())
            )
            retired = version.is_retired(one.decision) if version else one.outcome == RETIRED
            right = closed_by(due, self.how, retired)
            if one.outcome == REFUSED and right.outcome in LEARNED:
                right = replace(right, outcome=REFUSED)
            if one.outcome != right.outcome:
                said = "the decision was closed in another way than what came for it"
                self.log.add("outcome", row.id, right.outcome, one.outcome, said)
            elif one.reward != right.reward:
                said = "what was learned is not the reward that came"
                self.log.add("reward", row.id, right.reward, one.reward, said)
        self.check_refused(version, found)
        return found if len(found) == len(rows) else None

    def check_refused(self, version: Version | None, past: Sequence[Outcome]) -> None:
        """Find rewards that were refused and that the bandit can learn."""
        refused = {one.decision.id for one in past if one.outcome == REFUSED}
        if not refused or version is None:
            return
        given = [one for one in past if one.outcome in (*LEARNED, REFUSED)]
        for one in sorted(refused - {*version.refused(given)}):
            said = "the reward was refused, and the bandit can learn it"
            self.log.add("outcome", one, REWARD, REFUSED, said)

    def happened(self, kind: str, ids: Sequence[str]) -> set[str]:
        """Return those of these ids that have an event of this kind."""
        return {*self.connection.execute(self.ledger.happened(kind, ids)).scalars()}

    # ---- decisions -------------------------------------------------------------------------------

    def check_decisions(self, version: Version | None, decided: Groups, number: int) -> None:
        """Find decisions whose probabilities are invalid, or differ from those of their version."""
        for _, rows in groupby(decided.up_to(number), key=lambda row: (row.stream, row.position)):
            call, whole = list[Stored](), True
            for row in rows:
                try:
                    call.append(stored_of(row))
                    whole &= self.is_decision(call[-1], number)
                except ValueError as error:
                    self.log.add("decision", row.id, "a decision", "none", str(error))
                    whole = False
            if version is not None and whole and len(call) == call[0].size:
                self.check_call(version, call)

    def is_decision(self, one: Stored, number: int) -> bool:
        """Return whether a decision's version, mode, arm and probabilities are valid by themselves.

        number: the version that is checked now.
        """
        p, before = one.probabilities, len(self.log.found)
        if one.version != number:
            said = f"version {one.version} of the bandit is not there"
            self.log.add("version", one.id, number, one.version, said)
        elif one.mode not in (BANDIT, FALLBACK, SYSTEM):
            said = "nobody decides in this way"
            self.log.add("mode", one.id, [BANDIT, FALLBACK, SYSTEM], one.mode, said)
        elif p.shape != (len(one.arms),) or not ((p >= 0) & (p <= 1 + CLOSE)).all():
            self.log.add("sum", one.id, "within [0, 1]", p.tolist(), "these are no probabilities")
        elif abs(float(p.sum()) - 1) > CLOSE:
            said = "the probabilities do not sum to 1"
            self.log.add("sum", one.id, 1.0, float(p.sum()), said)
        elif one.arm not in one.arms or one.propensity <= 0:
            said = "the arm is not one of those that could be chosen"
            self.log.add("arm", one.id, list(one.arms), one.arm, said)
        elif one.propensity != (own := float(p[one.arms.index(one.arm)])):
            said = "the propensity is not the probability of the arm"
            self.log.add("propensity", one.id, own, one.propensity, said)
        elif one.mode == FALLBACK and one.propensity != 1:
            said = "the fallback arm is shown with probability 1"
            self.log.add("propensity", one.id, 1.0, one.propensity, said)
        return len(self.log.found) == before

    def check_call(self, version: Version, call: Sequence[Stored]) -> None:
        """Let a version make one call again, and compare its decisions with the log."""
        first, bandit = call[0], version.bandit
        if first.arms != bandit.arms:
            said = "the arms are not those of the version"
            self.log.add("arm", first.id, list(bandit.arms), list(first.arms), said)
            return
        layout = layout_of(bandit, first.arms)
        try:
            x = decision_of(layout, call).x
            again = None if first.mode == FALLBACK else self.decided(version, call, x)
        except ValueError as error:
            self.log.add("decision", first.id, "a decision", "none", str(error))
            return
        self.check_contexts(bandit, call, x)
        if again is not None and first.mode == SYSTEM:
            self.check_advice(first, again)
        elif again is not None:
            self.check_choices(version.number, call, again)

    def check_choices(self, number: int, call: Sequence[Stored], again: Decision) -> None:
        """Find decisions of version `number` that differ from those that it makes again."""
        probabilities, names = again.probabilities, np.asarray(again.arm).tolist()
        for i, one in enumerate(call):
            gap = float(np.abs(probabilities[i] - one.probabilities).max())
            bits = np.array_equal(again.rows[i], one.row, equal_nan=True)
            k = one.arms.index(one.arm)
            if not gap <= CLOSE:
                said = f"version {number} gives other probabilities"
                own = float(probabilities[i, k])
                self.log.add("propensity", one.id, own, one.propensity, said)
            elif not np.allclose(again.rows[i], one.row, rtol=CLOSE, atol=CLOSE, equal_nan=True):
                said = f"version {number} gives other means, or chooses another arm"
                kind = "arm" if names[i] != one.arm else "moments"
                self.log.add(kind, one.id, names[i], one.arm, said)
            elif bits and one.arm != names[i]:
                self.log.add("arm", one.id, names[i], one.arm, "the row is of another arm")

    def check_advice(self, one: Stored, again: Decision) -> None:
        """Find advice that the version does not give. again: its decision."""
        told = self.ledger.happened(ADVISED, [one.id]).with_only_columns(events.c.detail)
        text = self.connection.execute(told).scalar()
        arm, p = np.asarray(again.arm).tolist()[0], again.probabilities[0]
        probability = float(p[one.arms.index(one.arm)])
        try:
            detail = json.loads(text or "{}")
            right = detail["arm"] == arm and abs(detail["probability"] - probability) <= CLOSE
        except (ValueError, TypeError, KeyError):
            right = False
        if not right:
            said = "the advice is not what the bandit would have decided"
            self.log.add("advice", one.id, json.dumps([arm, probability]), text, said)

    def check_contexts(self, bandit: Bandit, call: Sequence[Stored], x: np.ndarray) -> None:
        """Find contexts that do not encode to the logged numbers x (n, d).

        Contexts of arms with features are not compared: the log has no names for their rows.
        """
        if bandit.of_arms or not bandit.n_features:
            return
        try:
            given = [json.loads(one.context or "null") for one in call]
            if bandit.encoder is None:
                given = [[*one.values()] if isinstance(one, dict) else one for one in given]
            read = np.atleast_2d(floats(bandit.encoded(given), "contexts"))
        except (ValueError, TypeError):
            read = np.full(x.shape, np.nan)
        if read.shape != x.shape:
            read = np.full(x.shape, np.nan)
        for one, numbers, logged in zip(call, read, x, strict=True):
            if not np.allclose(numbers, logged, rtol=CLOSE, atol=CLOSE):
                said = "the context is not the numbers by which was decided"
                self.log.add("context", one.id, one.context, logged.tolist(), said)

    def decided(self, version: Version, call: Sequence[Stored], x: np.ndarray) -> Decision:
        """Return the decision that a version makes at the contexts x (n, d) of a call."""
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
