"""Verification of a log: every version is computed again, and makes its decisions again.

Versions are computed from the one before, and decisions by the random numbers of their ids. Each
table is read row by row, as it was at one moment: memory does not grow with the log.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import batched, groupby
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import Connection, Row, Select, or_, select

from bayesbandit import checks
from bayesbandit.bandit.bandit import Bandit
from bayesbandit.bandit.choosing import choose_by_seeds
from bayesbandit.checks import Array, floats
from bayesbandit.store.ledger import (
    CLOCK_TOLERANCE,
    Ledger,
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
    Outcome,
    Stored,
)
from bayesbandit.store.rows import Parts, decision_of, saved, seeds_of, stored_of
from bayesbandit.store.settings import Settings, closed_by
from bayesbandit.store.tables import decisions, rewards, states, versions
from bayesbandit.store.versions import Gone, Version, restored

ROWS_AT_A_TIME = 1000  # rows read, and decisions made again, at a time
PROBABILITY_TOLERANCE = 1e-9  # by how much a number may differ on another machine
COLUMNS = ("kind", "id", "expected", "found", "said")


def violations(ledger: Ledger, parts: Parts) -> pd.DataFrame:
    """Return one row for each violation: see `DecisionLog.verify`."""
    with ledger.database.read(patient=True) as connection:
        log = Verification(ledger, connection, parts)
        log.check()
        return pd.DataFrame(log.found, columns=list(COLUMNS)).astype({"id": str})


class Verification:
    """A log, as it was at one moment, and the violations that were found: one row each."""

    def __init__(self, ledger: Ledger, connection: Connection, parts: Parts) -> None:
        self.ledger = ledger
        self.connection = connection
        self.parts = parts
        self.settings = Settings()
        self.secret = b""
        self.unread: ValueError | None = None  # why the first snapshot could not be read
        self.found: list[tuple[str, str, object, object, str]] = []
        by_version = select(decisions).order_by(decisions.c.version)
        self.decisions = self.rows(by_version)
        self.ahead = next(self.decisions, None)  # the first that is not checked yet

    def add(self, kind: str, one: object, expected: object, found: object, said: str) -> None:
        """Add a violation."""
        self.found.append((kind, str(one), expected, found, said))

    @contextmanager
    def noting(self, kind: str, one: object, expected: str) -> Iterator[None]:
        """Add a violation if the `with` block raises ValueError, and go on after it."""
        try:
            yield
        except ValueError as error:
            self.add(kind, one, expected, "none", str(error))

    def rows(self, query: Select[Any]) -> Iterator[Row[Any]]:
        """Yield the rows of a query."""
        yield from self.connection.execution_options(yield_per=ROWS_AT_A_TIME).execute(query)

    def decisions_up_to(self, version: int) -> Iterator[Row[Any]]:
        """Yield the next decisions of this version or an earlier one."""
        while self.ahead is not None and self.ahead.version <= version:
            yield self.ahead
            self.ahead = next(self.decisions, None)

    def check(self) -> None:
        """Find all violations; only how the bandit began is checked where that cannot be read."""
        newest = None
        with self.noting("version", 0, "how the bandit began"):
            newest = self.ledger.beginning()
            numbers = select(decisions.c.id), select(versions.c.number)
            if newest is None and any(
                self.connection.execute(one.limit(1)).first() for one in numbers
            ):
                raise ValueError(
                    "the log does not say how the bandit began: no more can be checked"
                )
        if newest is not None:
            self.settings = newest.settings
            self.secret = newest.secret
            self.check_rows()
            self.check_versions()

    def check_rows(self) -> None:
        """Find violations that single rows show.

        A reward that is stored as "unknown" needs no decision.
        """
        at = rewards.c.observed_at
        decided_at = decisions.c.decided_at
        wrong = at < decided_at - CLOCK_TOLERANCE
        if self.settings.wait is not None:
            wrong = or_(wrong, at > decided_at + self.settings.wait)
        state = select(states.c.decision_id).outerjoin(decisions, of_decision(states))
        reward = select(rewards.c.decision_id).outerjoin(decisions, of_decision(rewards))
        decision = select(decisions.c.id).outerjoin(states, of_decision(states))
        lost = decisions.c.id.is_(None)
        for kind, query, expected, found, said in (
            ("state without decision", state.where(lost), "a decision", None,
             "there is a state, and no decision"),
            ("reward without decision", reward.where(lost, rewards.c.status != UNKNOWN),
             "a decision", None, "there is a reward, and no decision"),
            ("state", decision.where(states.c.decision_id.is_(None)), "open or closed", "neither",
             "the decision is neither open nor closed"),
            ("reward", reward.where(rewards.c.status == TIMELY, wrong), "in time", "not",
             "a reward counts that came before its decision, or too late"),
        ):  # fmt: skip
            for (id_,) in self.rows(query):
                self.add(kind, id_, expected, found, said)

    # ---- versions --------------------------------------------------------------------------------

    def check_versions(self) -> None:
        """Compute every version again, and let it make its decisions again.

        Raise the error of the first snapshot if no snapshot can be read, as if a part of the bandit
        was not given.
        """
        changes = select(versions).where(versions.c.number >= 0)
        before: Row[Any] | None = None
        last: Version | None = None
        readable = False
        for row in self.rows(changes.order_by(versions.c.number)):
            closing = self.ledger.closed().where(states.c.version == row.number)
            closed = self.connection.execute(closing).all()
            outcomes = list[Outcome]()
            for one in closed:
                with self.noting("decision", one.id, "a decision"):
                    outcomes.append(outcome_of(one))
            if before is not None:
                self.check_chain(before, row, outcomes)
            if len(outcomes) == len(closed):
                self.check_outcomes(last, closed, outcomes)
            else:
                last = None
            last = self.following(last, row, outcomes)
            readable = readable or last is not None
            self.check_decisions(last, row)
            before = row
        if self.unread is not None and not readable:
            raise self.unread
        number = -1 if before is None else before.number
        closing = self.ledger.closed().where(states.c.version > number)
        for row in [*self.decisions_up_to(2**62), *self.rows(closing)]:
            self.add("version", row.id, f"at most {number}", "more", "no such version")

    def check_chain(self, before: Row[Any], row: Row[Any], outcomes: Sequence[Outcome]) -> None:
        """Compare a version with the one before it."""
        number = row.number
        if row.at < before.at:
            sentence = f"version {number} is before the one before it"
            self.add("clock", number, before.at, row.at, sentence)
        pruned = before.number == 0 and row.kind == CHECKPOINT  # what came between may go
        if number == before.number + 1:
            digest = chained(before.digest, row.at, row.kind, row.detail, outcomes)
            if digest != row.digest:
                sentence = f"what version {number} closed is not what it closed when it was made"
                self.add("digest", number, row.digest.hex(), digest.hex(), sentence)
        elif not pruned:
            sentence = f"versions {before.number + 1} … {number - 1} of the bandit are not there"
            self.add("gap", number, before.number + 1, number, sentence)
        if before.number == 0 and before.snapshot is None and not pruned:
            sentence = "the snapshot of version 0 is not there"
            self.add("snapshot", 0, "a snapshot", "none", sentence)

    def following(
        self, last: Version | None, row: Row[Any], outcomes: Sequence[Outcome]
    ) -> Version | None:
        """Return the version of a change, as it is computed from the last one, or as its snapshot
        has it, after comparing both; None if it cannot be known."""
        number = row.number
        version = None
        if row.kind != STARTED:
            with self.noting("version", number, "a change"), suppress(Gone):
                change = change_of(row, outcomes)
                if last is not None and number == last.number + 1:
                    version = last.advance(change)
        if row.snapshot is None:
            return version
        try:
            snapshot = restored(row, self.parts)
        except ValueError as error:
            self.unread = self.unread or error
            self.add("snapshot", number, "a bandit", "none", str(error))
            return version
        if version is not None and saved(version.bandit) != saved(snapshot.bandit):
            sentence = f"the snapshot of version {number} is not what was learned"
            self.add("snapshot", number, "what was learned", "another bandit", sentence)
        return version or snapshot

    def check_outcomes(
        self, version: Version | None, closed: Sequence[Row[Any]], outcomes: Sequence[Outcome]
    ) -> None:
        """Find decisions that were closed otherwise than what came for them says."""
        for one, row in zip(outcomes, closed, strict=True):
            if one.decision.erased:
                continue
            shown = row.shown and one.outcome != INACTIVE  # else after it was closed
            retired = version.is_retired(one.decision) if version else one.outcome == RETIRED
            due = replace(one, shown=shown, reward=row.value)
            right = closed_by(due, self.settings, retired)
            if one.outcome == REFUSED and right.outcome in LEARNED:
                right = replace(right, outcome=REFUSED)
            expected = (right.outcome, right.reward)
            found = (one.outcome, one.reward)
            if expected != found:
                sentence = "the decision was closed in another way than what came for it"
                self.add("outcome", one.decision.id, expected, found, sentence)

    # ---- decisions -------------------------------------------------------------------------------

    def check_decisions(self, version: Version | None, row: Row[Any]) -> None:
        """Let a version make its decisions again, and compare them with the log.

        Those of versions that were pruned, or that cannot be computed, are only read.
        """
        number = row.number
        for part in batched(self.decisions_up_to(number), ROWS_AT_A_TIME):
            good = list[Stored]()
            for one in part:
                if one.version < number and row.kind == CHECKPOINT:
                    continue  # of a version that was pruned
                with self.noting("decision", one.id, "a decision"):
                    stored = stored_of(one)
                    if one.version != number:
                        sentence = f"version {one.version} of the bandit is not there"
                        self.add("version", one.id, number, one.version, sentence)
                    elif not stored.erased:
                        good.append(stored)
            if version is not None:
                good.sort(key=_arms)
                for _, alike in groupby(good, key=_arms):
                    self.decide_again(version, [*alike])

    def decide_again(self, version: Version, part: Sequence[Stored]) -> None:
        """Compare decisions, all about the same arms, with those that a version makes again."""
        first = part[0]
        bandit = version.bandit
        try:
            if first.arms != bandit.arms:
                raise ValueError(f"the arms of version {version.number} are {list(bandit.arms)}")
            among = None if first.available == first.arms else first.available
            numbers = x = decision_of(bandit.layout, part).x
            contexts = _contexts(bandit, part, numbers)
            if bandit.of_arms:
                x = np.array([one.x for one in part]).reshape(len(part), len(first.available), -1)
            seeds = seeds_of(self.secret, [one.id for one in part])
            t = [one.t for one in part]
            at = [one.decided_at for one in part]
            again = choose_by_seeds(bandit, x, among, seeds, t, at)
        except (ValueError, TypeError) as error:
            if len(part) == 1:
                self.add("decision", first.id, "a decision", "none", str(error))
            else:
                for one in part:
                    self.decide_again(version, [one])
            return
        names = np.asarray(again.arm).tolist()
        p = again.probabilities
        logged = np.array([one.probabilities for one in part])
        rows = np.array([one.row for one in part])
        right = _alike(np.asarray(again.propensity), [one.propensity for one in part])
        right &= _alike(p, logged)
        arms = [one.arm for one in part]
        same = [*map(operator.eq, names, arms)]
        default = f"version {version.number} decides otherwise"
        how = "the context is not the numbers by which was decided"
        compared = (
            ("arm", same, names, arms, default),
            ("propensity", right, p, logged, default),
            ("moments", _alike(again.rows, rows), again.rows, rows, default),
            ("context", _alike(contexts, numbers), [one.context for one in part], numbers, how),
        )
        for i, one in enumerate(part):
            for kind, agree, expected, found, sentence in compared:
                if not agree[i]:
                    self.add(kind, one.id, _plain(expected[i]), _plain(found[i]), sentence)
                    break


def _plain(value: Any) -> object:
    return value.tolist() if isinstance(value, np.ndarray) else value


def _arms(one: Stored) -> str:
    return repr((one.arms, one.available))  # names may be texts and numbers, which have no order


def _alike(computed: Array, logged: Sequence[Any] | Array) -> Array:
    """Return which rows (n,) of two arrays (n, …) have the same numbers, but for rounding."""
    tolerance = PROBABILITY_TOLERANCE
    near = np.isclose(computed, np.array(logged), rtol=tolerance, atol=tolerance, equal_nan=True)
    return near.reshape(len(near), -1).all(axis=1)


def _contexts(bandit: Bandit, decisions_made: Sequence[Stored], x: Array) -> Array:
    """Return the numbers (n, d) to which the contexts of decisions encode, as they were given.

    For arms with features it is the logged x (n, d): the log has no names for their rows.
    """
    if bandit.of_arms or not bandit.n_features:
        return x
    contexts = [json.loads(one.context or "null") for one in decisions_made]
    if bandit.encoder is None:
        contexts = [[*one.values()] if isinstance(one, dict) else one for one in contexts]
    return checks.contexts(floats(bandit.encoded(contexts), "contexts"), bandit.n_features)
