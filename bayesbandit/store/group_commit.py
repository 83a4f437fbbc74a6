"""Decisions that arrive together are committed together: one wait for the disk serves them all."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from sqlalchemy import (
    BigInteger,
    Integer,
    String,
    bindparam,
    insert,
    literal_column,
    select,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import IntegrityError

from bayesbandit.store.database import (
    Database,
    deadline,
    request_deadline,
    seconds_left,
    statement_limit,
)
from bayesbandit.store.records import NotStored, Stored, Unavailable
from bayesbandit.store.rows import row_of
from bayesbandit.store.tables import decisions, states

NOT_STORED = "the decision could not be stored, so there is none: "


def insert_statements(database: Database) -> list[str]:
    """Return the statements that store a row of `GroupCommit.append`, compiled once as text.

    Values go by name. PostgreSQL takes both in one statement, which is one message less.
    """
    dialect: Dialect = (
        sqlite.dialect(paramstyle="named") if database.sqlite else database.connected().dialect
    )
    given = bindparam("id", type_=String), bindparam("due", type_=BigInteger)
    zero = literal_column("0", Integer)
    columns = ["decision_id", "due", "came", "shown"]
    opened = insert(states).from_select(columns, select(*given, zero, zero))
    first, second = (str(one.compile(dialect=dialect)) for one in (insert(decisions), opened))
    return [first, second] if database.sqlite else [f"WITH stored AS ({first}) {second}"]


@dataclass(eq=False)
class Waiting:
    """The rows of a call that waits to be stored. stored: whether they are, once that is known."""

    rows: Sequence[dict[str, Any]]
    deadline: float
    stored: Future[bool] = field(default_factory=Future)


class GroupCommit:
    """Group commit: the thread that has the lock stores the decisions of all calls that wait."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.statements = insert_statements(database)
        self._begin()

    def _begin(self) -> None:
        self.commit_lock = Lock()
        self.waiting = deque[Waiting]()
        self.pid = os.getpid()

    def append(self, stored: Sequence[Stored], due: int | None) -> bool:
        """Store decisions, all or none; return False, and store nothing, if an id is taken.

        due: when to learn them; None: when a reward comes. Decisions of other threads that arrive
        meanwhile are stored in the same transaction. Raise NotStored if it is not certain that they
        are stored.
        """
        rows = [{"due": due, **row_of(one)} for one in stored]
        if self.pid != os.getpid():  # a fork has other threads
            self._begin()
        waiting = Waiting(rows, deadline())
        self.waiting.append(waiting)
        with statement_limit(self.database.timeout):
            if not self.commit_lock.acquire(timeout=max(seconds_left(), 0.0)):
                with suppress(ValueError):  # of a call that another thread stores now
                    self.waiting.remove(waiting)
                raise NotStored(f"{NOT_STORED}the log {self.database.shown} did not answer in time")
        try:
            if not waiting.stored.done():
                self._store([self.waiting.popleft() for _ in range(len(self.waiting))])
        finally:
            self.commit_lock.release()
        try:
            # known by now, unless the thread that had taken these rows was stopped
            return waiting.stored.result(timeout=0)
        except Unavailable as failure:
            raise NotStored(f"{NOT_STORED}{failure}") from failure
        except TimeoutError as stopped:
            raise NotStored(f"{NOT_STORED}another thread was stopped") from stopped

    def _store(self, batch: Sequence[Waiting]) -> None:
        """Store the rows of these calls in one transaction; one by one if an id is taken."""
        try:
            with (
                request_deadline(min(one.deadline for one in batch)),
                self.database.write() as connection,
            ):
                for text in self.statements:
                    connection.exec_driver_sql(text, [row for one in batch for row in one.rows])
            done = True
        except IntegrityError:
            done = False
        except Unavailable as error:
            for one in batch:
                one.stored.set_exception(error)
            return
        except BaseException as error:
            for one in batch:
                one.stored.set_exception(Unavailable(f"another thread failed: {error!r}"))
            raise
        if done or len(batch) == 1:
            for one in batch:
                one.stored.set_result(done)
        else:
            for one in batch:
                self._store([one])
