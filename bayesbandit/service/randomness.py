"""Random numbers of a deciding process: they never repeat, and the log has where they are from."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, field
from threading import Lock

from bayesbandit.runtime.identifiers import id_text, new_ids

BITS = 128


@dataclass
class Stream:
    """A stream of random numbers with a part for each call, from the operating system.

    key: its name in the log. entropy: what they follow from, with a call's position. pid: of the
    process that it belongs to. A forked process needs a stream of its own.
    """

    key: str = field(default_factory=lambda: id_text(new_ids(1)[0]))
    entropy: int = field(default_factory=lambda: secrets.randbits(BITS))
    pid: int = field(default_factory=os.getpid)
    position: int = 0
    lock: Lock = field(default_factory=Lock, repr=False)

    def next(self) -> int:
        """Return the position of the next call."""
        with self.lock:
            self.position += 1
            return self.position - 1
