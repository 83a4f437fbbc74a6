"""A message for a user who waits while kernels compile, which happens once on a machine."""

from __future__ import annotations

import sys
from multiprocessing import current_process

from numba.core.dispatcher import Dispatcher
from numba.core.event import Event, Listener, register

LINE = (
    "bayesbandit compiles its kernels, once on this machine: the first decision and the first "
    "reward take seconds"
)


class Waiting(Listener):
    """A listener that says once in a process that kernels compile."""

    def __init__(self) -> None:
        self.said = False

    def on_start(self, event: Event) -> None:
        if not self.said and _is_ours(event):
            self.said = True
            if is_watched():
                print(LINE, file=sys.stderr, flush=True)

    def on_end(self, event: Event) -> None:
        """Do nothing."""


def _is_ours(event: Event) -> bool:
    dispatcher = dict(event.data).get("dispatcher")
    if not isinstance(dispatcher, Dispatcher):
        return False
    module = dispatcher.py_func.__module__  # of generated code None: nutpie compiles such
    return module is not None and module.startswith("bayesbandit.")


def is_watched() -> bool:
    """Return whether a user can see the messages of this process: a terminal or a notebook."""
    if current_process().name != "MainProcess" or sys.stderr is None:
        return False
    return "ipykernel" in sys.modules or sys.stderr.isatty()


def listen() -> None:
    """Begin to listen to the compiler."""
    register("numba:compile", Waiting())
