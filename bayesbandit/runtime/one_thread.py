"""Linear algebra on one thread."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


def one_thread() -> AbstractContextManager[Any]:
    """Run linear algebra on one thread within it: small matrices suffer badly from more."""
    return _libraries().limit(limits=1)


@cache
def _libraries() -> ThreadpoolController:
    """Find the libraries: that takes milliseconds, setting them microseconds."""
    return ThreadpoolController()
