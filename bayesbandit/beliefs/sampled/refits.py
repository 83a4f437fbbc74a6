"""Refits in the background: each has a thread, and one at a time runs in a process."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# A decision in NumPy lets go of the interpreter some dozen times, and waits this long each time for
# a refit that runs Python. A process whose own interval is shorter keeps it.
SWITCH_INTERVAL = 0.0005  # seconds, instead of 5 ms

_turn = threading.Lock()  # held by the refit that runs


def _renew_turn() -> None:
    """Make a new lock in a process that was forked, without the thread that may hold it."""
    global _turn
    _turn = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_turn)


@contextmanager
def _quick_switches() -> Iterator[None]:
    usual = sys.getswitchinterval()
    sys.setswitchinterval(min(usual, SWITCH_INTERVAL))
    ours = sys.getswitchinterval()
    try:
        yield
    finally:
        if sys.getswitchinterval() == ours:  # nobody else has set it
            sys.setswitchinterval(usual)


class Refit[R]:
    """A computation in a thread, one at a time. Forks share it; copies and files begin without one.

    number: that of the draws which the last one computes; 0: there was none. result, error: what it
    returned, or what stopped it; None so far.

    A process that ends waits for the refit that runs, and drops the others; so they wait in threads
    of their own, since an executor's queue would be worked off. A process that is forked has no
    threads of its parent: there, a refit that was not over is lost. So no lock guards the result:
    the thread could hold it at that moment.
    """

    def __init__(self) -> None:
        self.number = 0
        self.result: R | None = None
        self.error: BaseException | None = None
        self._process = -1

    def __reduce__(self) -> tuple[Any, ...]:
        return Refit, ()

    def begin(self, number: int, work: Callable[[], R]) -> None:
        """Begin to compute the draws of this number."""
        self.number = number
        self.result = None
        self.error = None
        self._process = os.getpid()
        thread = threading.Thread(target=self._run, args=(work,), name="bayesbandit refit")
        try:
            thread.start()
        except RuntimeError as error:  # no more threads, or the process ends
            self.error = error

    def _run(self, work: Callable[[], R]) -> None:
        with _turn:
            if not threading.main_thread().is_alive():
                return
            try:
                with _quick_switches():
                    self.result = work()
            except BaseException as error:  # told where the result is taken
                self.error = error

    @property
    def runs(self) -> bool:
        """Whether there will be a result."""
        over = self.result is not None or self.error is not None
        return not over and self._process == os.getpid()
