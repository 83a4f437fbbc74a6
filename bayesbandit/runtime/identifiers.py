"""Identifiers that never repeat and sort by the time when they were made: UUIDs of version 7.

RFC 9562, section 5.7: 48 bits of milliseconds, then random bits.
"""

from __future__ import annotations

import os
import time
from uuid import UUID

import numpy as np

BYTES = 16


def new_ids(n: int) -> np.ndarray:
    """Return the bytes (n, 16) of n new identifiers, in ascending order."""
    ids = np.frombuffer(os.urandom(BYTES * n), dtype=np.uint8).reshape(n, BYTES).copy()
    ids[:, :6] = np.frombuffer((time.time_ns() // 1_000_000).to_bytes(6), dtype=np.uint8)
    ids[:, 6] = 0x70 | ids[:, 6] & 0x0F  # the version
    ids[:, 8] = 0x80 | ids[:, 8] & 0x3F  # the variant
    return np.sort(ids.view("S16"), axis=0).view(np.uint8)


def id_text(ids: np.ndarray) -> str:
    """Return an identifier (16,) as text."""
    return str(UUID(bytes=ids.tobytes()))
