"""Random numbers of the deciding processes: they never repeat, and the log can reproduce them."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

from bayesbandit.runtime.identifiers import id_text, new_ids

BITS = 128


@dataclass
class Stream:
    """A stream of random numbers, seeded by the operating system, with a part for each call.

    key: its name in the log. entropy: its seed. position: the number of the next call. Entropy and
    position determine the random numbers of a call.
    """

    key: str = field(default_factory=lambda: id_text(new_ids(1)[0]))
    entropy: int = field(default_factory=lambda: secrets.randbits(BITS))
    position: int = 0

    @property
    def new(self) -> tuple[str, int] | None:
        """The key and the entropy of a stream that the log has not yet; else None."""
        return None if self.position else (self.key, self.entropy)


class Streams:
    """The streams of a process. While a thread decides, it has a stream for itself.

    The calls of a stream are stored in order, without gaps. If it is unknown whether a call was
    stored, its stream is not used again.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start without streams, as a forked process must, and one whose log went back."""
        self.free: list[Stream] = []
        self.pid, self.lock = os.getpid(), Lock()

    @contextmanager
    def one(self) -> Iterator[Stream]:
        """Yield a stream that no other thread or process is using.

        The caller increases its position by the calls that were stored.
        """
        if self.pid != os.getpid():
            self.forget()
        with self.lock:
            free = self.free  # a stream that is forgotten meanwhile does not come back
            stream = free.pop() if free else Stream()
        try:
            yield stream
        except (ValueError, TypeError):  # bad input: nothing was written
            free.append(stream)
            raise
        free.append(stream)
