"""Memory that large arrays take in turns: the system clears new pages, and that takes longer than
to copy into old ones."""

from __future__ import annotations

import math
import os
import sys
from threading import Lock
from weakref import ReferenceType, ref

import numpy as np

KEPT = 2  # a decision is made while the last one is still held

_lock = Lock()
_kept: list[tuple[np.ndarray, ReferenceType[np.ndarray]]] = []  # memory, and who has it


def _unlock() -> None:
    """Make a new lock in a process that was forked, without the thread that may hold it."""
    global _lock
    _lock = Lock()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_unlock)


def lent(shape: tuple[int, ...]) -> np.ndarray:
    """Return an array of this shape, with any content.

    Its memory is lent again when neither the array nor a view of it is left. The memory of the last
    two arrays is kept.
    """
    size = math.prod(shape)
    if not size:
        return np.empty(shape)
    with _lock:
        free = [memory for memory, user in _kept if user() is None and memory.size == size]
        memory = free[0] if free else np.empty(size)
        array = np.frombuffer(memory.data)  # views of it refer to it, and not to the memory
        _kept[:] = [(own, user) for own, user in _kept if own is not memory][1 - KEPT :]
        _kept.append((memory, ref(array)))
    return array.reshape(shape)
