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


def check_snapshots(every: object, keep: object) -> None:
    """Raise ValueError unless snapshots are made after 1 decision or more, and 1 or more stay."""
    checks.integer(every, "snapshot_every", least=1)
    if keep is not None:
        checks.integer(keep, "keep_snapshots", least=1)


def refuse_fallback(fallback: object) -> None:
    """Raise ValueError if an arm is given that older releases showed without storing it at once."""
    if fallback is not None:
        raise ValueError(
            "there is no fallback any more: a decision that cannot be stored is none. Catch "
            f"OSError (a server answers 503), show {fallback!r} or another arm yourself, and send "
            "no reward of it"
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
    known = log.ledger.beginning() or {}
    own = json.loads(json.dumps(described(bandit)))
    for what in ("arms", "n_features", "encoder", "policy"):
        if own[what] != known[what]:
            said = "" if what == "encoder" else f": {known[what]!r}, not {own[what]!r}"
            raise ValueError(
                f"{log} has a bandit with another {what}{said}; bb.Service.open(log) goes on with "
                "it, and another bandit needs another log"
            )
    if own["rounds"] not in ([0, 0], known["rounds"]):
        raise ValueError(
            f"{log} has a bandit already, which began with {_rounds(known)}, and this one has "
            f"{_rounds(own)}: bb.Service.open(log) goes on with the log's"
        )
    if vars(settings) != (begun := known["settings"]):
        other = next(name for name in begun if begun[name] != vars(settings)[name])
        raise ValueError(
            f"{log} joins rewards by {other}={_said(other, begun[other])}, not "
            f"{_said(other, vars(settings)[other])}"
        )


def _rounds(described: dict[str, Any]) -> str:
    """Return as text how much a described bandit had decided and learned."""
    decided, learned = described["rounds"]
    return f"{decided} decisions and {learned} learned rounds"


def _said(name: str, value: Any) -> str:
    """Return a setting's value as text."""
    return f"{value / 1e6:g} seconds" if name == "wait" and value is not None else repr(value)


def check_policy(policy: Policy | None, log: DecisionLog) -> None:
    """Raise ValueError if a policy is given and the log began with another one."""
    known = (log.ledger.beginning() or {})["policy"]
    if policy is not None and checks.shown(policy) != known:
        raise ValueError(
            f"{log} has a bandit with the policy {known}, not {checks.shown(policy)}; another "
            "policy needs another log"
        )
