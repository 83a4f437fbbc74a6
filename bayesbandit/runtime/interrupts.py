"""Interrupts that wait until compiled code is done."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread


@contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Hold back an interrupt (Ctrl-C) until a block is done.

    Numba runs Python while it compiles, and while it reads a random generator that a kernel takes.
    It does not bear an exception there: the process could not compile again, or would crash.
    """
    is_main = current_thread() is main_thread()  # no other thread is interrupted
    if not is_main or signal.getsignal(signal.SIGINT) is None:  # None: Python does not handle it
        yield
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)
