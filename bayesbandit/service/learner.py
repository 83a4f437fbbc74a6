"""The version of a bandit in one process: it follows the log, learns, and changes arms."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING

from bayesbandit.checks import Name
from bayesbandit.runtime.addresses import hidden
from bayesbandit.store.log import DecisionLog
from bayesbandit.store.records import LEARN, LEARNED, Outcome
from bayesbandit.store.rows import Parts, saved
from bayesbandit.store.settings import Settings, closed_by
from bayesbandit.store.versions import MAX_ATTEMPTS, Version, change, newest

if TYPE_CHECKING:
    from bayesbandit.store.ledger import Ledger

logger = logging.getLogger("bayesbandit")
DECISIONS_PER_TRANSACTION = 1000  # decisions learned in one transaction


def check_log(log: object) -> Ledger:
    """Return the ledger of a log; raise TypeError unless it is a `DecisionLog`."""
    if not isinstance(log, DecisionLog):
        raise TypeError(
            f'log must be a bb.DecisionLog, as DecisionLog("sqlite:///…"); got {hidden(repr(log))}'
        )
    return log.ledger


class Learner:
    """The newest version of a bandit that this process has, and what makes newer ones.

    now: a function that returns microseconds since 1970.
    version: what decides here. lost: whether the log has no bandit any more.
    """

    def __init__(
        self, ledger: Ledger, parts: Parts, settings: Settings, snapshot_every: int,
        now: Callable[[], int],
    ) -> None:  # fmt: skip
        self.ledger, self.parts, self.settings, self.now = ledger, parts, settings, now
        self.snapshot_every = snapshot_every
        self.version = newest(ledger, parts)
        self.lost = False
        self._version_lock = RLock()  # held while the version changes
        self._unsaved = 0  # decisions learned since the last snapshot

    def learn(self, limit: float) -> int:
        """Learn the rewards of at most `limit` decisions: see `Service.learn`."""
        learned = 0
        failed = 0
        with self._version_lock, self.ledger.database.learner() as elected:
            while elected and limit > 0:
                self.sync()
                due, broken = self.ledger.due(
                    self.now(), int(min(DECISIONS_PER_TRANSACTION, limit))
                )
                if broken:
                    self.ledger.set_aside(broken)
                    logger.error("%s: set aside %s", self.ledger, "; ".join(broken.values()))
                elif not due:
                    break
                else:
                    closed, new = self.step(due)
                    failed = 0 if closed else failed + 1
                    if failed == MAX_ATTEMPTS:
                        raise TimeoutError("the log refuses a version each time; see log.verify()")
                    limit -= closed
                    learned += new
        if learned:
            with suppress(OSError):  # it is learned anyway
                self.ledger.database.checkpoint()
        return learned

    def step(self, due: Sequence[Outcome]) -> tuple[int, int]:
        """Learn from these decisions; return how many were closed and how many learned."""
        before = self.version
        outcomes: Sequence[Outcome]
        outcomes = [closed_by(one, self.settings, before.is_retired(one.decision)) for one in due]
        version, outcomes = before.closing(outcomes)
        learned = sum(one.outcome in LEARNED for one in outcomes)
        unsaved = self._unsaved + len(due)
        data = saved(version.bandit) if unsaved >= self.snapshot_every else None
        detail = {"closed": len(due), **version.state}
        digest = self.ledger.commit(before.digest, version.number, LEARN, detail, outcomes, data)
        if digest is None:
            return 0, 0
        self.version = replace(version, digest=digest)
        self._unsaved = 0 if data is not None else unsaved
        return len(due), learned

    def change_arms(self, kind: str, arm: Name) -> None:
        """Add or remove an arm."""
        with self._version_lock:
            self.version = change(self.ledger, self.sync, kind, {"arm": arm})

    def sync(self) -> Version:
        """Get the newest version from the log; see `Service.sync`."""
        with self._version_lock:
            version = self.version
            digest = self.ledger.digest(version.number)
            if digest == version.digest:
                self.version = newest(self.ledger, self.parts, version)
                return self.version
            pruned = digest is None and self.ledger.newest() > version.number
            self.lost = True  # until there is a version
            self.version = newest(self.ledger, self.parts)
            self.lost = False
            if not pruned:
                logger.error(
                    "%s went back: its version %d is not the one that decided here, as after a "
                    "backup was restored. Decisions go on with version %d; what came since the "
                    "backup is lost", self.ledger, version.number, self.version.number,
                )  # fmt: skip
            return self.version

    def snapshot(self) -> int:
        """Store the version's bandit in the log; return its number."""
        with self._version_lock:
            self.ledger.add_snapshot(self.version.number, saved(self.version.bandit))
            self._unsaved = 0
            return self.version.number
