"""Refits in the background: each has a thread, and one at a time runs in a process.

A decision in NumPy lets go of the interpreter some dozen times, and a refit that runs Python takes
it. It comes back when it asks for longer than `sys.getswitchinterval()`, which is 5 ms, each time.
So while a refit runs, the interval is shorter.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

INTERVAL = 0.0005  # seconds; a process whose own is shorter keeps it

_turn = threading.Lock()  # held by the refit that runs
_usual: float | None = None  # the interval before it


@contextmanager
def _quick_switches() -> Iterator[None]:
    global _usual
    _usual = sys.getswitchinterval()
    sys.setswitchinterval(min(_usual, INTERVAL))
    ours = sys.getswitchinterval()
    try:
        yield
    finally:
        if sys.getswitchinterval() == ours:  # nobody else has set it
            sys.setswitchinterval(_usual)
        _usual = None


def _begin_again() -> None:
    """Forget the refit of a process that was forked."""
    global _turn, _usual
    _turn = threading.Lock()
    if _usual is not None:
        sys.setswitchinterval(_usual)
        _usual = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_again)


class Refit[T]:
    """A computation in a thread. number: the number of the draws that it computes. error: what
    stopped it; None if nothing did.

    A process that ends waits for the refit that runs, and drops the others. A process that is
    forked has no threads of its parent: there, a refit that was not over is lost. So no lock guards
    the result: the thread could hold it at that moment.
    """

    def __init__(self, number: int, work: Callable[[], T]) -> None:
        self.number, self._process = number, os.getpid()
        self._found: list[T] = []  # the result, once there is one
        self.error: BaseException | None = None
        thread = threading.Thread(target=self._run, args=(work,), name="bayesbandit refit")
        try:
            thread.start()
        except RuntimeError as error:  # no more threads, or the process ends
            self.error = error

    def _run(self, work: Callable[[], T]) -> None:
        with _turn:
            if not threading.main_thread().is_alive():
                return
            try:
                with _quick_switches():
                    found = work()
            except BaseException as error:  # told where the result is taken
                self.error = error
            else:
                self._found.append(found)

    @property
    def _over(self) -> bool:
        return bool(self._found) or self.error is not None

    @property
    def runs(self) -> bool:
        """Whether there will be a result."""
        return not self._over and self._process == os.getpid()

    @property
    def lost(self) -> bool:
        """Whether it ran in another process, and there will be no result."""
        return not self._over and self._process != os.getpid()

    def result(self) -> T:
        """Return what a refit that is over computed."""
        return self._found[0]


class RefitSlot:
    """The refit of a chain, which all its forks share. Copies and files begin without one."""

    def __init__(self) -> None:
        self.refit: Refit[Any] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return RefitSlot, ()
