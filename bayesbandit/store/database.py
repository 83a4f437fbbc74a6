"""One database: its connections, transactions, tables, and how long each may take."""

from __future__ import annotations

import math
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from contextvars import ContextVar
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import WeakSet

from sqlalchemy import (
    Connection,
    Engine,
    Table,
    event,
    inspect,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from bayesbandit.runtime.addresses import hide_secrets, shown
from bayesbandit.store import urls
from bayesbandit.store.records import Unavailable
from bayesbandit.store.tables import metadata

RELEASE = version("bayesbandit")
OPEN_CONNECTIONS = 10  # that stay open
MAX_FURTHER_CONNECTIONS = 20  # at most, while they are needed
MILLISECONDS_TO_EMPTY = 50  # for which writers wait until readers have ended
# keys of PostgreSQL's advisory locks: one process creates the tables, and one learns
CREATION_LOCK = 0x62616E646975
LEARNER_LOCK = 0x62616E64  # and that of the schema
_open: WeakSet[Database] = WeakSet()


_deadline = ContextVar("deadline", default=math.inf)  # of this request, by `time.monotonic`
_limit = ContextVar("limit", default=math.inf)  # seconds of each statement


@contextmanager
def _during(variable: ContextVar[float], value: float) -> Iterator[None]:
    """Give a context variable a value within the `with` statement."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def request_deadline(deadline: float) -> AbstractContextManager[None]:
    """Set the deadline of this request, of `time.monotonic`: later the log stores nothing."""
    return _during(_deadline, deadline)


def statement_limit(seconds: float) -> AbstractContextManager[None]:
    """Let each statement take so many seconds at most."""
    return _during(_limit, seconds)


def deadline() -> float:
    """Return the deadline of this request, by `time.monotonic`."""
    return _deadline.get()


def seconds_left() -> float:
    """Return how many seconds a statement may take now; 0 or less: the deadline is over."""
    return min(_deadline.get() - time.monotonic(), _limit.get())


class Database:
    """The tables of a log in SQLite or PostgreSQL, created on first use.

    Threads share it. A forked process opens its own connections.
    """

    def __init__(self, url: str) -> None:
        self.url, self.timeout = urls.without_timeout(urls.parsed(url))
        self.sqlite = self.url.get_backend_name() == "sqlite"
        self.failures: tuple[type[Exception], ...] = (SQLAlchemyError, sqlite3.Error)
        self.engine: Engine | None = self._engine()
        self.write_lock = Lock()  # of SQLite's writers here: they need not try again and again
        self.path = Path(str(self.url.database)).absolute() if self.sqlite else None
        self.file: tuple[int, int] | None = None  # its place on the disk, of SQLite
        try:
            self._make()
        except BaseException:
            self.close()
            raise
        self.file = self._file()
        _open.add(self)

    def __repr__(self) -> str:
        return f"Database({self.shown!r})"

    @property
    def shown(self) -> str:
        """The address as people may see it, without user, password and options."""
        return shown(self.url.render_as_string(hide_password=True))

    def _engine(self) -> Engine:
        pool = {
            "pool_size": OPEN_CONNECTIONS, "max_overflow": MAX_FURTHER_CONNECTIONS,
            "pool_timeout": self.timeout,
        }  # fmt: skip
        if self.sqlite:
            engine = urls.engine(self.url, **pool)
            event.listen(engine, "connect", _durable)
            event.listen(engine, "begin", _begin_sqlite)
            return engine
        engine = urls.engine(self.url, isolation_level="AUTOCOMMIT", **pool)  # but for `_begin`
        event.listen(engine, "begin", _begin_postgresql)
        from psycopg import Error

        from bayesbandit.store.postgresql import SERVER_SETTINGS, bounded

        self.failures = (SQLAlchemyError, Error)
        connect = bounded(seconds_left).connect
        defaults = {
            name: value for name, value in SERVER_SETTINGS.items() if name not in self.url.query
        }
        event.listen(
            engine, "do_connect", lambda _, __, given, named: connect(*given, **defaults | named)
        )
        return engine

    def close(self) -> None:
        """Close the connections; the log cannot be used any more."""
        if self.engine is not None:
            self.engine.dispose()
        self.engine = None

    def connected(self) -> Engine:
        """Return the SQLAlchemy engine.

        Raise ValueError if the log has been closed. Raise FileNotFoundError if its file was deleted
        or replaced: SQLite would go on writing into a file that nobody can open.
        """
        if self.engine is None:
            raise ValueError(f"the log {self.shown} has been closed; open it again")
        if self.file is not None and self._file() != self.file:
            raise FileNotFoundError(f"the file of the log {self.shown} was deleted or replaced")
        return self.engine

    def _file(self) -> tuple[int, int] | None:
        """Return device and inode of SQLite's file; None without a file."""
        try:
            status = None if self.path is None else self.path.stat()
        except FileNotFoundError:
            status = None
        return None if status is None else (status.st_dev, status.st_ino)

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Turn errors of the database into `Unavailable`, with a sentence."""
        try:
            yield
        except IntegrityError:
            raise
        except self.failures as error:
            hide_secrets(error, urls.secrets(self.url))
            cause = error.orig if isinstance(error, DBAPIError) else error
            message = " ".join(str(cause).split())
            raise Unavailable(
                f"the log {self.shown} cannot be read or written now: {message}"
            ) from error

    @contextmanager
    def write(self, patient: bool = False) -> Iterator[Connection]:
        """Yield a connection in a transaction: all of it is committed, or nothing.

        Nothing is committed after a deadline. patient: whether a statement may take long.
        """
        with self._turn(), self._transaction(patient, writes=True) as connection:
            yield connection
            self._check_deadline()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Let the threads of this process write one after the other, if SQLite stores the log."""
        if not self.sqlite:
            yield
            return
        with statement_limit(self.timeout):
            if not self.write_lock.acquire(timeout=max(seconds_left(), 0.0)):
                raise Unavailable(f"the log {self.shown} did not answer in time")
        try:
            yield
        finally:
            self.write_lock.release()

    @contextmanager
    def read(self, patient: bool = False) -> Iterator[Connection]:
        """Yield a connection that sees the log as it was at one moment.

        patient: whether a statement may take long, as one that reads the whole log.
        """
        with self._transaction(patient) as connection:
            yield connection

    @contextmanager
    def _transaction(self, patient: bool, writes: bool = False) -> Iterator[Connection]:
        limit = math.inf if patient and not self.sqlite else self.timeout
        with self._answering(), statement_limit(limit):
            self._check_deadline()
            with self._begun(writes) as connection:
                yield connection
                connection.commit()

    def _begun(self, writes: bool = False, retry: bool = True) -> Connection:
        """Return a connection in a transaction, which is rolled back where it is closed.

        retry: whether another connection is tried where this one was closed by a restart of the
        server.
        """
        connection = self.connected().connect().execution_options(writes=writes)
        try:
            connection.begin()
        except BaseException as error:
            connection.close()
            stale = isinstance(error, DBAPIError) and error.connection_invalidated
            if not (stale and retry and seconds_left() > 0):
                raise
            return self._begun(writes, retry=False)
        return connection

    def _check_deadline(self) -> None:
        if seconds_left() <= 0:
            raise Unavailable(f"the log {self.shown} did not answer in time")

    def add(self, connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows, but for those whose primary key is there."""
        dialect: Any = sqlite if self.sqlite else postgresql
        connection.execute(dialect.insert(table).on_conflict_do_nothing(), rows)

    @contextmanager
    def learner(self) -> Iterator[bool]:
        """Yield whether this process may learn.

        If so, it holds the lock within the `with` statement. The lock also ends with the process.
        """
        lock = self._lock_of_file if self.sqlite else self._lock_of_server
        with self._answering(), lock() as elected:
            yield elected

    @contextmanager
    def _lock_of_file(self) -> Iterator[bool]:
        """Lock a database beside the log, so that deciding goes on meanwhile."""
        assert self.path is not None
        path = f"{self.path.resolve()}-learner"  # one for all links to the file
        beside = sqlite3.connect(path, timeout=0, isolation_level=None)
        try:
            try:
                beside.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                    raise
                yield False
                return
            yield True
        finally:
            beside.close()

    @contextmanager
    def _lock_of_server(self) -> Iterator[bool]:
        """Lock within a transaction, which a pooler keeps in one session."""
        taken = text(
            "SELECT pg_try_advisory_xact_lock(:key, "
            "hashtext('bandit_versions'::regclass::oid::text)) "
            "FROM set_config('idle_in_transaction_session_timeout', '0', true)"
        )
        with statement_limit(self.timeout), self._begun() as connection:
            yield bool(connection.execute(taken, {"key": LEARNER_LOCK}).scalar())

    # ---- the tables ------------------------------------------------------------------------------

    def _make(self) -> None:
        """Create the tables if there are none; raise ValueError if they have another format."""
        with self.read() as connection:
            encoding = None if self.sqlite else connection.scalar(text("SHOW server_encoding"))
            if encoding not in (None, "UTF8"):
                raise ValueError(
                    f"the database {self.shown} must have the encoding UTF8, which holds all "
                    f"texts; got {encoding}: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
                )
            if self._known(connection):
                return
        with self.write(patient=True) as connection:
            if not self.sqlite:  # one at a time
                connection.execute(
                    text("SELECT pg_advisory_xact_lock(:key)"), {"key": CREATION_LOCK}
                )
            if not self._known(connection):
                metadata.create_all(connection)

    def _known(self, connection: Connection) -> bool:
        """Return whether the tables of a log are there."""
        seen = inspect(connection)
        names = {name for name in seen.get_table_names() if name.startswith("bandit_")}
        for name, table in metadata.tables.items():
            columns = {column["name"] for column in seen.get_columns(name)} if name in names else {}
            if names and columns != {*table.columns.keys()}:
                raise ValueError(
                    f"the log {self.shown} has tables of another release than this one ({RELEASE}):"
                    f" the columns of {name} differ. Read it with the release that made it: "
                    "`bayesbandit log export`, or DecisionLog(url).frame()"
                )
        return bool(names)

    def checkpoint(self) -> None:
        """Write what SQLite keeps beside its file into the file, so that a copy has it."""
        if self.sqlite:
            self.pragmas("wal_checkpoint(PASSIVE)")

    def empty_wal(self) -> None:
        """Write what SQLite keeps beside its file into the file, and empty the file beside it.

        If others read the log meanwhile, what they need stays until the next checkpoint.
        """
        if self.sqlite:
            self.pragmas(
                f"busy_timeout={MILLISECONDS_TO_EMPTY}", "wal_checkpoint(TRUNCATE)",
                f"busy_timeout={1000 * self.timeout:.0f}",
            )  # fmt: skip

    def pragmas(self, *texts: str) -> None:
        """Do what SQLite does outside of transactions."""
        with self._answering(), closing(self.connected().raw_connection()) as raw:
            for text in texts:
                raw.cursor().execute(f"PRAGMA {text}")


def microseconds() -> int:
    """Return the time in microseconds since 1970."""
    return time.time_ns() // 1000


def _durable(connection: sqlite3.Connection, record: object) -> None:
    """Set up a new SQLite connection: writers do not block readers, and a commit is on disk."""
    connection.isolation_level = None  # transactions begin where SQLAlchemy says so
    connection.execute("PRAGMA synchronous=FULL").close()
    connection.execute("PRAGMA secure_delete=ON").close()  # what is erased is overwritten
    until = time.monotonic() + min(seconds_left(), urls.TIMEOUT)
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL").close()
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_READONLY:
                return  # a backup on a disk that cannot be written can be read
            # two at once do not wait
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)


def _begin_sqlite(connection: Connection) -> None:
    """Begin a transaction of SQLite; one that writes first waits for the lock."""
    if not connection.get_execution_options().get("writes", False):
        connection.exec_driver_sql("BEGIN")
        return
    span = int(1000 * max(seconds_left(), 0.0))
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    driver.executescript(f"PRAGMA busy_timeout={span}; BEGIN IMMEDIATE")


def _begin_postgresql(connection: Connection) -> None:
    """Begin a transaction of PostgreSQL, and limit its statements, in one message."""
    writes = connection.get_execution_options().get("writes", False)
    begin = "BEGIN" if writes else "BEGIN ISOLATION LEVEL REPEATABLE READ"
    if seconds_left() < math.inf:  # of this transaction alone
        begin += f"; SET LOCAL statement_timeout = {max(1, int(1000 * seconds_left()))}"
    connection.exec_driver_sql(begin)


def _forget_connections() -> None:
    for database in list(_open):
        if database.engine is not None:
            database.engine.dispose(close=False)  # they are the parent's
            database.write_lock = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_connections)
