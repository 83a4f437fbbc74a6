"""The versions of a bandit: each change makes the next version from the one before it.

The learner, the workers that follow it, `replay` and `verify` all call `Version.advance`, with the
same rows in the same batches. So they get the same bits, on one machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from threading import RLock
from typing import TYPE_CHECKING

import numpy as np

from bayesbandit.bandit import choosing, fast_path, random_streams, transactions
from bayesbandit.bandit.bandit import Bandit
from bayesbandit.bandit.decision import Decision
from bayesbandit.beliefs.base import Refits
from bayesbandit.checks import Name
from bayesbandit.store.records import ADDED, LEARN, Change, Outcome, Stored
from bayesbandit.store.rows import Parts, decision_of, layout_of, loaded

if TYPE_CHECKING:
    from bayesbandit.store.ledger import Ledger

CHANGES = 16  # read at a time
BLOCK = 256  # normals drawn at a time


@dataclass(frozen=True)
class Version:
    """A version of the bandit: its number, and a bandit that nobody changes.

    removed: for each arm that was ever removed, the latest version that removed it. refit: whether
    posterior draws were computed for this version.
    """

    number: int
    bandit: Bandit
    removed: dict[Name, int] = field(default_factory=dict)
    refit: bool = False

    def advance(self, change: Change) -> Version:
        """Return the next version."""
        if change.version != self.number + 1:
            raise ValueError(
                f"the log has no version {self.number + 1} of the bandit: after {self.number} "
                f"comes {change.version}"
            )
        if change.kind == LEARN:
            return self.learned(change.learned, change.detail["closed"])
        arm, twin = change.detail["arm"], independent(self.bandit)
        if change.kind == ADDED:
            twin.add_arm(arm)
            return self.next(twin, self.removed)
        twin.remove_arm(arm)
        return self.next(twin, {**self.removed, arm: change.version})

    def next(self, twin: Bandit, removed: dict[Name, int]) -> Version:
        """Return `twin` as the next version; compute its posterior draws now if they are due."""
        refits = isinstance(twin.belief, Refits) and twin.belief.refit_if_due()
        return Version(self.number + 1, twin, removed, refits)

    def learned(self, outcomes: Sequence[Outcome], closed: int) -> Version:
        """Return the version that has learned these rewards, and counted the closed decisions."""
        twin = independent(self.bandit)
        for decision, reward in batches(self.bandit, outcomes):
            twin.observe(decision, reward)
        twin.t, twin.ahead = twin.t + closed, self.bandit.ahead  # open decisions count in the log
        if isinstance(twin.belief, Refits):
            twin.belief.count_decisions(closed)
        return self.next(twin, self.removed)

    def refused(self, outcomes: Sequence[Outcome]) -> dict[str, str]:
        """Return the ids of rewards that cannot be learned, and why."""
        twin, found = independent(self.bandit), dict[str, str]()
        for decision, reward in batches(twin, outcomes):
            left_out = twin.observe(decision, reward, errors="skip") or []
            ids = np.atleast_1d(decision.id)
            found |= {str(ids[row]): reason for row, reason in left_out}
        return found

    def is_retired(self, decision: Stored) -> bool:
        """Return whether the arm was removed after the decision, even if it was added again."""
        return self.removed.get(decision.arm, -1) > decision.version


def independent(bandit: Bandit) -> Bandit:
    """Return a copy that may change while this bandit stays as it is."""
    twin = transactions.fork(bandit)
    transactions.guard(twin)
    fast_path.publish(twin)
    return twin


def batches(bandit: Bandit, outcomes: Sequence[Outcome]) -> Iterator[tuple[Decision, np.ndarray]]:
    """Yield the decisions and rewards (n,) that are learned together: runs with the same arms."""
    for arms, some in groupby(outcomes, key=lambda one: one.decision.arms):
        together = list(some)
        layout = layout_of(bandit, arms)
        decision = decision_of(layout, [one.decision for one in together])
        decision.tick = ticks_of(bandit, [one.decision for one in together])
        yield decision, np.array([one.reward for one in together], dtype=np.float64)


def ticks_of(bandit: Bandit, decisions: Sequence[Stored]) -> np.ndarray | None:
    """Return the ticks (n,) at which stored decisions were made; None if the bandit does not
    forget."""
    if bandit.belief.clock is None:
        return None
    timed = bandit.belief.clock == "time"
    return bandit.ahead + np.array([d.decided_at / 1e6 if timed else d.t + 1.0 for d in decisions])


def decided(
    bandit: Bandit, x: np.ndarray, arms: Sequence[Name] | None, t: int, entropy: int, position: int,
    at: int,
) -> Decision:  # fmt: skip
    """Return the decision of a bandit at contexts (n, d), or (n, A, d) for A arms with features.

    The result depends on the arguments alone, and nothing is changed. t: how many contexts were
    decided before. entropy, position: the stream's random numbers, and the number of the call in
    the stream. at: microseconds since 1970.
    """
    twin = transactions.fork_to_decide(bandit)
    twin.lock = RLock()
    seed = np.random.SeedSequence(entropy, spawn_key=(position,))
    twin.encoder, twin.seed = None, seed
    twin.rng, twin.stream = np.random.Generator(np.random.PCG64(seed)), np.zeros(2 + BLOCK)
    twin.t, twin.now = t, at / 1e6
    random_streams.refill(twin)
    one = len(x) == 1
    decision = choosing.choose(twin, x[0] if one else x, arms)
    decision.settle()
    rows = np.atleast_2d(decision.rows)
    decision.layout.fill_propensities(rows)
    return Decision(bandit.layout, rows)


def rehearse(bandit: Bandit) -> Decision:
    """Compile what decides and learns, by a few rounds of copies; return their last decision.

    This bandit stays as it is. A new bandit needs other functions than one that has learned.
    """
    shape = (len(bandit.arms), bandit.n_features) if bandit.of_arms else (bandit.n_features,)
    every = bandit.arms if bandit.of_arms else None
    for _ in range(2):
        for n in (1, 2):
            decision = decided(bandit, np.zeros((n, *shape)), every, 0, 0, n, 0)
            _ = decision.propensity, decision.probabilities
        twin = independent(bandit)
        twin.observe(decision, np.ones(n), errors="skip")  # a model may refuse this reward
        if isinstance(twin.belief, Refits):
            twin.belief.refit_if_due()
        bandit = twin
    return decision


def follow(ledger: Ledger, version: Version, parts: Parts, until: int | None = None) -> Version:
    """Return the newest version, or version `until`.

    Start from the newest snapshot, or from this version if no snapshot is newer. Then apply the
    later changes.
    """
    newer = ledger.snapshot(until, above=version.number)
    if newer is not None:
        version = restored(ledger, newer, parts)
    return catch_up(ledger, version, until)


def catch_up(ledger: Ledger, version: Version, until: int | None = None) -> Version:
    """Return the newest version, or version `until`: apply every change after this version."""
    while until is None or version.number < until:
        most = CHANGES if until is None else min(CHANGES, until - version.number)
        if not (changes := ledger.changes(version.number, most)):
            break
        for change in changes:
            version = version.advance(change)
    return version


def restored(ledger: Ledger, snapshot: tuple[int, bytes], parts: Parts) -> Version:
    """Return the version of a snapshot."""
    number, data = snapshot
    return Version(number, loaded(data, parts, number), ledger.removed(number))


def first(ledger: Ledger, parts: Parts) -> Version:
    """Return version 0, the bandit with which the log began."""
    if ledger.settings() is None:
        raise ledger.no_bandit()
    beginning = ledger.snapshot(at_most=0)
    if beginning is None:
        raise ValueError(f"the log {ledger} has lost the snapshot of version 0")
    return restored(ledger, beginning, parts)
