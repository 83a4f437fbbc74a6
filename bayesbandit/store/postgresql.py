"""Connections to PostgreSQL that wait no longer than they may, and keep nothing in a session.

So a pooler such as PgBouncer may give each transaction another session.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Any

import psycopg

SECONDS_BETWEEN_LOOKS = 0.02  # seconds between two looks at the deadline
# seconds for the server to end a statement by itself, which keeps the connection
STATEMENT_GRACE_SECONDS = 0.1
SERVER_SETTINGS = {  # each is another one if the address has it
    "connect_timeout": 2,  # seconds; libpq takes no less
    "tcp_user_timeout": 5_000,  # milliseconds without an answer of the other machine
    "keepalives_idle": 5,  # seconds
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "prepare_threshold": None,  # a prepared statement belongs to a session
    "client_encoding": "utf8",  # which the server may not have: see `Database._make`
}


class NoAnswer(psycopg.OperationalError):
    """The server does not answer."""


def bounded(left: Callable[[], float]) -> type[psycopg.Connection[Any]]:
    """Return connections that are closed when the server has not answered in time, as if it hangs.

    left: how many seconds a statement may take now.
    """

    def in_time(gen: Any) -> Any:
        return _until(gen, time.monotonic() + max(left(), 0.0) + STATEMENT_GRACE_SECONDS)

    class Bounded(psycopg.Connection[Any]):
        def wait(self, gen: Any, *given: Any, **settings: Any) -> Any:
            """Return the result of a generator that waits for the server; see psycopg's."""
            if not given:
                settings.setdefault("interval", SECONDS_BETWEEN_LOOKS)
            try:
                return super().wait(in_time(gen), *given, **settings)
            except NoAnswer:
                self.close()
                raise

        @classmethod
        def _connect_gen(cls, *given: Any, **settings: Any) -> Any:
            return in_time(super()._connect_gen(*given, **settings))

    return Bounded


def _until(gen: Generator[Any, int, Any], end: float) -> Generator[Any, int, Any]:
    """Yield what a generator of psycopg waits for; raise NoAnswer if it still waits after `end`.

    An answer that is there by then is taken, however late this thread is. The value
    that is sent cannot tell: psycopg's compiled 3.2.2 to 3.2.9 send "ready" after each look.
    """
    try:
        wanted = next(gen)
        while True:
            over = time.monotonic() > end
            wanted = gen.send((yield wanted))
            if over:
                raise NoAnswer("the server does not answer in time")
    except StopIteration as done:
        return done.value
