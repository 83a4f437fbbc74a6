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
    """Hold a lock for as long as the file is open. BlockingIOError where another process has it,
    OSError of a disk without locks."""
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def turn(folder: Path) -> Iterator[None]:
    """Let one process at a time in, where the folder's disk has locks."""
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
