"""What a log keeps, as values: decisions, how they were closed, and how the bandit changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesbandit.checks import Name
from bayesbandit.kernels.row_layout import TAIL

BANDIT, SYSTEM = "bandit", "another system"  # who decided
FALLBACK = "fallback"  # an arm that older releases showed without the log
TIMELY, LATE, UNKNOWN, AGAIN = "timely", "late", "unknown", "again"  # how a reward came
REWARD, DEFAULT, RETIRED = "reward", "default", "retired"  # how a decision was closed
REFUSED, EXPIRED, INACTIVE = "refused", "expired", "inactive"
LEARNED = (REWARD, DEFAULT)  # outcomes that a bandit learns of
STARTED, LEARN, ADDED, REMOVED = "started", "learned", "arm added", "arm removed"  # events
ACTIVATED = "activated"  # what happened to a decision
OVERRULED = "overruled"  # by a fallback of an older release
ADVISED = "advised"  # what the bandit would have decided in the place of another system
SNAPSHOT = "snapshot"  # the event that one was stored, and others removed


class Unavailable(ConnectionError):
    """The log cannot be read or written now."""


class NotStored(Unavailable):
    """A decision that may not be shown, because the log could not be written."""


class Conflict(ValueError):
    """The log already has another reward or decision of this id."""


@dataclass(frozen=True)
class Stored:
    """A decision as the log has it.

    decided_at: microseconds since 1970. mode: who decided, "bandit", "fallback" or "another
    system".
    version: of the bandit. t: how many contexts had been decided before. stream, position: the
    stream of random numbers, and the number of the call in it. place, size: the number of the
    decision in its call, and how many decisions the call has.
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
    """An open decision that is to be learned now, with its rewards.

    touched: how often a reward, an activation or an overruling has come. `Ledger.commit` compares
    it, so that nothing is lost that comes while the learner works. activated: whether it was shown.
    """

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
    """How a bandit became version `version`: it learned rewards, or an arm was added or removed.

    at: microseconds since 1970. kind: LEARN, ADDED or REMOVED. detail: the arm, or how many
    decisions were closed. learned: the rewards, in order.
    """

    version: int
    at: int
    kind: str
    detail: Mapping[str, Any]
    learned: tuple[Outcome, ...] = ()
