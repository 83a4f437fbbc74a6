"""PyTensor builds and compiles for one thread at a time, in double precision, without bookkeeping.

A user may set `pytensor.config.floatX = "float32"`. Our computations need double precision, so
graphs are built and compiled as if it were not set. Variables do not remember where they were made
(`traceback__limit`), because that takes a quarter of the time.
"""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack
from typing import Any

SETTINGS: dict[str, Any] = {"floatX": "float64", "traceback__limit": 0}


class Compilation:
    """A lock that a thread may take again; PyTensor has `SETTINGS` while it is held."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._settings: list[ExitStack] = []  # one for each entrance

    def begin_again(self) -> None:
        """Unlock in a process that was just forked, without the thread that held the lock."""
        self._lock = threading.RLock()
        while self._settings:
            self._settings.pop().close()

    def __enter__(self) -> None:
        import pytensor

        self._lock.acquire()
        self._settings.append(ExitStack())
        self._settings[-1].enter_context(pytensor.config.change_flags(**SETTINGS))

    def __exit__(self, *error: object) -> None:
        self._settings.pop().close()
        self._lock.release()


COMPILE = Compilation()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=COMPILE.begin_again)
