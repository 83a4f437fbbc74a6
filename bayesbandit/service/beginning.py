"""Checks that a service and its log have the same bandit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bayesbandit import checks
from bayesbandit.bandit.bandit import Bandit
from bayesbandit.runtime.addresses import hidden
from bayesbandit.store.log import DecisionLog

if TYPE_CHECKING:
    from bayesbandit.store.ledger import Ledger
    from bayesbandit.store.settings import Beginning


def check_log(log: object) -> Ledger:
    """Return the ledger of a log; raise TypeError unless it is a `DecisionLog`."""
    if not isinstance(log, DecisionLog):
        raise TypeError(
            f'log must be a bb.DecisionLog, as DecisionLog("sqlite:///…"); got {hidden(repr(log))}'
        )
    return log.ledger


def described(bandit: Bandit) -> dict[str, Any]:
    """Return what identifies a bandit in a log, as plain values: arms, features, policy, rounds."""
    encoder = None if bandit.encoder is None else bandit.encoder.to_dict()
    return {
        "arms": list(bandit.arms),
        "n_features": bandit.n_features,
        "encoder": encoder,
        "policy": checks.shown(bandit.policy),
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
