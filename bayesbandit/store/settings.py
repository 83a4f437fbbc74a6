"""How a log began: its bandit, and how rewards join decisions; the same for all processes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from bayesbandit.checks import MAX_ABS_VALUE, Name, number, seconds, shown
from bayesbandit.store.records import DEFAULT, EXPIRED, INACTIVE, RETIRED, REWARD, Outcome

if TYPE_CHECKING:
    from bayesbandit.bandit.bandit import Bandit
    from bayesbandit.store.log import DecisionLog


@dataclass(frozen=True)
class Settings:
    """How the reward of a decision is found.

    wait: rewards count for so many microseconds after the decision; None: for ever.
    default_reward: the reward if none came within `wait`; None: the decision is not learned.
    activation: whether only decisions that were shown are learned.
    """

    wait: int | None = None
    default_reward: float | None = None
    activation: bool = False


@dataclass(frozen=True)
class Beginning:
    """How a bandit began in its log: what version 0 says of it, as plain values.

    secret: the key of the hash that makes random numbers of ids. encoder: of contexts, as a dict.
    rounds: how many it had decided and learned before.
    """

    settings: Settings
    secret: bytes
    arms: list[Name]
    n_features: int
    encoder: dict[str, Any] | None
    policy: str
    rounds: list[int]


def closed_by(due: Outcome, how: Settings, retired: bool) -> Outcome:
    """Return how a decision that is due is closed: with a reward, or why without one.

    retired: whether its arm was removed since.
    """

    def closed(outcome: str, reason: str | None, reward: float | None = None) -> Outcome:
        return replace(due, outcome=outcome, reward=reward, reason=reason)

    if how.activation and not due.shown:
        return closed(INACTIVE, "it was not activated")
    if due.decision.erased:
        return closed(EXPIRED, "its context was erased")
    kind = DEFAULT if due.reward is None else REWARD
    reward = how.default_reward if due.reward is None else due.reward
    if reward is None:
        return closed(EXPIRED, "no reward came in time")
    if retired:
        return closed(RETIRED, f"the arm {due.decision.arm!r} was removed", reward)
    return closed(kind, None, reward)


def settings_of(
    wait: str | float | timedelta | None, default_reward: float | None, activation: bool
) -> Settings:
    """Return settings as a user gives them, checked."""
    span = seconds(wait, "wait")
    if span is None and default_reward is not None:
        raise ValueError(
            'default_reward needs wait, as wait="1d": the time after which it is learned'
        )
    if default_reward is not None:
        default_reward = number(default_reward, "default_reward", largest=MAX_ABS_VALUE) + 0.0
    if not isinstance(activation, bool):
        raise TypeError(f"activation must be True or False; got {activation!r}")
    microseconds = None if span is None else math.ceil(span * 1e6)
    return Settings(microseconds, default_reward, activation)


def described(bandit: Bandit) -> dict[str, Any]:
    """Return what identifies a bandit in a log, as plain values: arms, features, policy, rounds."""
    encoder = None if bandit.encoder is None else bandit.encoder.to_dict()
    return {
        "arms": list(bandit.arms),
        "n_features": bandit.n_features,
        "encoder": encoder,
        "policy": shown(bandit.policy),
        "rounds": [bandit.t, bandit.history.total],
    }


def beginning_of(bandit: Bandit, beginning: Beginning) -> dict[str, Any]:
    """Return `described` as a log has it. A new bandit stands for one that had rounds."""
    description: dict[str, Any] = json.loads(json.dumps(described(bandit)))
    return description if any(description["rounds"]) else description | {"rounds": beginning.rounds}


def check_same(log: DecisionLog, beginning: Beginning, described_as: Mapping[str, Any]) -> None:
    """Raise ValueError unless what is given is that with which the log began."""
    begun = vars(beginning) | vars(beginning.settings)
    for what, value in described_as.items():
        if value != begun[what]:
            raise ValueError(
                f"{log} began with {what} {_shown(what, begun[what])}, not {_shown(what, value)}; "
                "bb.Service.open(log) goes on with the log's, and another bandit needs another log"
            )


def _shown(what: str, value: Any) -> str:
    """Return a value as text; the span `wait` in seconds."""
    return f"{value / 1e6:g} seconds" if what == "wait" and value is not None else repr(value)[:200]
