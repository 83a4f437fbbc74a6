"""How long a database may take: until the deadline of a request, and for one statement."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_deadline = ContextVar("deadline", default=math.inf)  # of this request, by `time.monotonic`
_limit = ContextVar("limit", default=math.inf)  # seconds of each statement


@contextmanager
def before(deadline: float) -> Iterator[None]:
    """Let the log answer before a time of `time.monotonic`: later it raises, and stores nothing."""
    token = _deadline.set(deadline)
    try:
        yield
    finally:
        _deadline.reset(token)


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Let each statement take so many seconds at most."""
    token = _limit.set(seconds)
    try:
        yield
    finally:
        _limit.reset(token)


def deadline() -> float:
    """Return the deadline of this request, by `time.monotonic`."""
    return _deadline.get()


def left() -> float:
    """Return how many seconds a statement may take now; 0 or less: the deadline is over."""
    return min(_deadline.get() - time.monotonic(), _limit.get())
