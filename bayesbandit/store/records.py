"""What a log keeps, as values: decisions, how they were closed, and how the bandit changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesbandit.checks import Name
from bayesbandit.kernels.row_layout import TAIL

BANDIT, FALLBACK = "bandit", "fallback"  # who decided
TIMELY, LATE, UNKNOWN, AGAIN = "timely", "late", "unknown", "again"  # how a reward came
REWARD, DEFAULT, RETIRED = "reward", "default", "retired"  # how a decision was closed
REFUSED, EXPIRED, INACTIVE = "refused", "expired", "inactive"
LEARNED = (REWARD, DEFAULT)  # outcomes that a bandit learns of
STARTED, LEARN, ADDED, REMOVED = "started", "learned", "arm added", "arm removed"  # events
ACTIVATED, OVERRULED = "activated", "overruled"  # what happened to a decision
SNAPSHOT = "snapshot"  # the event that one was stored, and others removed


class Unavailable(ConnectionError):
    """The log cannot be read or written now."""


class NotStored(Unavailable):
    """A decision that may not be shown, because the log could not be written."""


class Conflict(ValueError):
    """Another value where one is written down already."""


@dataclass(frozen=True)
class Stored:
    """A decision as the log has it.

    t: how many contexts had been decided before. stream, position, place, size: the call that made
    it, by these random numbers, and which of the call's decisions it is.
    """

    id: str
    decided_at: int
    mode: str
    version: int
    t: int
    stream: str
    position: int
    place: int
    size: int
    arm: Name
    propensity: float
    arms: tuple[Name, ...]
    row: np.ndarray  # (width,): see kernels/row_layout.py
    probabilities: np.ndarray  # (K,)
    x: np.ndarray | None  # (A · d,) of the arms that could be chosen, where arms have features
    context: str | None

    @property
    def available(self) -> tuple[Name, ...]:
        """The arms that could be chosen."""
        K = len(self.arms)
        mean = self.row[len(self.row) - TAIL - 3 * K :][:K]
        return tuple(self.arms[k] for k in range(K) if mean[k] > -np.inf)


@dataclass(frozen=True)
class Due:
    """An open decision that is to be learned now, and what has come of it."""

    decision: Stored
    touched: int
    activated: bool
    overruled: bool  # another arm was shown
    rewards: tuple[float, ...]  # those that came in time, in the order of observation


@dataclass(frozen=True)
class Outcome:
    """How a decision was closed: with which reward, or why without one."""

    decision: Stored
    outcome: str
    reward: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Change:
    """How a bandit became another version: what it learned, or an arm that came or went."""

    version: int
    at: int
    kind: str
    detail: Mapping[str, Any]
    learned: tuple[Outcome, ...] = ()
