"""Locks between processes. On Windows there are none, and processes are not kept apart."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any

fcntl = import_module("fcntl") if os.name == "posix" else None


def take(file: IO[Any]) -> None:
    """Lock a file for as long as it is open.

    Raise BlockingIOError if another process has the lock, and OSError if the disk has no locks.
    """
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def turn(folder: Path) -> Iterator[None]:
    """Let one process at a time run a block; on a disk without locks, any number of them."""
    if fcntl is None:
        yield
        return
    held = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)
