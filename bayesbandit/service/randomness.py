"""Random numbers of deciding processes: they never repeat, and the log has where they are from."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

from bayesbandit.runtime.identifiers import id_text, new_ids

BITS = 128


@dataclass
class Stream:
    """A stream of random numbers with a part for each call, from the operating system.

    key: its name in the log. entropy: what they follow from, with a call's position. position: of
    the next call.
    """

    key: str = field(default_factory=lambda: id_text(new_ids(1)[0]))
    entropy: int = field(default_factory=lambda: secrets.randbits(BITS))
    position: int = 0


class Streams:
    """The streams of a process: a thread has one for itself while it decides.

    record: writes a new stream into the log. A stream's calls are stored in order, without a gap:
    a stream whose call failed, and may be stored or not, is given up.
    """

    def __init__(self, record: Callable[[Stream], None]) -> None:
        self.record = record
        self.forget()

    def forget(self) -> None:
        """Begin without streams, as a forked process must."""
        self.free: list[Stream] = []
        self.pid, self.lock = os.getpid(), Lock()

    @contextmanager
    def one(self) -> Iterator[Stream]:
        """Yield a stream that no other thread or process has. Who uses its call counts it."""
        if self.pid != os.getpid():
            self.forget()
        with self.lock:
            stream = self.free.pop() if self.free else None
        if stream is None:
            self.record(stream := Stream())
        try:
            yield stream
        except (ValueError, TypeError):  # bad input: nothing was written
            self.free.append(stream)
            raise
        self.free.append(stream)
