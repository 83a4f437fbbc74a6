"""What a log keeps, as values: decisions, how they were closed, and how the bandit changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from bayesbandit.checks import Array, Name
from bayesbandit.kernels.row_layout import TAIL

TIMELY, LATE, UNKNOWN, AGAIN = "timely", "late", "unknown", "again"  # how a reward came
REWARD, DEFAULT, RETIRED = "reward", "default", "retired"  # how a decision was closed
REFUSED, EXPIRED, INACTIVE = "refused", "expired", "inactive"
UNREADABLE = "unreadable"  # set aside: the learner cannot read the row
LEARNED = (REWARD, DEFAULT)  # outcomes that a bandit learns of
STARTED, LEARN, ADDED, REMOVED = "started", "learned", "arm added", "arm removed"  # versions
CHECKPOINT = "checkpoint"  # a version with a full snapshot, before which rows may go
ERASED = ""  # in the place of a context


class Unavailable(ConnectionError):
    """The log cannot be read or written now."""


class NotStored(Unavailable):
    """A decision that may not be shown, because the log could not be written."""


class NoDecision(ValueError):
    """The log has no decision of this id."""


class Conflict(ValueError):
    """The log already has another reward or decision of this id."""


@dataclass(frozen=True)
class Stored:
    """A decision as the log has it, with the columns of its table.

    decided_at: microseconds since 1970. version: of the bandit. t: how many contexts had been
    decided before.
    """

    id: str
    decided_at: int
    version: int
    t: int
    arm: Name
    propensity: float
    arms: tuple[Name, ...]
    row: Array  # (width,): see kernels/row_layout.py
    probabilities: Array  # (K,)
    x: Array | None  # (A · d,) of the arms that could be chosen, where arms have features
    context: str | None

    @property
    def beside_context(self) -> Array:
        """The row without its context: means, scales and last numbers of the arms, the scalars."""
        return self.row[len(self.row) - TAIL - 3 * len(self.arms) :]

    @property
    def available(self) -> tuple[Name, ...]:
        """The arms that could be chosen."""
        means = zip(self.arms, self.beside_context, strict=False)
        return tuple(arm for arm, mean in means if mean > -np.inf)

    @property
    def erased(self) -> bool:
        """Whether its context was erased: it cannot be learned or decided again."""
        return self.context == ERASED


DECISION_COLUMNS = tuple(field.name for field in fields(Stored))


@dataclass(frozen=True)
class Outcome:
    """A decision, what came for it, and how it was closed: with which reward, or why without one.

    outcome: None for an open one that is due, with the reward that came in time.
    came, shown: its state when it was read. `Ledger.commit` compares them, so that nothing is lost
    that comes while the learner works.
    """

    decision: Stored
    outcome: str | None
    reward: float | None = None
    reason: str | None = None
    came: int = 0
    shown: int = 0


@dataclass(frozen=True)
class Change:
    """How a bandit became version `number`.

    kind: LEARN, ADDED, REMOVED or CHECKPOINT. detail: the arm, or how
    many decisions were closed. outcomes: the decisions that it closed, in order.
    """

    number: int
    kind: str
    detail: Mapping[str, Any]
    digest: bytes = b""
    outcomes: tuple[Outcome, ...] = ()

    @property
    def learned(self) -> tuple[Outcome, ...]:
        """The outcomes that the bandit learns of."""
        return tuple(one for one in self.outcomes if one.outcome in LEARNED)
