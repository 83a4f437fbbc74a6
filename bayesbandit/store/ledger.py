"""The transactions of a bandit's log: each method writes or reads in one transaction."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import batched
from operator import itemgetter
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    Table,
    and_,
    bindparam,
    delete,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from bayesbandit.checks import arm_name, integer
from bayesbandit.store.database import RELEASE, Database, microseconds
from bayesbandit.store.group_commit import GroupCommit
from bayesbandit.store.records import (
    ADDED,
    AGAIN,
    CHECKPOINT,
    LATE,
    LEARN,
    REMOVED,
    STARTED,
    TIMELY,
    UNKNOWN,
    UNREADABLE,
    Change,
    Conflict,
    NoDecision,
    Outcome,
    Stored,
)
from bayesbandit.store.rows import stored_of, to_bytes
from bayesbandit.store.settings import Beginning, Settings
from bayesbandit.store.tables import decisions, rewards, states, versions

PROBE_BYTES = 32_768  # bytes
CLOCK_TOLERANCE = 60_000_000  # microseconds by which the clocks of two machines may differ
IDS_PER_QUERY = (
    1000  # rewards that are stored in one transaction, ids that are asked for in one query
)
STATE = states.c
# statements for rows of values, which SQLAlchemy compiles once
CHANGE_STATE = update(states).where(STATE.decision_id == bindparam("one"))
CLOSE_DECISION = CHANGE_STATE.where(  # unless something came since it was read
    STATE.outcome.is_(None), STATE.came == bindparam("read"), STATE.shown == bindparam("seen")
)
KEY_OF_REWARD = itemgetter("decision_id", "known")  # in this order two of them cannot deadlock


def mistimed(at: int, decided_at: int | None, now: int) -> ValueError | None:
    """Return the error of a reward that was observed before its decision, or after now.

    decided_at: None for a decision that the log has not. Times are microseconds since 1970.
    """
    if at > now + CLOCK_TOLERANCE:
        limit = f"in the future, at {at / 1e6:.0f}: now is {now / 1e6:.0f}"
    elif decided_at is not None and at < decided_at - CLOCK_TOLERANCE:
        limit = f"before its decision, at {at / 1e6:.0f}: that was at {decided_at / 1e6:.0f}"
    else:
        return None
    return ValueError(
        f"a reward cannot be observed {limit}, in seconds since 1970; give such seconds (not "
        "milliseconds), or a date with its time zone; clocks may differ by "
        f"{CLOCK_TOLERANCE // 10**6} seconds"
    )


def chained(before: bytes, at: int, kind: str, detail: str, closed: Sequence[Outcome]) -> bytes:
    """Return the digest of a version: of its change, what it closed, and the digest before it.

    Contexts are left out, since they may be erased.
    """
    digest = blake2b(f"{at} {kind} {detail}".encode(), key=before[:64], digest_size=32)
    for case in closed:
        one = case.decision
        fields = one.id, one.decided_at, one.version, one.t, one.arm, one.propensity
        digest.update(f"{fields} {case.outcome} {case.reward!r}".encode())
        digest.update(to_bytes(one.probabilities) + to_bytes(one.beside_context))
    return digest.digest()


class Ledger:
    """The transactions of a bandit's log.

    The argument `now` of the methods is in microseconds since 1970, and `how` says how rewards are
    joined.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self.append = GroupCommit(database).append

    def __str__(self) -> str:
        return repr(self.database.shown)

    def one(self, query: Select[Any], patient: bool = False) -> Any:
        """Return the first value of a query; None if there is none."""
        with self.database.read(patient) as connection:
            return connection.execute(query).scalar()

    # ---- the beginning ---------------------------------------------------------------------------

    def beginning(self) -> Beginning | None:
        """Return how the bandit began; None: the log has no bandit yet."""
        detail = self.one(select(versions.c.detail).where(versions.c.number == 0))
        if detail is None:
            return None
        try:
            fields = json.loads(detail)
            settings = Settings(**fields.pop("settings"))
            secret = bytes.fromhex(fields.pop("secret"))
            return Beginning(settings, secret, **fields)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"how {self} began cannot be read: {error}") from error

    def begun(self) -> Beginning:
        """Return how the bandit began; raise ValueError if the log has none yet."""
        if (beginning := self.beginning()) is None:
            raise self.no_bandit()
        return beginning

    def no_bandit(self) -> ValueError:
        """Return the error for a log that has no bandit."""
        return ValueError(
            f"DecisionLog({self}) has no bandit yet: bb.Service(bandit, log) begins one"
        )

    def begin(self, settings: Settings, detail: Mapping[str, Any], data: bytes) -> bool:
        """Store version 0 of the bandit; return False if the log already has one.

        detail: the other fields of `Beginning`. data: the bytes of its file.
        """
        fields = {**detail, "settings": vars(settings), "secret": secrets.token_hex(32)}
        begun = self.commit(blake2b(data).digest(), 0, STARTED, fields, data=data) is not None
        self.database.checkpoint()  # so that a copied file has a beginning
        return begun

    def probe(self) -> None:
        """Raise Unavailable unless the log can store a decision now. Nothing of it stays.

        A committed transaction writes more than a decision does, and deletes it.
        """
        number = -1 - secrets.randbits(60)
        row = self._version(
            number, microseconds(), "probe", "", b"", secrets.token_bytes(PROBE_BYTES)
        )
        with self.database.write() as connection:
            connection.execute(insert(versions), row)
            connection.execute(delete(versions).where(versions.c.number == number))

    # ---- decisions -------------------------------------------------------------------------------

    def stored(self, ids: Sequence[str]) -> list[Stored]:
        """Return the decisions with these ids, in this order, without ids that the log lacks."""
        by_id: dict[str, Stored] = {}
        with self.database.read() as connection:
            for part in batched(ids, IDS_PER_QUERY):
                rows = connection.execute(select(decisions).where(of_ids(decisions, part)))
                by_id |= {row.id: stored_of(row) for row in rows}
        return [by_id[id_] for id_ in ids if id_ in by_id]

    def rounds(self) -> int:
        """Return how many contexts had been decided after the latest decision; 0: there is none."""
        at = decisions.c.decided_at
        latest = select(func.max(at)).scalar_subquery()
        t = self.one(select(func.max(decisions.c.t)).where(at == latest))
        return 0 if t is None else int(t) + 1

    # ---- rewards ---------------------------------------------------------------------------------

    def rewards(
        self, arrivals: Sequence[tuple[str, float, int | None]], now: int, how: Settings
    ) -> list[str | ValueError]:
        """Store rewards, and return for each one whether it counts.

        arrivals: the decision's id, the reward's value and when it was observed (microseconds since
        1970; None: now, or at its decision if the clock went back since). Return TIMELY, LATE,
        UNKNOWN (no such decision) or AGAIN (stored before). For a reward
        that is not stored return its error: a Conflict if the decision has another one, a
        ValueError if it was observed before its decision or after now.
        """
        statuses: list[str | ValueError] = []
        for part in batched(arrivals, IDS_PER_QUERY):
            with self.database.write() as connection:
                statuses += self._rewards(connection, part, now, how)
        return statuses

    def _rewards(
        self, connection: Connection, arrivals: Sequence[tuple[str, float, int | None]], now: int,
        how: Settings,
    ) -> list[str | ValueError]:  # fmt: skip
        ids = sorted({id_ for id_, *_ in arrivals})
        states_by_id = self._lock(connection, ids)
        past = connection.execute(select(rewards).where(of_ids(rewards, ids)))
        values = {(row.decision_id, bool(row.known)): row.value for row in past}
        new = list[dict[str, Any]]()
        statuses = list[str | ValueError]()
        for id_, value, when in arrivals:
            state = states_by_id.get(id_)
            is_known = state is not None
            decided: int | None = None if state is None else state.decided_at
            if when is not None and (wrong := mistimed(when, decided, now)):
                statuses.append(wrong)
                continue
            at = max(now, decided or now) if when is None else when
            if state is None:
                status = UNKNOWN
            elif state.outcome or (how.wait is not None and at > state.decided_at + how.wait):
                status = LATE
            else:
                status = TIMELY
            before = values.get((id_, is_known))
            if before is not None:
                conflict = Conflict(
                    f"decision {id_!r} has the reward {before!r}, and is told {value!r}: a reward "
                    "is told once"
                )
                again = AGAIN if is_known else UNKNOWN
                statuses.append(again if before == value else conflict)
                continue
            values[id_, is_known] = value
            statuses.append(status)
            row = {
                "decision_id": id_, "known": is_known, "value": value,
                "observed_at": at, "received_at": now, "status": status,
            }  # fmt: skip
            new.append(row)
        if new:
            self.database.add(connection, rewards, sorted(new, key=KEY_OF_REWARD))
        timely = [states_by_id[row["decision_id"]] for row in new if row["status"] == TIMELY]
        self._note(connection, timely, now, how, came=1)
        return statuses

    def activate(self, ids: Sequence[str], now: int, how: Settings) -> None:
        """Note that decisions were shown; a second time changes nothing.

        Raise ValueError if the log lacks an id.
        """
        for part in batched(sorted({*ids}), IDS_PER_QUERY):
            with self.database.write() as connection:
                states_by_id = self._lock(connection, part)
                if lost := {*part} - {*states_by_id}:
                    raise NoDecision(f"the log has no decision {min(lost)!r}")
                new = [row for row in states_by_id.values() if not row.shown]
                self._note(connection, new, now, how, shown=1)

    def _lock(self, connection: Connection, ids: Sequence[str]) -> dict[str, Row[Any]]:
        """Lock the states of these decisions until the transaction ends; return them by id.

        Rows are locked in the order of their ids' code points, as `commit` changes them, so that
        transactions cannot deadlock.
        """
        id_ = STATE.decision_id
        rows = (
            select(states, decisions.c.decided_at)
            .join(decisions, of_decision(states))
            .where(of_ids(states, ids))
            .order_by(id_ if self.database.sqlite else id_.collate("C"))
            .with_for_update(of=states)
        )
        return {row.decision_id: row for row in connection.execute(rows)}

    def _note(
        self, connection: Connection, rows: Iterable[Row[Any]], now: int, how: Settings,
        **news: int,
    ) -> None:  # fmt: skip
        """Note in the states of decisions that a reward came, or that they were shown.

        A decision is due when its reward has come and, with activation, it was shown.
        """
        changed = []
        for row in rows:
            state = {"came": row.came, "shown": row.shown, "due": row.due} | news
            ready = state["came"] and (state["shown"] or not how.activation)
            if ready and row.outcome is None and (row.due is None or row.due > now):
                state["due"] = now
            changed.append({"one": row.decision_id, **state})
        if changed:
            connection.execute(CHANGE_STATE, changed)

    # ---- learning --------------------------------------------------------------------------------

    def due(self, now: int, limit: int) -> tuple[list[Outcome], dict[str, str]]:
        """Return at most `limit` open decisions that are due, the longest due first.

        Return beside them, by id, why rows cannot be read.
        """
        queue = recorded().where(STATE.outcome.is_(None), STATE.due <= now)
        with self.database.read() as connection:
            queue = queue.order_by(STATE.due, STATE.decision_id).limit(limit)
            rows = connection.execute(queue).all()
        queue_of_due = list[Outcome]()
        broken = dict[str, str]()
        for row in rows:
            try:
                queue_of_due.append(outcome_of(row))
            except ValueError as error:
                broken[row.id] = str(error)
        return queue_of_due, broken

    def set_aside(self, broken: Mapping[str, str]) -> None:
        """Close decisions that no bandit can read, by id with the reason; none learns them."""
        rows = [
            {"one": id_, "outcome": UNREADABLE, "reason": reason, "due": None}
            for id_, reason in sorted(broken.items())
        ]
        with self.database.write() as connection:
            connection.execute(CHANGE_STATE, rows)

    def commit(
        self, before: bytes, number: int, kind: str, detail: Mapping[str, Any],
        closed: Sequence[Outcome] = (), data: bytes | None = None,
        also: Callable[[Connection], None] | None = None,
    ) -> bytes | None:  # fmt: skip
        """Store a new version of the bandit in one transaction, and return its digest.

        before: the digest of the version before. closed: the outcomes of the decisions that it
        closes. data: the bytes of the snapshot, if there is one. also: what else the transaction
        does.
        Return None, and store nothing, if the log has newer versions, or if something came for one
        of these decisions since they were read.
        """
        rows = [
            {
                "one": case.decision.id, "version": number, "place": i,
                "outcome": case.outcome, "reward": case.reward, "reason": case.reason, "due": None,
                "read": case.came, "seen": case.shown,
            }
            for i, case in enumerate(closed)
        ]  # fmt: skip
        rows.sort(key=itemgetter("one"))  # so that two transactions cannot deadlock
        at = microseconds()
        text = json.dumps(detail)
        digest = chained(before, at, kind, text, closed)
        try:
            with self.database.write() as connection:
                row = self._version(number, at, kind, text, digest, data)
                connection.execute(insert(versions), row)
                # the number may be free again: newer versions were stored, and those before pruned
                others = select(versions.c.digest).where(versions.c.number != number)
                newest = others.order_by(versions.c.number.desc()).limit(1)
                follows = connection.scalar(newest) in (before, None)  # None: it is the first
                if also is not None:
                    also(connection)
                closes = not rows or connection.execute(CLOSE_DECISION, rows).rowcount == len(rows)
                if not (follows and closes):
                    connection.rollback()
                    return None
                if data is not None:
                    self._forget_snapshots(connection, number)
        except IntegrityError:
            return None
        return digest

    # ---- versions --------------------------------------------------------------------------------

    def newest(self, until: int | None = None) -> int:
        """Return the number of the newest version, or of the newest up to a time; −1: none."""
        column = versions.c
        number = select(func.max(column.number)).where(column.number >= 0)
        newest = self.one(number if until is None else number.where(column.at <= until))
        return -1 if newest is None else int(newest)

    def digest(self, number: int) -> bytes | None:
        """Return the digest of a version; None if the log does not have it."""
        column = versions.c
        digest: bytes | None = self.one(select(column.digest).where(column.number == number))
        return digest

    def snapshot(self, above: int = -1, oldest: bool = False) -> Row[Any] | None:
        """Return the newest or oldest version with a snapshot after `above`; None: no such."""
        column = versions.c
        query = select(versions).where(column.number > above, column.snapshot.is_not(None))
        order = column.number if oldest else column.number.desc()
        with self.database.read() as connection:
            return connection.execute(query.order_by(order).limit(1)).first()

    def add_snapshot(self, number: int, data: bytes) -> None:
        """Store a snapshot of a version, in the place of older ones.

        Version 0 has one from the beginning until it is pruned, and gets no other.
        """
        of_version = versions.c.number == number, versions.c.kind != STARTED
        with self.database.write() as connection:
            connection.execute(update(versions).where(*of_version).values(snapshot=data))
            self._forget_snapshots(connection, number)

    def _forget_snapshots(self, connection: Connection, newest: int) -> None:
        """Delete the snapshots before this one, but for the first and those of checkpoints."""
        old = versions.c.number < newest, versions.c.kind.not_in((STARTED, CHECKPOINT))
        has_snapshot = versions.c.snapshot.is_not(None)
        connection.execute(update(versions).where(*old, has_snapshot).values(snapshot=None))

    def changes(self, after: int, limit: int) -> list[Change]:
        """Return at most `limit` changes after a version, in order."""
        number = versions.c.number
        query = select(versions).where(number > after)
        with self.database.read() as connection:
            rows = connection.execute(query.order_by(number).limit(limit)).all()
            if not rows:
                return []
            closed: dict[int, list[Outcome]] = {row.number: [] for row in rows}
            past = self.closed().where(STATE.version.between(rows[0].number, rows[-1].number))
            for row in connection.execute(past):
                closed[row.learned_by].append(outcome_of(row))
        return [change_of(row, closed[row.number]) for row in rows]

    def closed(self) -> Select[Any]:
        """Return the query for closed decisions, in the order in which they were learned."""
        query = recorded().where(STATE.version.is_not(None))
        return query.order_by(STATE.version, STATE.place)

    def _version(
        self, number: int, at: int, kind: str, detail: str, digest: bytes, data: bytes | None
    ) -> dict[str, Any]:
        return {
            "number": number, "at": at, "kind": kind, "detail": detail,
            "digest": digest, "snapshot": data, "release": RELEASE,
        }  # fmt: skip


def of_ids(table: Table, ids: Sequence[str]) -> ColumnElement[bool]:
    """Return the condition that a row of a table is about one of these decisions."""
    column = table.c.id if table is decisions else table.c.decision_id
    return column.in_(ids)


def of_decision(table: Table) -> ColumnElement[bool]:
    """Return the condition that joins rows of a table to the table of decisions."""
    return table.c.decision_id == decisions.c.id


def recorded() -> Select[Any]:
    """Return the query for decisions, with their states and the rewards that came in time."""
    state = (STATE.version.label("learned_by"), STATE.outcome, STATE.reward, STATE.reason,
             STATE.came, STATE.shown)  # fmt: skip
    timely = and_(of_decision(rewards), rewards.c.status == TIMELY)
    return (
        select(decisions, *state, rewards.c.value, rewards.c.observed_at)
        .join(states, of_decision(states))
        .outerjoin(rewards, timely)
    )


def outcome_of(row: Row[Any]) -> Outcome:
    """Return the outcome of a row of `recorded`: of an open decision with the reward that came."""
    reward = row.value if row.outcome is None else row.reward
    return Outcome(stored_of(row), row.outcome, reward, row.reason, row.came, row.shown)


def change_of(row: Row[Any], closed: Sequence[Outcome]) -> Change:
    """Return the change of a row of the table of versions; raise ValueError if it is broken."""
    columns = row._mapping
    try:
        detail = json.loads(columns["detail"])
        kind = columns["kind"]
        if kind == LEARN:
            integer(detail["closed"], "closed", least=0)
        elif kind in (ADDED, REMOVED):
            arm_name(detail["arm"])
        elif kind != CHECKPOINT:
            raise ValueError(f"there is no change {kind!r}")
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"version {columns['number']} cannot be read: {error}") from error
    return Change(columns["number"], kind, detail, columns["digest"], tuple(closed))
