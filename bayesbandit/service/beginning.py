"""Checks that a service and its log have the same bandit."""

from __future__ import annotations

import json
from typing import Any

from bayesbandit import checks
from bayesbandit.bandit.bandit import Bandit
from bayesbandit.policies import Policy
from bayesbandit.runtime.addresses import hidden
from bayesbandit.store.log import DecisionLog
from bayesbandit.store.settings import Settings


def check_log(log: object) -> None:
    """Raise TypeError unless this is a `DecisionLog`."""
    if not isinstance(log, DecisionLog):
        raise TypeError(
            f'log must be a bb.DecisionLog, as DecisionLog("sqlite:///…"); got {hidden(repr(log))}'
        )


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


def check_same(bandit: Bandit, log: DecisionLog, settings: Settings) -> None:
    """Raise ValueError unless the bandit and the settings are those with which the log began."""
    known = vars(log.ledger.begun())
    own = json.loads(json.dumps(described(bandit)))
    if own["rounds"] == [0, 0]:  # a new one
        own["rounds"] = known["rounds"]
    given = own | vars(settings)
    begun = known | vars(known["settings"])
    for what, value in given.items():
        if value != begun[what]:
            raise ValueError(
                f"{log} began with another {what}: {_shown(what, begun[what])}, not "
                f"{_shown(what, value)}; bb.Service.open(log) goes on with the log's, and another "
                "bandit needs another log or name"
            )


def _shown(what: str, value: Any) -> str:
    """Return a value as text; the span `wait` in seconds."""
    return f"{value / 1e6:g} seconds" if what == "wait" and value is not None else repr(value)[:200]


def check_policy(policy: Policy | None, log: DecisionLog) -> None:
    """Raise ValueError if a policy is given and the log began with another one."""
    known = log.ledger.begun().policy
    if policy is not None and checks.shown(policy) != known:
        raise ValueError(
            f"{log} has a bandit with the policy {known}, not {checks.shown(policy)}; another "
            "policy needs another log"
        )
