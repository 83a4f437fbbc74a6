"""Refits in the background: each has a thread, and one at a time runs in a process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

_turn = threading.Lock()  # held by the refit that runs


def _turn_again() -> None:
    global _turn
    _turn = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_turn_again)


class Refit[T]:
    """A computation in a thread. number: the number of the draws that it computes.

    A process that ends waits for the refit that runs, and drops the others. A process that is
    forked has no threads of its parent: there, a refit that was not over is lost.
    """

    def __init__(self, number: int, work: Callable[[], T]) -> None:
        self.number, self._process = number, os.getpid()
        self._future: Future[T] = Future()
        thread = threading.Thread(target=self._run, args=(work,), name="bayesbandit refit")
        try:
            thread.start()
        except RuntimeError as error:  # no more threads, or the process ends
            self._future.set_exception(error)

    def _run(self, work: Callable[[], T]) -> None:
        with _turn:
            if not threading.main_thread().is_alive():
                return
            try:
                found = work()
            except BaseException as error:  # told where the result is taken
                self._future.set_exception(error)
            else:
                self._future.set_result(found)

    @property
    def runs(self) -> bool:
        """Whether there will be a result."""
        return not self._future.done() and self._process == os.getpid()

    @property
    def lost(self) -> bool:
        """Whether it ran in another process, and there will be no result."""
        return not (self._future.done() or self.runs)

    @property
    def error(self) -> BaseException | None:
        """What stopped a refit that is over; None if nothing did."""
        return self._future.exception(timeout=0)

    def result(self) -> T:
        """Return what a refit that is over computed."""
        return self._future.result(timeout=0)


class RefitSlot:
    """The refit of a chain, which all its forks share. Copies and files begin without one."""

    def __init__(self) -> None:
        self.refit: Refit[Any] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return RefitSlot, ()
