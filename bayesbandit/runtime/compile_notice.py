"""A line for whoever waits while kernels compile, which happens once on a machine."""

from __future__ import annotations

import sys
from multiprocessing import current_process
from time import perf_counter
from typing import Any

from numba.core.event import Event, Listener, register

PATIENCE = 1.0  # seconds of compiling in silence
LINE = (
    "bayesbandit compiles its kernels, once on this machine: the first decision and the first "
    "reward take seconds"
)


class Waiting(Listener):
    """Says once in a process that it compiles, when that has taken longer than our patience."""

    def __init__(self) -> None:
        self.depth, self.since, self.busy, self.said = 0, 0.0, 0.0, False

    def on_start(self, event: Event) -> None:
        if not _is_ours(event):
            return
        if self.depth == 0:
            self.since = perf_counter()
        self.depth += 1
        if not self.said and self.busy + perf_counter() - self.since > PATIENCE:
            self.said = True
            if is_watched():
                print(LINE, file=sys.stderr, flush=True)

    def on_end(self, event: Event) -> None:
        if not _is_ours(event):
            return
        self.depth = max(0, self.depth - 1)
        if self.depth == 0:
            self.busy += perf_counter() - self.since


def _is_ours(event: Event) -> bool:
    data: Any = event.data
    kernel = getattr(data.get("dispatcher"), "py_func", None)
    module = getattr(kernel, "__module__", None)  # of generated code None: nutpie compiles such
    return isinstance(module, str) and module.startswith("bayesbandit.")


def is_watched() -> bool:
    """Whether somebody looks at what this process says: a terminal or a notebook."""
    if current_process().name != "MainProcess" or sys.stderr is None:
        return False
    return "ipykernel" in sys.modules or sys.stderr.isatty()


def listen() -> None:
    """From now on."""
    register("numba:compile", Waiting())
