"""Identifiers that never repeat and sort by the time when they were made: UUIDs of version 7.

RFC 9562, section 5.7: 48 bits of milliseconds, the version, 12 random bits, the variant, 62 random
bits.
"""

from __future__ import annotations

import time
from secrets import randbits
from uuid import UUID


def new_ids(n: int) -> list[str]:
    """Return n new identifiers, in ascending order."""
    head = (time.time_ns() // 1_000_000) << 80 | 7 << 76 | 2 << 62
    bits = (randbits(76) for _ in range(n))  # the variant's two are left out
    return sorted(str(UUID(int=head | (b >> 64) << 64 | b & (1 << 62) - 1)) for b in bits)
