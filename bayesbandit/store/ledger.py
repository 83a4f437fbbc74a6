"""The transactions of a bandit's log: each method writes or reads in one transaction."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from itertools import batched
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    Table,
    and_,
    delete,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from bayesbandit.checks import Name, arm_name, integer
from bayesbandit.runtime.files import HOST
from bayesbandit.store.database import RELEASE, Database, microseconds
from bayesbandit.store.records import (
    ACTIVATED,
    ADDED,
    AGAIN,
    LATE,
    LEARN,
    LEARNED,
    OVERRULED,
    REMOVED,
    SNAPSHOT,
    STARTED,
    TIMELY,
    UNKNOWN,
    Change,
    Conflict,
    Due,
    NotStored,
    Outcome,
    Stored,
    Unavailable,
)
from bayesbandit.store.rows import arm_named, arms_named, from_bytes
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

DEFAULT = "default"  # the name of a bandit that is alone in its database
PROBE = 32_768  # bytes
CLOCKS = 60_000_000  # microseconds by which the clocks of two machines may differ
AT_ONCE = 1000  # rewards that are stored in one transaction, ids that are asked for in one query


def mistimed(at: int, decided_at: int | None, now: int) -> ValueError | None:
    """Return the error of a reward that was observed before its decision, or after now.

    decided_at: None for a decision that the log has not. Times are microseconds since 1970.
    """
    if at > now + CLOCKS:
        limit = f"in the future: it is dated {_shown(at)}, and now is {_shown(now)}"
    elif decided_at is not None and at < decided_at - CLOCKS:
        limit = f"before its decision: it is dated {_shown(at)}, the decision {_shown(decided_at)}"
    else:
        return None
    return ValueError(
        f"a reward cannot be observed {limit}; give seconds (not milliseconds) since 1970, or a "
        f"date with its time zone; clocks may differ by {CLOCKS // 10**6} seconds"
    )


def _shown(at: int) -> str:
    """Return microseconds since 1970 as a date; as seconds where no calendar has it."""
    try:
        return datetime.fromtimestamp(at / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"{at / 1e6:.6g} seconds"


def unknown_key(key: str, value: float) -> str:
    """Return the key under which a reward of an unknown decision is stored.

    It differs from `key`, so that a decision made later under the same id can still have that one.
    """
    return f"{key[:100]} unknown {value!r}"


def stored_of(row: Row[Any]) -> Stored:
    """Return the decision of a row of the table of decisions; raise ValueError if it is broken."""
    known = row._mapping
    try:
        return Stored(
            known["id"], known["decided_at"], known["mode"], known["version"], known["t"],
            known["stream"], known["position"], known["place"], known["size"],
            arm_named(known["arm"]), known["propensity"], arms_named(known["arms"]),
            from_bytes(known["row"]), from_bytes(known["probabilities"]),
            None if known["x"] is None else from_bytes(known["x"]), known["context"],
        )  # fmt: skip
    except (ValueError, TypeError) as error:
        raise ValueError(f"decision {known['id']!r} cannot be read: {error}") from error


class Ledger:
    """The transactions of one bandit's log.

    Other bandits may share the database: each query asks only for rows of the bandit `name`. The
    argument `now` of the methods is in microseconds since 1970, and `how` says how rewards are
    joined.
    """

    def __init__(self, database: Database, name: str) -> None:
        self.database, self.name = database, name

    def __str__(self) -> str:
        name = "" if self.name == DEFAULT else f", name={self.name!r}"
        return f"{self.database.shown!r}{name}"

    def own(self, table: Table) -> ColumnElement[bool]:
        """Return the condition that a row of a table is about this bandit."""
        return table.c.bandit == self.name

    def of_ids(self, table: Table, ids: Sequence[str]) -> ColumnElement[bool]:
        """Return the condition that a row of a table is about one of these decisions."""
        column = table.c.id if table is decisions else table.c.decision_id
        return and_(self.own(table), column.in_(ids))

    # ---- the beginning ---------------------------------------------------------------------------

    def settings(self) -> Settings | None:
        """Return how rewards are joined; None if the log has no bandit yet."""
        with self.database.read() as connection:
            detail = connection.execute(self._beginning()).scalar()
        try:
            return None if detail is None else Settings(**json.loads(detail)["settings"])
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"how {self} began cannot be read: {error}") from error

    def names(self) -> list[str]:
        """Return the names of all bandits of the database."""
        begun = select(events.c.bandit).where(events.c.version == 0).order_by(events.c.bandit)
        with self.database.read() as connection:
            return [*connection.execute(begun).scalars()]

    def no_bandit(self) -> ValueError:
        """Return the error for a log that has no bandit of this name."""
        names = ", ".join(map(repr, self.names()))
        others = f"; it has {names}" if names else ""
        return ValueError(
            f"DecisionLog({self}) has no bandit yet: bb.Service(bandit, log) begins one{others}"
        )

    def beginning(self) -> dict[str, Any]:
        """Return the description of version 0: its settings, encoder, number of features, …"""
        with self.database.read() as connection:
            return dict(json.loads(connection.execute(self._beginning()).scalar_one()))

    def _beginning(self) -> Select[str]:
        return select(events.c.detail).where(self.own(events), events.c.version == 0)

    def begin(self, settings: Settings, detail: Mapping[str, Any], data: bytes) -> bool:
        """Store version 0 of the bandit; return False if the log already has one.

        detail: its description, see `beginning`. data: the bytes of its file.
        """
        description = {**detail, "settings": vars(settings)}
        try:
            with self.database.write() as connection:
                self._event(connection, STARTED, version=0, detail=description)
                self._snapshot(connection, 0, data)
        except IntegrityError:
            return False
        return True

    def probe(self) -> None:
        """Raise Unavailable unless the log can store a decision now. Nothing of it stays.

        A committed transaction writes more than a decision does, and deletes it.
        """
        key = f"probe {secrets.token_hex(8)}"
        row = self._stream_row(key, secrets.token_hex(PROBE // 2))
        with self.database.write() as connection:
            self.database.add(connection, streams, [row])
            connection.execute(delete(streams).where(self.own(streams), streams.c.key == key))

    def event(self, kind: str, detail: Mapping[str, Any]) -> None:
        """Store an event that does not change the bandit."""
        with self.database.write() as connection:
            self._event(connection, kind, detail=detail)

    # ---- decisions -------------------------------------------------------------------------------

    def append(
        self,
        rows: Sequence[Mapping[str, Any]],
        due: int | None,
        noted: Sequence[Mapping[str, Any]] = (),
        stream: tuple[str, int] | None = None,
    ) -> bool:
        """Store decisions and events about them, all or none.

        rows, noted: the rows of both tables. due: when to learn the decisions; None: when a reward
        comes. stream: the key and the entropy of a stream of random numbers that is new. Return
        False, and store nothing, if an id is taken. Raise NotStored if it is not
        certain that they are stored.
        """
        queue = [{"decision_id": row["id"], "due": due, "touched": 0} for row in rows]
        try:
            with self.database.write() as connection:
                if stream is not None:
                    self._open_stream(connection, *stream)
                for table, new in ((decisions, rows), (opened, queue), (events, noted)):
                    if new:
                        ours = [{"bandit": self.name, **row} for row in new]
                        connection.execute(insert(table), ours[0] if len(ours) == 1 else ours)
        except IntegrityError:
            return False
        except Unavailable as error:
            raise NotStored(
                f"the decision could not be stored, so there is none: {error}"
            ) from error
        return True

    def stored(self, ids: Sequence[str]) -> list[Stored]:
        """Return the decisions with these ids, in this order, without ids that the log lacks."""
        known: dict[str, Stored] = {}
        with self.database.read() as connection:
            for some in batched(ids, AT_ONCE):
                found = connection.execute(select(decisions).where(self.of_ids(decisions, some)))
                known |= {row.id: stored_of(row) for row in found}
        return [known[id_] for id_ in ids if id_ in known]

    # ---- rewards ---------------------------------------------------------------------------------

    def rewards(
        self, given: Sequence[tuple[str, str, float, int | None]], now: int, how: Settings
    ) -> list[str | ValueError]:
        """Store rewards, and return for each one whether it counts.

        given: the decision's id, the reward's key, its value and when it was observed (microseconds
        since 1970; None: now, or at its decision if the clock went back since). Return TIMELY,
        LATE, UNKNOWN (no such decision) or AGAIN (stored before). For a reward that is not stored
        return its error: a Conflict if the log has another value under this key, a ValueError if it
        was observed before its decision or after now.
        """
        found: list[str | ValueError] = []
        for some in batched(given, AT_ONCE):
            with self.database.write() as connection:
                found += self._rewards(connection, some, now, how)
        return found

    def _rewards(
        self,
        connection: Connection,
        given: Sequence[tuple[str, str, float, int | None]],
        now: int,
        how: Settings,
    ) -> list[str | ValueError]:
        ids = sorted({id_ for id_, *_ in given})
        known = select(decisions.c.id, decisions.c.decided_at).where(self.of_ids(decisions, ids))
        decided = {row.id: row.decided_at for row in connection.execute(known)}
        is_open = self._lock(connection, ids)  # then: a decision that comes meanwhile is not late
        settled = self._settled(connection, is_open, how)
        rows: dict[tuple[str, str], dict[str, Any]] = {}  # the first of each key
        keys: list[tuple[str, str] | ValueError] = []
        for id_, key, value, told in given:
            at = max(now, decided.get(id_, now)) if told is None else told
            if told is not None and (wrong := mistimed(told, decided.get(id_), now)):
                keys.append(wrong)
                continue
            if id_ not in decided:
                status, key = UNKNOWN, unknown_key(key, value)
            elif id_ in settled or id_ not in is_open:
                status = LATE
            else:
                status = TIMELY if how.wait is None or at <= decided[id_] + how.wait else LATE
            keys.append((id_, key))
            row = {
                "bandit": self.name, "decision_id": id_, "key": key, "value": value,
                "observed_at": at, "received_at": now, "status": status,
            }  # fmt: skip
            rows.setdefault((id_, key), row)
            if how.aggregate == "first" and status == TIMELY:
                settled.add(id_)
        ordered = [rows[which] for which in sorted(rows)]  # so that two of them cannot deadlock
        added = self.database.add(connection, rewards, ordered)
        found: list[str | ValueError] = []
        for which, (_, _, value, _) in zip(keys, given, strict=True):
            if isinstance(which, ValueError):
                found.append(which)
            elif (self.name, *which) in added:
                added.remove((self.name, *which))
                found.append(str(rows[which]["status"]))
            else:
                found.append(self._before(connection, *which, value))
        timely = {id_ for (id_, *_), status in zip(given, found, strict=True) if status == TIMELY}
        self._touch(connection, sorted(timely), now, how)
        return found

    def _settled(
        self, connection: Connection, is_open: Mapping[str, int], how: Settings
    ) -> set[str]:
        """Return the open decisions that have their reward already, where only the first counts.

        The first is the one that was stored first, whenever it was observed: it may be learned.
        """
        touched = [id_ for id_, n in is_open.items() if n]
        if how.aggregate != "first" or not touched:
            return set()
        came = select(rewards.c.decision_id).where(
            self.of_ids(rewards, touched), rewards.c.status == TIMELY
        )
        return {*connection.execute(came).scalars()}

    def _before(self, connection: Connection, id_: str, key: str, value: float) -> str | Conflict:
        """Return AGAIN or UNKNOWN for a reward that is stored already, or a Conflict of values."""
        known = select(rewards.c.value, rewards.c.status).where(
            self.of_ids(rewards, [id_]), rewards.c.key == key
        )
        before = connection.execute(known).one()
        if before.value == value:
            return UNKNOWN if before.status == UNKNOWN else AGAIN
        which = f" ({key!r})" if key else ""
        return Conflict(
            f"decision {id_!r} has the reward {before.value!r}{which}, and is told {value!r}: a "
            "reward is told once"
        )

    def activate(self, ids: Sequence[str], now: int, how: Settings) -> None:
        """Note that decisions were shown; a second time changes nothing.

        Raise ValueError if the log lacks an id.
        """
        for some in batched(ids, AT_ONCE):
            with self.database.write() as connection:
                self._lock(connection, some)
                known = select(decisions.c.id).where(self.of_ids(decisions, some))
                if lost := {*some} - set(connection.execute(known).scalars()):
                    raise ValueError(f"the log has no decision {min(lost)!r}")
                new = {*some} - set(connection.execute(self.happened(ACTIVATED, some)).scalars())
                row = {"bandit": self.name, "at": now, "kind": ACTIVATED}
                noted = [{**row, "decision_id": id_} for id_ in sorted({*some})]
                self.database.add(connection, events, noted)
                self._touch(connection, sorted(new), now, how)

    def happened(self, kind: str, ids: Sequence[str]) -> Select[str]:
        """Return the query for those of these ids that have an event of this kind."""
        return select(events.c.decision_id).where(self.of_ids(events, ids), events.c.kind == kind)

    def _lock(self, connection: Connection, ids: Sequence[str]) -> dict[str, int]:
        """Lock the open ones of these decisions until the transaction ends.

        Return how often each was touched (see `Due`), by id. Rows are locked in the order of their
        ids, so that transactions cannot deadlock.
        """
        found = select(opened.c.decision_id, opened.c.touched).where(self.of_ids(opened, ids))
        rows = connection.execute(found.order_by(opened.c.decision_id).with_for_update())
        return {row.decision_id: row.touched for row in rows}

    def _touch(self, connection: Connection, ids: Sequence[str], now: int, how: Settings) -> None:
        """Count that something came for open decisions, and set those due that can be learned now.

        With the aggregate "first" the first reward in time makes a decision due; with activation it
        must have been shown too. With others a decision is due when `wait` is over.
        """
        if not ids:
            return
        touched = update(opened).where(self.of_ids(opened, ids))
        connection.execute(touched.values(touched=opened.c.touched + 1))
        if how.aggregate == "first":
            ready = select(rewards.c.decision_id).where(
                self.of_ids(rewards, ids), rewards.c.status == TIMELY
            )
            if how.activation:
                shown = self.happened(ACTIVATED, ids)
                ready = ready.where(rewards.c.decision_id.in_(shown))
            earlier = opened.c.due.is_(None) | (opened.c.due > now)
            due = touched.where(opened.c.decision_id.in_(ready), earlier)
            connection.execute(due.values(due=now))

    # ---- learning --------------------------------------------------------------------------------

    def learner(self) -> AbstractContextManager[bool]:
        """Yield whether this process may learn: one at a time may, for each bandit."""
        return self.database.learner(self.name)

    def due(self, now: int, limit: int) -> list[Due]:
        """Return at most `limit` open decisions that are due, the longest due first."""
        queue = (
            select(decisions, opened.c.touched)
            .join(opened, of_decision(opened))
            .where(self.own(opened), opened.c.due <= now)
            .order_by(opened.c.due, opened.c.decision_id)
            .limit(limit)
        )
        with self.database.read() as connection:
            rows = connection.execute(queue).all()
            ids = [row.id for row in rows]
            values: dict[str, list[float]] = {id_: [] for id_ in ids}
            for row in connection.execute(self.timely(ids)):
                values[row.decision_id].append(row.value)
            active, overruled = (
                set(connection.execute(self.happened(kind, ids)).scalars())
                for kind in (ACTIVATED, OVERRULED)
            )
        return [
            Due(
                stored_of(row),
                row.touched,
                row.id in active,
                row.id in overruled,
                tuple(values[row.id]),
            )
            for row in rows
        ]

    def timely(self, ids: Sequence[str]) -> Select[Any]:
        """Return the query for the rewards in time of these decisions, in order of observation."""
        came = select(rewards).where(self.of_ids(rewards, ids), rewards.c.status == TIMELY)
        return came.order_by(rewards.c.observed_at, rewards.c.received_at, rewards.c.key)

    def commit(
        self, version: int, kind: str, detail: Mapping[str, Any],
        closed: Sequence[Outcome] = (), touched: Mapping[str, int] | None = None,
        data: bytes | None = None, keep: int | None = None,
    ) -> bool:  # fmt: skip
        """Store a new version of the bandit in one transaction: the event, outcomes and snapshot.

        closed: the outcomes of the decisions that it closes. touched: by id, how often each was
        touched when it was read. data: the bytes of the snapshot, if there is one. keep: see
        `add_snapshot`. Return False, and store nothing, if another process has stored this version,
        or if something came for one of these decisions since they were read.
        """
        ids = [case.decision.id for case in closed]
        rows = [
            {
                "bandit": self.name, "decision_id": case.decision.id, "version": version,
                "position": i, "outcome": case.outcome,
                "reward": case.reward, "reason": case.reason,
            }
            for i, case in enumerate(closed)
        ]  # fmt: skip
        try:
            with self.database.write() as connection:
                self._event(connection, kind, version=version, detail=detail)
                if ids:
                    if self._lock(connection, ids) != dict(touched or {}):
                        raise Stale
                    connection.execute(insert(outcomes), rows)
                    connection.execute(delete(opened).where(self.of_ids(opened, ids)))
                if data is not None:
                    self._snapshot(connection, version, data, keep)
        except (IntegrityError, Stale):
            return False
        return True

    # ---- versions --------------------------------------------------------------------------------

    def newest(self) -> int:
        """Return the number of the newest version."""
        with self.database.read() as connection:
            newest = select(func.max(events.c.version)).where(self.own(events))
            return int(connection.execute(newest).scalar() or 0)

    def change(self, version: int) -> str:
        """Return how the log describes the change that made a version; "" if it has none."""
        found = select(events.c.at, events.c.kind, events.c.detail).where(
            self.own(events), events.c.version == version
        )
        with self.database.read() as connection:
            row = connection.execute(found).first()
        return "" if row is None else f"{row.at} {row.kind} {row.detail}"

    def surprise(self) -> tuple[float, int]:
        """Return what the newest version that has learned says of changes: see `Watched`."""
        newest = (
            select(events.c.detail)
            .where(self.own(events), events.c.version > 0, events.c.kind == LEARN)
            .order_by(events.c.version.desc())
            .limit(1)
        )
        with self.database.read() as connection:
            detail = json.loads(connection.execute(newest).scalar() or "{}")
        said = detail.get("surprise", {"largest": 0.0, "rounds": 0})  # older releases said nothing
        return said["largest"], said["rounds"]

    def snapshot(self, at_most: int | None = None, above: int = -1) -> tuple[int, bytes] | None:
        """Return the newest snapshot of a version in (above, at_most], as its version and bytes.

        None if there is none.
        """
        found = select(snapshots.c.version, snapshots.c.data).where(
            self.own(snapshots), snapshots.c.version > above
        )
        if at_most is not None:
            found = found.where(snapshots.c.version <= at_most)
        with self.database.read() as connection:
            row = connection.execute(found.order_by(snapshots.c.version.desc()).limit(1)).first()
        return None if row is None else (row.version, row.data)

    def add_snapshot(self, version: int, data: bytes, keep: int | None = None) -> None:
        """Store a snapshot of a version, and delete old snapshots; do nothing if there is one.

        keep: how many of the newest stay; of older ones some stay, see `superfluous`. None: all.
        """
        with self.database.write() as connection:
            self._snapshot(connection, version, data, keep)

    def removed(self, version: int) -> dict[Name, int]:
        """Return the arms that were removed up to a version; for each one the last such version."""
        found = (
            select(events)
            .where(self.own(events), events.c.kind == REMOVED, events.c.version.between(1, version))
            .order_by(events.c.version)
        )
        with self.database.read() as connection:
            changes = [change_of(row, ()) for row in connection.execute(found)]
        return {change.detail["arm"]: change.version for change in changes}

    def changes(self, after: int, limit: int) -> list[Change]:
        """Return at most `limit` changes after a version, in order."""
        found = select(events).where(self.own(events), events.c.version > after)
        with self.database.read() as connection:
            rows = connection.execute(found.order_by(events.c.version).limit(limit)).all()
            if not rows:
                return []
            learned: dict[int, list[Outcome]] = {row.version: [] for row in rows}
            past = self.learned().where(
                outcomes.c.version.between(rows[0].version, rows[-1].version),
                outcomes.c.outcome.in_(LEARNED),
            )
            for row in connection.execute(past):
                learned[row.learned_by].append(outcome_of(row))
        return [change_of(row, learned[row.version]) for row in rows]

    def learned(self) -> Select[Any]:
        """Return the query for closed decisions, in the order in which they were learned."""
        known = outcomes.c
        return (
            select(
                decisions,
                known.version.label("learned_by"),
                known.position.label("learned_place"),
                known.outcome,
                known.reward,
                known.reason,
            )
            .join(outcomes, of_decision(outcomes))
            .where(self.own(outcomes))
            .order_by(known.version, known.position)
        )

    # ---- parts of transactions -------------------------------------------------------------------

    def _event(
        self,
        connection: Connection,
        kind: str,
        version: int | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        row = {
            "bandit": self.name, "at": microseconds(), "kind": kind, "version": version,
            "detail": None if detail is None else json.dumps(detail),
        }  # fmt: skip
        connection.execute(insert(events), row)

    def _open_stream(self, connection: Connection, key: str, entropy: int) -> None:
        """Store the entropy of a process's stream of random numbers, under the stream's key.

        Raise Unavailable if the log has no bandit any more.
        """
        if connection.execute(self._beginning()).first() is None:
            raise Unavailable(f"the log {self} has no bandit any more")
        self.database.add(connection, streams, [self._stream_row(key, str(entropy))])

    def _stream_row(self, key: str, entropy: str) -> dict[str, Any]:
        return {
            "bandit": self.name, "key": key, "entropy": entropy, "opened_at": microseconds(),
            "host": HOST, "pid": os.getpid(), "release": RELEASE,
        }  # fmt: skip

    def _snapshot(
        self, connection: Connection, version: int, data: bytes, keep: int | None = None
    ) -> None:
        row = {
            "bandit": self.name, "version": version, "at": microseconds(), "data": data,
            "release": RELEASE,
        }  # fmt: skip
        if not self.database.add(connection, snapshots, [row]):
            return
        own, gone = snapshots.c.version, list[int]()
        if keep is not None:
            known = select(own).where(self.own(snapshots)).order_by(own)
            gone = superfluous([*connection.execute(known).scalars()], keep)
            for some in batched(gone, AT_ONCE):
                connection.execute(delete(snapshots).where(self.own(snapshots), own.in_(some)))
        self._event(connection, SNAPSHOT, detail={"version": version, "removed": gone})


class Stale(Exception):
    """A reward or event came for a decision after it was read."""


def superfluous(versions: Sequence[int], keep: int) -> list[int]:
    """Return which of these versions (in increasing order) need no snapshot any more.

    The newest `keep` stay. Before those, one version stays in each span: the first one. A span is
    as long as the largest power of two up to age/keep. So version 0 stays, and about `keep`
    versions of each doubling of age. A version that is deleted now would not be kept later.
    """
    gone, spans = [], set()
    for version in versions[:-keep]:
        width = 1 << max(((versions[-1] - version) // keep).bit_length() - 1, 0)
        if (span := (width, version // width)) in spans:
            gone.append(version)
        spans.add(span)
    return gone


def of_decision(table: Table) -> ColumnElement[bool]:
    """Return the condition that joins rows of a table to the table of decisions."""
    return and_(table.c.bandit == decisions.c.bandit, table.c.decision_id == decisions.c.id)


def outcome_of(row: Row[Any]) -> Outcome:
    """Return the outcome of a row of `Ledger.learned`."""
    known = row._mapping
    return Outcome(stored_of(row), known["outcome"], known["reward"], known["reason"])


def change_of(row: Row[Any], learned: Iterable[Outcome]) -> Change:
    """Return the change of a row of the table of events; raise ValueError if it is broken."""
    known = row._mapping
    try:
        detail, kind = json.loads(known["detail"]), known["kind"]
        if kind == LEARN:
            integer(detail["closed"], "closed", least=0)
        elif kind in (ADDED, REMOVED):
            arm_name(detail["arm"])
        else:
            raise ValueError(f"there is no change {kind!r}")
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(
            f"the event of version {known['version']} cannot be read: {error}"
        ) from error
    return Change(known["version"], known["at"], kind, detail, tuple(learned))
