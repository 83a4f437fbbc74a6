"""One database: its connections, transactions, tables, and the lock of the learner."""

from __future__ import annotations

import math
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import quote
from weakref import WeakSet

from sqlalchemy import (
    Connection,
    Engine,
    Table,
    create_engine,
    event,
    inspect,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    IntegrityError,
    NoSuchModuleError,
    SQLAlchemyError,
)

from bayesbandit.runtime.addresses import shown, without_secrets
from bayesbandit.store.deadlines import left, limited
from bayesbandit.store.records import Unavailable
from bayesbandit.store.tables import metadata

RELEASE = version("bayesbandit")
DRIVERS = {"postgres": "postgresql+psycopg", "postgresql": "postgresql+psycopg"}
ADDRESS_EXAMPLES = '"sqlite:///offers.db" or "postgresql+psycopg://user@host/name"'
TIMEOUT = 10.0  # seconds that a statement or a lock may take, if the address has no ?timeout=
OPEN_CONNECTIONS = 10  # that stay open
MORE_CONNECTIONS = 20  # at most, while they are needed
CREATION_LOCK = 0x62616E646975  # key of PostgreSQL's advisory lock: one process creates the tables
_open: WeakSet[Database] = WeakSet()


class Database:
    """The tables of a log in SQLite or PostgreSQL, created on first use.

    Threads share it. A forked process opens its own connections.
    """

    def __init__(self, url: str) -> None:
        self.url, self.timeout = _without_timeout(_url(url))
        self.sqlite = self.url.get_backend_name() == "sqlite"
        self.failures: tuple[type[Exception], ...] = (SQLAlchemyError, sqlite3.Error)
        self.engine: Engine | None = self._engine()
        self.turn = Lock()  # of SQLite's writers here: they need not try again and again
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
            "pool_size": OPEN_CONNECTIONS, "max_overflow": MORE_CONNECTIONS,
            "pool_timeout": self.timeout,
        }  # fmt: skip
        if self.sqlite:  # "named": a row is a dict for SQLite as it is for PostgreSQL
            engine = _engine(self.url, paramstyle="named", **pool)
            event.listen(engine, "connect", _durable)
            event.listen(engine, "begin", _begin_sqlite)
            return engine
        engine = _engine(self.url, isolation_level="AUTOCOMMIT", **pool)  # but for `_begin`
        event.listen(engine, "begin", _begin_postgresql)
        from psycopg import Error

        from bayesbandit.store.postgresql import SERVER_SETTINGS, Bounded

        self.failures = (SQLAlchemyError, Error)

        own = {name: value for name, value in SERVER_SETTINGS.items() if name not in self.url.query}
        event.listen(
            engine, "do_connect", lambda _, __, given, named: Bounded.connect(*given, **own | named)
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
            there = None if self.path is None else self.path.stat()
        except FileNotFoundError:
            there = None
        return None if there is None else (there.st_dev, there.st_ino)

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Turn errors of the database into `Unavailable`, with a sentence."""
        try:
            yield
        except IntegrityError:
            raise
        except self.failures as error:
            without_secrets(error, _secrets(self.url))
            cause = error.orig if isinstance(error, DBAPIError) else error
            said = " ".join(str(cause).split())
            raise Unavailable(
                f"the log {self.shown} cannot be read or written now: {said}"
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
        with limited(self.timeout):
            if not self.turn.acquire(timeout=max(left(), 0.0)):
                raise Unavailable(f"the log {self.shown} did not answer in time")
        try:
            yield
        finally:
            self.turn.release()

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
        with self._answering(), limited(limit):
            self._check_deadline()
            with self._begun(writes) as connection:
                yield connection
                connection.commit()

    def _begun(self, writes: bool = False, again: bool = True) -> Connection:
        """Return a connection in a transaction, which is rolled back where it is closed.

        again: whether another connection is tried if the server has closed this one, which stayed
        open, as when it starts again.
        """
        connection = self.connected().connect().execution_options(writes=writes)
        try:
            connection.begin()
        except BaseException as error:
            connection.close()
            stale = isinstance(error, DBAPIError) and error.connection_invalidated
            if not (stale and again and left() > 0):
                raise
            return self._begun(writes, again=False)
        return connection

    def _check_deadline(self) -> None:
        if left() <= 0:
            raise Unavailable(f"the log {self.shown} did not answer in time")

    def add(
        self, connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]
    ) -> set[tuple[Any, ...]]:
        """Insert the rows whose primary keys are new; return these keys."""
        dialect: Any = sqlite if self.sqlite else postgresql
        made = dialect.insert(table).on_conflict_do_nothing().returning(*table.primary_key.columns)
        return {tuple(row) for row in connection.execute(made, rows)} if rows else set()

    @contextmanager
    def learner(self, name: str) -> Iterator[bool]:
        """Yield whether this process may learn for the bandit of this name.

        If so, it holds the lock within the `with` statement. The lock also ends with the process.
        """
        lock = self._lock_of_file if self.sqlite else self._lock_of_server
        with self._answering(), lock(sha256(name.encode()).digest()[:8]) as elected:
            yield elected

    @contextmanager
    def _lock_of_file(self, key: bytes) -> Iterator[bool]:
        """Lock a database beside the log, so that deciding goes on meanwhile."""
        assert self.path is not None
        path = f"{self.path.resolve()}-learner-{key.hex()}"  # one for all links to the file
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
    def _lock_of_server(self, key: bytes) -> Iterator[bool]:
        """Lock within a transaction, which a pooler keeps in one session."""
        taken = text(
            "SELECT pg_try_advisory_xact_lock(:key) "
            "FROM set_config('idle_in_transaction_session_timeout', '0', true)"
        )
        with limited(self.timeout), self._begun() as connection:
            named = {"key": int.from_bytes(key, signed=True)}
            yield bool(connection.execute(taken, named).scalar())

    # ---- the tables ------------------------------------------------------------------------------

    def _make(self) -> None:
        """Create the tables if there are none; raise ValueError if they have another format."""
        with self.read() as connection:
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
        there = {name for name in seen.get_table_names() if name.startswith("bandit_")}
        for name, table in metadata.tables.items():
            columns = {column["name"] for column in seen.get_columns(name)} if name in there else {}
            if there and columns != {*table.columns.keys()}:
                raise ValueError(
                    f"the log {self.shown} has tables of another release than this one ({RELEASE}):"
                    f" the columns of {name} differ. Read it with the release that made it: "
                    "`bayesbandit log export`, or DecisionLog(url).frame()"
                )
        return bool(there)

    def checkpoint(self) -> None:
        """Write what SQLite keeps beside its file into the file, so that a copy has it."""
        if self.sqlite:
            self.pragma("wal_checkpoint(PASSIVE)")

    def pragma(self, text: str) -> None:
        """Do what SQLite does outside of transactions."""
        with self._answering(), closing(self.connected().raw_connection()) as raw:
            raw.cursor().execute(f"PRAGMA {text}")


def microseconds(at: float | None = None) -> int:
    """Return a time in microseconds since 1970. at: seconds since 1970; None: now."""
    return time.time_ns() // 1000 if at is None else round(at * 1e6)


def _url(url: object) -> URL:
    """Return an address that SQLAlchemy can open; raise an error that does not show it."""
    if not isinstance(url, str):
        raise TypeError(f'url must be text, as "sqlite:///offers.db"; got {type(url).__name__}')
    url = url.strip()
    scheme, has_scheme, rest = url.partition("://")
    driver = DRIVERS.get(scheme.lower(), scheme.lower())
    try:
        known = make_url(f"{driver}://{rest}" if has_scheme else "")
    except (ArgumentError, ValueError) as error:  # ValueError: of a port that is no number
        error.args = ("the address cannot be read",)  # SQLAlchemy's text may quote it
        got = shown(url) if has_scheme else "a text without ://"
        raise ValueError(f"url must be as {ADDRESS_EXAMPLES}; got {got}") from error
    backend = known.get_backend_name()
    if backend not in ("sqlite", "postgresql"):
        raise ValueError(
            f"a log lives in SQLite or PostgreSQL, as {ADDRESS_EXAMPLES}; got {backend!r}"
        )
    if backend == "postgresql" and known.get_driver_name() != "psycopg":
        raise ValueError(
            f'a log in PostgreSQL needs "postgresql+psycopg://…"; got {known.drivername!r}'
        )
    if backend == "sqlite":
        if known.database in (None, "", ":memory:") or "mode=memory" in url:
            raise ValueError('a log that lasts needs a file, as "sqlite:///offers.db"')
        folder = Path(str(known.database)).parent
        if not folder.is_dir():
            raise FileNotFoundError(f"there is no folder {str(folder)!r} for the log {shown(url)}")
    elif "@" in f"{known.host}{known.database}{rest.partition('?')[2]}":
        raise ValueError(
            "url is not clear: in its user, password and options write @ as %40, / as %2F, : as "
            f"%3A, ? as %3F and % as %25; got {shown(url)}"
        )
    return known


def _engine(url: URL, **options: Any) -> Engine:
    """Return SQLAlchemy's engine; raise ImportError or ValueError where its driver is missing."""
    try:
        return create_engine(url, hide_parameters=True, **options)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"the driver {url.drivername!r} needs {error.name}; the usual one is that of "
            "\"postgresql+psycopg://user@host/name\": pip install 'bayesbandit[postgresql]'",
            name=error.name,
        ) from error
    except (ArgumentError, NoSuchModuleError, TypeError) as error:
        without_secrets(error, _secrets(url))
        raise ValueError(
            f"url must be as {ADDRESS_EXAMPLES}; got {shown(str(url))}: {error}"
        ) from error


def _secrets(url: URL) -> set[str]:
    """Return the texts of an address that nobody may see: its passwords, as given and decoded."""
    options = [(name, one) for name, each in url.query.items() for one in _listed(each)]
    found = {one for name, one in options if "pass" in name.lower()}
    if url.password is not None:
        found |= {str(url.password)}
    return found | {quote(one) for one in found} | {quote(one, safe="") for one in found}


def _listed(value: str | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value


def _without_timeout(url: URL) -> tuple[URL, float]:
    """Return the address without its `timeout`, which is ours, and the seconds."""
    given = url.query.get("timeout")
    if given is None:
        return url, TIMEOUT
    try:
        seconds = float(str(given))
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise ValueError(f"timeout must be seconds > 0, as ?timeout=10; got {given!r}")
    return url.difference_update_query(["timeout"]), seconds


def _durable(connection: sqlite3.Connection, record: object) -> None:
    """Set up a new SQLite connection: writers do not block readers, and a commit is on disk."""
    connection.isolation_level = None  # transactions begin where SQLAlchemy says so
    connection.execute("PRAGMA synchronous=FULL").close()
    until = time.monotonic() + min(left(), TIMEOUT)
    while True:
        try:
            return connection.execute("PRAGMA journal_mode=WAL").close()
        except sqlite3.OperationalError as error:  # two at once do not wait
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)


def _begin_sqlite(connection: Connection) -> None:
    """Begin a transaction of SQLite; one that writes first waits for the lock."""
    if not connection.get_execution_options().get("writes", False):
        connection.exec_driver_sql("BEGIN")
        return
    span = int(1000 * max(left(), 0.0))
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    driver.executescript(f"PRAGMA busy_timeout={span}; BEGIN IMMEDIATE")


def _begin_postgresql(connection: Connection) -> None:
    """Begin a transaction of PostgreSQL, and limit its statements, in one message."""
    writes = connection.get_execution_options().get("writes", False)
    begin = "BEGIN" if writes else "BEGIN ISOLATION LEVEL REPEATABLE READ"
    if left() < math.inf:  # of this transaction alone
        begin += f"; SET LOCAL statement_timeout = {max(1, int(1000 * left()))}"
    connection.exec_driver_sql(begin)


def _forget_connections() -> None:
    for database in list(_open):
        if database.engine is not None:
            database.engine.dispose(close=False)  # they are the parent's
            database.turn = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_connections)
