"""Values from a log that is read in parts, so that memory does not grow with the log.

The means of a part are learned from its own earlier rounds. Given the past, the scores stay
unbiased, as those of the whole log do. So the sums of all parts give one estimate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import norm

from bayesbandit.checks import Name
from bayesbandit.ope.check import REFUTED, check
from bayesbandit.ope.estimate import estimate
from bayesbandit.ope.logs.log import Log
from bayesbandit.ope.logs.stored import columns_of
from bayesbandit.ope.question import too_few, too_little
from bayesbandit.ope.tally import Tally, alike, tallied
from bayesbandit.ope.targets import MIN_PROBABILITY
from bayesbandit.store.log import DecisionLog, Time
from bayesbandit.store.rows import moment
from bayesbandit.store.settings import Settings

if TYPE_CHECKING:
    from bayesbandit.store.reading import Chunk

Array = np.ndarray
AT_ONCE = 10_000  # decisions read at a time


class Pooled:
    """The sums of the parts of a log, and the value that they give.

    Only rounds before the first one with an open reward count, as with missing="open" of
    `estimate`.
    """

    def __init__(self, level: float = 0.95) -> None:
        self.level = level
        self.n, self.rounds, self.never, self.ended = 0, 0, 0, False
        self.tally: Tally | None = None
        self.squares = 0.0  # the expected value of Σw²
        self.refused = ""

    def _counts(self, reward: Array, is_open: Array) -> int:
        """Return how many rounds of the next part count, from its beginning."""
        lost = np.isnan(reward)
        self.rounds += len(reward)
        self.never += int((lost & ~is_open).sum())
        count = 0 if self.ended else int(lost.argmax()) if lost.any() else len(reward)
        self.ended |= bool(lost.any())
        return count

    def _take(self, n: int, running: Tally, squares: float) -> None:
        """Add the sums of n rounds that count. squares: the expected value of Σw²."""
        last = running.last()
        self.tally = last if self.tally is None else self.tally + last
        self.n += n
        self.squares += squares

    def summary(self) -> dict[str, float | str]:
        """Return estimate, se, low, high, ess, n, and refused: why there is no interval, or ""."""
        value = se = np.nan
        size = 0.0
        refused = self.refused
        tally = self.tally
        if tally is not None:
            value, se, size = float(tally.value), float(tally.se), float(tally.size)
        if self.never:
            refused = f"{self.never} of {self.rounds} decisions have no reward, and will have none"
        elif not refused and (tally is None or self.n < 2):
            refused = (
                "an interval needs 2 decisions before the first whose reward is open, and has "
                f"{self.n}"
            )
        elif not refused and tally is not None:
            expected = self.n**2 / self.squares if self.squares > 0 else np.inf
            refused, _ = too_little(float(tally.steady), 1.0, size, expected, fragile=False)
            refused = refused or too_few(tally.carrying)
        half = np.nan if refused else norm.ppf((1 + self.level) / 2) * se
        return {
            "estimate": value, "se": se, "low": value - half, "high": value + half, "ess": size,
            "n": self.n, "refused": refused,
        }  # fmt: skip


class MeanReward(Pooled):
    """The mean reward of the logged policy, which needs no propensities."""

    def add(self, reward: Array, is_open: Array) -> None:
        """Add the rewards (n,) of the next rounds. is_open: a mask of those that may still come."""
        y = reward[: self._counts(reward, is_open)]
        if len(y):
            one = np.ones(len(y))
            self._take(len(y), tallied(alike(y, y, (one,)), one), len(y))


class ArmValue(Pooled):
    """The value of always choosing one arm: doubly robust, with StableVar weights.

    Means are predicted from earlier rounds of the same part.
    """

    def __init__(self, arm: Name, level: float = 0.95) -> None:
        super().__init__(level)
        self.arm, self.parts, self.unsupported = arm, 0, 0

    def add(self, data: Log | None, reward: Array, is_open: Array) -> None:
        """Add the next rounds: their log (None if it is empty) and their rewards (n,).

        is_open: a mask (n,) of the rewards that may still come.
        """
        count = self._counts(reward, is_open)
        if data is None:
            return
        assert data.probabilities is not None
        if self.arm in data.arms:
            never = data.probabilities[:, data.arms.index(self.arm)] < MIN_PROBABILITY
        else:
            never = np.ones(len(data), dtype=np.bool_)
        self.parts, self.unsupported = self.parts + 1, self.unsupported + int(never.sum())
        # a true log reaches one of these E with probability .01 at most
        doubt = check(data).log_e
        least = REFUTED + np.log(self.parts * (self.parts + 1))
        if doubt >= least and not self.refused:
            self.refused = f"the propensities are refuted (log E = {doubt:.1f})"
        if count < 2 or self.unsupported:
            return
        found = estimate(data[:count], self.arm, force=True)
        assert found.sums is not None
        self._take(found.n, found.sums, found.n**2 / found.expected_ess)

    def summary(self) -> dict[str, float | str]:
        """Return estimate, se, low, high, ess, n and refused."""
        row = super().summary()
        if self.unsupported:
            share = self.unsupported / self.rounds
            row["refused"] = (
                f"it could not be chosen in {self.unsupported} of {self.rounds} decisions "
                f"({share:.1%})"
            )
            row |= dict.fromkeys(("estimate", "se", "low", "high"), np.nan)
        return row


@dataclass(frozen=True)
class Part:
    """Consecutive decisions: all that the log has, and the log of those that were shown.

    reward: (n,), NaN if open (`is_open`) or if there is none. at: (n,), microseconds since 1970.
    log: None if there are less than two rounds, or if no reward is known.
    """

    chunk: Chunk
    reward: Array
    is_open: Array
    at: Array
    log: Log | None


def parts(log: DecisionLog, since: Time | None = None, until: Time | None = None) -> Iterator[Part]:
    """Yield the decisions between two times, in parts of 10,000 to 20,000, or fewer in all.

    Raise ValueError if the log has no bandit yet.
    """
    from bayesbandit.store.reading import chunks

    known, how = log.ledger.beginning(), log.ledger.settings()
    if known is None or how is None:
        raise log.ledger.no_bandit()
    n_features = known["n_features"]
    held: Chunk | None = None
    for chunk in chunks(log.ledger, moment(since, "since"), moment(until, "until"), AT_ONCE):
        if held is not None and len(chunk.decisions) < AT_ONCE:
            chunk = _together(held, chunk)  # the last two
        elif held is not None:
            yield _part(held, how, n_features)
        held = chunk
    if held is not None:
        yield _part(held, how, n_features)


def _together(one: Chunk, other: Chunk) -> Chunk:
    """Return two consecutive parts as one."""
    from bayesbandit.store.reading import Chunk

    return Chunk(
        one.decisions + other.decisions, one.closed | other.closed, one.came | other.came,
        one.activated | other.activated,
    )  # fmt: skip


def _part(chunk: Chunk, how: Settings, n_features: int) -> Part:
    arms = dict.fromkeys(arm for row in chunk.decisions for arm in row.arms)
    index = {arm: k for k, arm in enumerate(arms)}
    known: dict[str, Any] = columns_of(chunk, index, how, n_features)
    is_open, version = known.pop("open"), known.pop("version")
    known["batch"] = np.maximum.accumulate(version).astype(np.float64)
    reward = known["reward"]
    at = np.round(known["time"] * 1e6).astype(np.int64)
    is_log = len(reward) > 1 and not np.isnan(reward).all()
    return Part(chunk, reward, is_open, at, Log(**known, arms=tuple(arms)) if is_log else None)
