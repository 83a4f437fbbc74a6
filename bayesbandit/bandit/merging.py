"""Merging of two bandits that learned from different rounds.

Sums over rounds are added, and the prior counts once (`Mergeable.absorb`). The result is as if one
bandit had learned the first one's rounds and then the other's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayesbandit.bandit import ticks, transactions
from bayesbandit.beliefs.base import Forgets, Mergeable, needed
from bayesbandit.beliefs.shared.belief import SharedBelief
from bayesbandit.checks import shown

if TYPE_CHECKING:
    from bayesbandit.bandit.bandit import Bandit

MIN_COMMON_ROUNDS = 10  # rounds that two bandits have in common by no accident


@transactions.exclusive
def merge(bandit: Bandit, other: Bandit) -> None:
    """Learn what a fork of another bandit has learned; all or nothing."""
    _check(bandit, other)
    draft = transactions.fork(bandit)
    if bandit.belief.clock is not None:
        now = max(ticks.tick(bandit), ticks.tick(other))
        for belief in (draft.belief, other.belief):
            needed(belief, Forgets, "time passes").advance(now)
    needed(draft.belief, Mergeable, "bandits are merged").absorb(other.belief)
    draft.t = bandit.t + other.t
    if bandit.belief.clock == "rounds":  # the same tick, of the rounds of both
        draft.ahead -= other.t
    rows = other.history.ordered().copy()
    retired = len(draft.history.retired)
    arm = other.layout.records(rows)["arm"]
    arm[arm < 0] -= retired
    draft.history.retired += other.history.retired
    draft.history.extend(rows, other.history.total)
    transactions.commit(bandit, draft)


def _check(bandit: Bandit, other: Bandit) -> None:
    """Raise ValueError unless the two are of one kind, and have no rounds in common."""
    for what, mine, its in (
        ("arms", bandit.arms, other.arms),
        ("features", bandit.n_features, other.n_features),
        ("encoders", bandit.encoder, other.encoder),
        ("models", bandit.spec, other.spec),
        ("balances", bandit.balance, other.balance),
    ):
        if mine != its:
            raise ValueError(f"bandits merge if they have the same {what}; got {mine!r}, {its!r}")
    belief = bandit.belief.common if isinstance(bandit.belief, SharedBelief) else bandit.belief
    if not isinstance(belief, Mergeable):
        raise ValueError(
            f"{shown(bandit.spec)} is known by draws of its posterior, which do not add up: merge "
            "the logs, and let one bandit learn them by update"
        )
    if bandit.reweighting is not None:
        raise ValueError(
            f"{bandit.balance!r} weighs past rounds by all of them: merge the logs, and let one "
            "bandit learn them by update"
        )
    if bandit.belief.clock == "rounds" and ticks.tick(bandit) != ticks.tick(other):
        raise ValueError(
            "bandits that forget merge at the same tick of their clocks; got "
            f"{ticks.tick(bandit):g} and {ticks.tick(other):g}: forget(steps) puts a clock forward"
        )
    if bandit.belief.clock == "time" and bandit.ahead != other.ahead:
        raise ValueError(
            "bandits that forget merge with their clocks as far forward; got "
            f"{bandit.ahead:g} and {other.ahead:g} seconds"
        )
    kept = len(other.history)
    needed = bandit.history.kept(other.history.total)
    if kept < needed:
        raise ValueError(
            f"the history would keep {needed} rounds of the other bandit, which has kept {kept}: "
            "make both with the same history="
        )
    if (same := _in_common(bandit, other)) >= MIN_COMMON_ROUNDS:
        raise ValueError(
            f"the two have {same} rounds in common, which would count twice: merge bandits that "
            "began without data, or from rounds of their own"
        )


def _in_common(bandit: Bandit, other: Bandit) -> int:
    """Return how many kept rounds are the same in both to the bit.

    Rounds without moments, as `update` may log them, are left out: many are alike.
    """
    kept = []
    for one in (bandit, other):
        rows = one.history.ordered()
        log = one.history.records
        known = (np.isfinite(log["scale"]) & (log["scale"] > 0)).any(axis=1)
        kept.append({row.tobytes() for row in np.delete(rows[known], -3, axis=1)})
    return len(kept[0] & kept[1])
