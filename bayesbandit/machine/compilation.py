"""PyTensor builds and compiles for one thread at a time, and in double precision.

`pytensor.config.floatX = "float32"` is a user's own affair: what is computed here loses its meaning
in single precision, so that graphs are built and compiled as if it were not set.
"""

from __future__ import annotations

import threading
from typing import Any


class Compilation:
    """A lock that a thread may take again, and `floatX` as float64 for as long as it is held."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._before: list[str] = []  # the setting at each entrance

    def __enter__(self) -> None:
        import pytensor

        self._lock.acquire()
        config: Any = pytensor.config
        self._before.append(config.floatX)
        if config.floatX != "float64":
            config.floatX = "float64"

    def __exit__(self, *error: object) -> None:
        import pytensor

        config: Any = pytensor.config
        before = self._before.pop()
        if config.floatX != before:
            config.floatX = before
        self._lock.release()


COMPILE = Compilation()
