"""Context variables that have another value for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


@contextmanager
def during[T](variable: ContextVar[T], value: T) -> Iterator[None]:
    """Give a context variable a value within the `with` statement."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)
