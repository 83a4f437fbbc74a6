"""PyTensor builds and compiles for one thread at a time, in double precision, without bookkeeping.

`pytensor.config.floatX = "float32"` is a user's own affair: what is computed here loses its meaning
in single precision, so that graphs are built and compiled as if it were not set. Nor does each
variable remember where it was made (`traceback__limit`), which is a quarter of the work.
"""

from __future__ import annotations

import threading
from typing import Any

SETTINGS = {"floatX": "float64", "traceback__limit": 0}


class Compilation:
    """A lock that a thread may take again, and `SETTINGS` for as long as it is held."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._before: list[dict[str, Any]] = []  # other settings at each entrance

    def __enter__(self) -> None:
        import pytensor

        self._lock.acquire()
        config: Any = pytensor.config
        before = {name: getattr(config, name) for name in SETTINGS}
        self._before.append({k: v for k, v in before.items() if v != SETTINGS[k]})
        for name in self._before[-1]:
            setattr(config, name, SETTINGS[name])

    def __exit__(self, *error: object) -> None:
        import pytensor

        for name, value in self._before.pop().items():
            setattr(pytensor.config, name, value)
        self._lock.release()


COMPILE = Compilation()
