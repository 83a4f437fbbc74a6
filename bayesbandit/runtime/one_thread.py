"""Linear algebra on one thread."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, ExitStack
from functools import cache

from threadpoolctl import ThreadpoolController

libraries = cache(ThreadpoolController)  # to find them takes milliseconds, to set them microseconds


class Limit:
    """The limit, which holds until the last of the threads that asked for it has left.

    It has no lock, which an interrupt could leave closed. At worst the limit stays in place.
    """

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Forget the threads that asked: a process that was just forked has none of them."""
        self._asked = 0
        self._limits = ExitStack()

    def __enter__(self) -> None:
        self._asked += 1
        if self._asked == 1:
            self._limits.enter_context(libraries().limit(limits=1))

    def __exit__(self, *raised: object) -> None:
        self._asked -= 1
        if self._asked == 0:
            self._limits.close()


_limit = Limit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_limit.begin)


def one_thread() -> AbstractContextManager[None]:
    """Run linear algebra on one thread within it: small matrices suffer badly from more."""
    return _limit
