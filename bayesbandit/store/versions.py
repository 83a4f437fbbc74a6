"""The versions of a bandit: each change makes the next version from the one before it.

The learner, the workers that follow it, `replay` and `verify` all call `Version.advance`, with the
same rows in the same batches. So they get the same bits, on one machine. What a version decides is
a function of the context, the arms, and a keyed hash of the decision's id.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.bandit import fast_path, transactions
from bayesbandit.bandit.bandit import Bandit
from bayesbandit.bandit.choosing import choose_by_seeds
from bayesbandit.bandit.decision import Decision
from bayesbandit.beliefs.base import Refits
from bayesbandit.checks import Array, Name, arm_name
from bayesbandit.store.records import (
    ADDED,
    CHECKPOINT,
    LEARN,
    LEARNED,
    REFUSED,
    Change,
    Outcome,
    Stored,
)
from bayesbandit.store.rows import Parts, decision_of, layout_of, loaded, saved

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

    from bayesbandit.store.ledger import Ledger

logger = logging.getLogger("bayesbandit")
CHANGES_PER_READ = 16  # read at a time
MAX_ATTEMPTS = 100  # at making a version before another process does


class Gone(ValueError):
    """A version that cannot be computed, since contexts that it learned were erased, or versions
    before it were pruned meanwhile."""


@dataclass(frozen=True)
class Version:
    """A version of the bandit: its number, and a bandit that nobody changes.

    digest: of all changes up to it. removed: for each arm that was ever removed, the latest version
    that removed it.
    """

    number: int
    bandit: Bandit
    digest: bytes = b""
    removed: dict[Name, int] = field(default_factory=dict)

    @property
    def state(self) -> dict[str, Any]:
        """What a change stores of the version that it makes, beside its snapshot."""
        return {"removed": [*self.removed.items()]}

    def advance(self, change: Change) -> Version:
        """Return the next version."""
        number = self.number + 1
        if change.number != number:
            # the versions before a checkpoint may be pruned
            error = Gone if change.kind == CHECKPOINT else ValueError
            raise error(
                f"the log has no version {number} of the bandit: after {self.number} "
                f"comes {change.number}"
            )
        if change.kind == LEARN:
            if erased := sum(one.decision.erased for one in change.learned):
                raise Gone(f"version {number} learned {erased} contexts that were erased")
            following = self.learned(change.learned, change.detail["closed"])
        elif change.kind == CHECKPOINT:
            following = replace(self, number=number)
        else:
            arm = change.detail["arm"]
            twin = independent(self.bandit)
            removed = self.removed
            if change.kind == ADDED:
                twin.add_arm(arm)
            else:
                twin.remove_arm(arm)
                removed = {**removed, arm: number}
            following = self.next(twin, removed)
        return replace(following, digest=change.digest)

    def next(self, twin: Bandit, removed: dict[Name, int]) -> Version:
        """Return `twin` as the next version; compute its posterior draws now if they are due."""
        if isinstance(twin.belief, Refits):
            twin.belief.refit_if_due()
        return Version(self.number + 1, twin, b"", removed)

    def learned(self, outcomes: Sequence[Outcome], closed: int) -> Version:
        """Return the version that has learned these rewards. closed: how many decisions it closes,
        with reward or without; it has counted them."""
        twin = independent(self.bandit)
        for decision, reward in batches(self.bandit, outcomes):
            twin.observe(decision, reward)
        twin.t = twin.t + closed  # open decisions count in the log
        twin.ahead = self.bandit.ahead
        if isinstance(twin.belief, Refits):
            twin.belief.count_decisions(closed)
        return self.next(twin, self.removed)

    def closing(self, outcomes: Sequence[Outcome]) -> tuple[Version, Sequence[Outcome]]:
        """Return the version that closes decisions so, and how they are closed: some as refused, if
        this bandit cannot learn their rewards."""
        learned = [one for one in outcomes if one.outcome in LEARNED]
        try:
            return self.learned(learned, len(outcomes)), outcomes
        except ValueError:
            if not (refused := self.refused(learned)):
                raise
        return self.closing(
            [
                replace(one, outcome=REFUSED, reason=reason)
                if (reason := refused.get(one.decision.id)) is not None
                else one
                for one in outcomes
            ]
        )

    def refused(self, outcomes: Sequence[Outcome]) -> dict[str, str]:
        """Return the ids of rewards that cannot be learned, and why."""
        twin = independent(self.bandit)
        try:
            for decision, reward in batches(twin, outcomes):
                twin.observe(decision, reward)
        except ValueError as error:
            if len(outcomes) == 1:
                return {outcomes[0].decision.id: str(error)}
            half = len(outcomes) // 2
            return self.refused(outcomes[:half]) | self.refused(outcomes[half:])
        return {}

    def is_retired(self, decision: Stored) -> bool:
        """Return whether the arm was removed after the decision, even if it was added again."""
        return self.removed.get(decision.arm, -1) > decision.version


def independent(bandit: Bandit) -> Bandit:
    """Return a copy that may change while this bandit stays as it is."""
    twin = transactions.fork(bandit)
    transactions.guard(twin)
    fast_path.publish(twin)
    return twin


def batches(bandit: Bandit, outcomes: Sequence[Outcome]) -> Iterator[tuple[Decision, Array]]:
    """Yield the decisions and rewards (n,) that are learned together: runs with the same arms."""
    for arms, group in groupby(outcomes, key=lambda one: one.decision.arms):
        together = list(group)
        layout = layout_of(bandit, arms)
        decision = decision_of(layout, [one.decision for one in together])
        decision.tick = ticks_of(bandit, [one.decision for one in together])
        yield decision, np.array([one.reward for one in together], dtype=np.float64)


def ticks_of(bandit: Bandit, decisions: Sequence[Stored]) -> Array | None:
    """Return the ticks (n,) at which stored decisions were made; None if the bandit does not
    forget."""
    if bandit.belief.clock is None:
        return None
    timed = bandit.belief.clock == "time"
    return bandit.ahead + np.array([d.decided_at / 1e6 if timed else d.t + 1.0 for d in decisions])


def rehearse(bandit: Bandit) -> None:
    """Compile what decides and learns, by a few rounds of copies.

    This bandit stays as it is. A new bandit needs other functions than one that has learned.
    """
    shape = (len(bandit.arms), bandit.n_features) if bandit.of_arms else (bandit.n_features,)
    for _ in range(2):
        for n in (1, 2):
            x = np.zeros((n, *shape))
            zeros = [0] * n
            decision = choose_by_seeds(
                bandit, x, None, [bytes([i]) * 32 for i in range(n)], zeros, zeros
            )
            _ = decision.propensity, decision.probabilities
        twin = independent(bandit)
        with suppress(ValueError):  # a model may refuse this reward
            twin.observe(decision, np.ones(n))
        if isinstance(twin.belief, Refits):
            twin.belief.refit_if_due()
        bandit = twin


def change(
    ledger: Ledger, current: Callable[[], Version], kind: str, detail: Mapping[str, Any],
    also: Callable[[Connection], None] | None = None,
) -> Version:  # fmt: skip
    """Store a change of the current version; return the version that it makes.

    A checkpoint has a snapshot. also: see `Ledger.commit`.
    """
    for _ in range(MAX_ATTEMPTS):
        before = current()
        following = before.advance(Change(before.number + 1, kind, detail))
        data = saved(following.bandit) if kind == CHECKPOINT else None
        full_detail = {**detail, **following.state}
        digest = ledger.commit(
            before.digest, following.number, kind, full_detail, data=data, also=also
        )
        if digest is not None:
            return replace(following, digest=digest)
    raise TimeoutError(f"{kind}: other processes change the bandit of {ledger} all the time")


def newest(ledger: Ledger, parts: Parts, version: Version | None = None) -> Version:
    """Return the newest version: the newest snapshot, and the changes after it.

    version: a version; it is the beginning if no snapshot is newer.
    """
    last = ledger.snapshot(above=-1 if version is None else version.number)
    if last is not None:
        version = restored(last, parts)
    if version is None:
        raise ledger.no_bandit()
    return catch_up(ledger, version, parts)


def catch_up(ledger: Ledger, version: Version, parts: Parts, until: int | None = None) -> Version:
    """Return the newest version, or version `until`: apply every change after this version.

    Changes that learned erased contexts, or were pruned meanwhile, are passed over, up to the next
    snapshot, and that is said.
    """
    while until is None or version.number < until:
        most = CHANGES_PER_READ if until is None else min(CHANGES_PER_READ, until - version.number)
        if not (changes := ledger.changes(version.number, most)):
            break
        for each in changes:
            try:
                version = version.advance(each)
            except Gone as error:
                later = ledger.snapshot(above=version.number, oldest=True)
                if later is None or (until is not None and later.number > until):
                    raise
                message = "%s: %s; it goes on from the snapshot of version %d"
                logger.warning(message, ledger, error, later.number)
                version = restored(later, parts)
                break
    return version


def restored(row: Row[Any], parts: Parts) -> Version:
    """Load the version of a row that has a snapshot. parts: what the file cannot hold."""
    names = json.loads(row.detail).get("removed", [])
    removed = {arm_name(arm): number for arm, number in names}
    return Version(row.number, loaded(row.snapshot, parts, row.number), row.digest, removed)
