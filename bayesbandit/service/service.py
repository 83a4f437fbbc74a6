"""A bandit in production: a decision is stored before it is returned, a reward counts once."""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit import checks
from bayesbandit.bandit.bandit import Bandit
from bayesbandit.bandit.decision import Decision
from bayesbandit.beliefs.drift_test import EProcess
from bayesbandit.checks import Name
from bayesbandit.runtime.identifiers import id_text, new_ids
from bayesbandit.service.beginning import (
    check_log,
    check_policy,
    check_same,
    described,
)
from bayesbandit.service.inputs import arms_listed, each, encoded, ids_of, list_of
from bayesbandit.store.log import DecisionLog
from bayesbandit.store.records import (
    ADDED,
    LEARN,
    LEARNED,
    REFUSED,
    REMOVED,
    Change,
    Conflict,
    Due,
    NotStored,
    Stored,
    Unavailable,
)
from bayesbandit.store.rows import (
    Parts,
    check_id,
    context_texts,
    decision_of,
    layout_of,
    moment,
    same_json,
    saved,
)
from bayesbandit.store.settings import closed_by, settings_of
from bayesbandit.store.versions import Version, decided, digests, follow, newest, rehearse

if TYPE_CHECKING:
    from bayesbandit.policies import Policy
    from bayesbandit.weighting.base import Balance

logger = logging.getLogger("bayesbandit")
DECISIONS_PER_TRANSACTION = 1000  # decisions learned in one transaction
RECENT = 10_000  # rounds before a learner began that its evidence of changes is about, too
MAX_ATTEMPTS = 100  # at changing a version before another process does


class Service:
    """A bandit that decides, takes rewards and learns through a `DecisionLog`.

    bandit: the bandit to begin with, if the log is empty. If the log already has this bandit, as
        after a restart, the service continues with the newest version in the log.
    wait: how long after a decision its rewards count: "1d", "12h" or seconds; None: forever.
    default_reward: the reward of decisions without a reward after `wait`. None: they are not
        learned.
    aggregate: which of several rewards of a decision counts: the "first", or after `wait` their
        "sum" or the "last".
    activation: whether a decision counts only after `activate` says that it was shown.
    snapshot_every: a learner stores a snapshot after this many closed decisions.
    clock: a function that returns the time, in seconds since 1970.

    Threads may share a service; from asyncio call `await asyncio.to_thread(service.decide, x)`. Any
    number of processes may decide, each with its own service on the same log. One of them learns at
    a time; the others get its versions by `sync`.
    """

    def __init__(
        self,
        bandit: Bandit,
        log: DecisionLog,
        wait: str | float | None = None,
        default_reward: float | None = None,
        *,
        aggregate: str = "first",
        activation: bool = False,
        snapshot_every: int = 5_000,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not isinstance(bandit, Bandit):
            raise TypeError(f"bandit must be a bb.Bandit; got {checks.shown(bandit)}")
        check_log(log)
        checks.integer(snapshot_every, "snapshot_every", least=1)
        self.settings = settings_of(wait, default_reward, aggregate, activation)
        if log.ledger.beginning() is None:
            log.ledger.begin(self.settings, described(bandit), saved(bandit))
        check_same(bandit, log, self.settings)
        parts = Parts(bandit.policy, bandit.spec, bandit.balance)
        self._begin(log, parts, snapshot_every, clock)

    @classmethod
    def open(
        cls,
        log: DecisionLog,
        *,
        policy: Policy | None = None,
        model: Any = None,
        balance: Balance | None = None,
        snapshot_every: int = 5_000,
        clock: Callable[[], float] = time.time,
    ) -> Service:
        """Return a service that continues with the newest version of the log's bandit.

        policy, model, balance: what snapshots do not hold; see `Bandit.load`.
        """
        check_log(log)
        checks.integer(snapshot_every, "snapshot_every", least=1)
        service = object.__new__(cls)
        service.settings = log.ledger.begun().settings
        check_policy(policy, log)
        parts = Parts(policy, model, balance)
        service._begin(log, parts, snapshot_every, clock)
        return service

    def _begin(
        self, log: DecisionLog, parts: Parts, snapshot_every: int, clock: Callable[[], float]
    ) -> None:
        self.log, self.parts, self.clock = log, parts, clock
        self.snapshot_every = snapshot_every
        self._changing = RLock()  # held while the version changes
        self._unsaved = 0  # decisions learned since the last snapshot
        self._counting, self._t = RLock(), 0
        self._secret = log.ledger.begun().secret
        self._version = newest(log.ledger, parts)
        self._lost = False  # whether the log has no bandit any more
        self._evidence: EProcess | None = None  # of a learner

    def __repr__(self) -> str:
        return f"Service({self._version.bandit!r}, version {self.version}, {self.log!r})"

    @property
    def bandit(self) -> Bandit:
        """A copy of the current version's bandit. What the copy learns is not kept."""
        return self._version.bandit.copy()

    @property
    def version(self) -> int:
        """The number of the version that decides here. The first bandit has 0."""
        return self._version.number

    @property
    def arms(self) -> tuple[Name, ...]:
        """The arms' names."""
        return self._version.bandit.arms

    def surprise(self) -> float:
        """Return the evidence that rewards have changed, as a logarithm to base 10.

        It is the largest value of the e-process of `Bandit.drift_test` so far, as the learner has
        stored it with its newest version: over the rewards learned since the learner began, and at
        most 10,000 before. 0 if no version has learned. If nothing changes, it ever reaches 2 with
        probability .01 at most, for each start of a learner.
        """
        return self.log.ledger.surprise()

    def rehearse(self) -> Decision:
        """Compile what decides here and follows a learner; see `versions.rehearse`.

        Nothing changes, here or in the log. Afterwards no request waits for a compiler.
        """
        return rehearse(self._version.bandit)

    # ---- decisions -------------------------------------------------------------------------------

    def decide(
        self, context: Any = None, arms: Iterable[Name] | None = None, id: Any = None
    ) -> Decision:
        """Return a decision about one context or a batch, once it is stored: see `Bandit.choose`.

        arms: the available arms; None: all. id: your text for the decision, or a list of texts for
        a batch; by default ids are made. The same id with the same context and arms returns the
        stored decision; with others it raises ValueError.

        Raise OSError if it cannot be stored: then there is no decision. If the database fails while
        it stores it, the decision may be there: the same id gives it. So use ids of your own.
        """
        stored, single = self.decide_stored(context, arms, id)
        return decision_of(layout_of(self._version.bandit, stored[0].arms), stored, single)

    def decide_stored(
        self, context: Any = None, arms: Iterable[Name] | None = None, id: Any = None
    ) -> tuple[list[Stored], bool]:
        """Return the decisions of `decide` as the log has them, and whether it is a single one."""
        version = self._version
        names = arms_listed(arms)
        x, among, single = encoded(version.bandit, context, names)
        n = len(x)
        now = self._now()
        texts = context_texts(context, n, single)
        ids = [id_text(one) for one in new_ids(n)] if id is None else ids_of(id, n, single)
        first = self._count(n)
        t = range(first, first + n)
        decision = decided(version.bandit, x, among, digests(self._secret, ids), t, [now] * n)
        made = [
            Stored(
                ids[i], now, version.number, t[i], arm, p, decision.arms, row, every,
                x[i] if x.ndim > 2 else None, texts[i],
            )
            for i, (arm, p, row, every) in enumerate(
                zip(
                    np.asarray(decision.arm).tolist(), np.asarray(decision.propensity).tolist(),
                    decision.rows, decision.probabilities, strict=True,
                )
            )
        ]  # fmt: skip
        if self._lost:
            raise Unavailable(f"the log {self.log.ledger} has no bandit any more")
        wait = self.settings.wait
        if not self.log.ledger.append(made, None if wait is None else now + wait):
            made = self._again(ids, texts, among)
            if not made:
                raise NotStored("the log has another decision in the place of this one")
        return made, single

    def _count(self, n: int) -> int:
        """Count n more contexts; return how many were decided before."""
        with self._counting:
            before = max(self._t, self._version.bandit.t)
            self._t = before + n
        return before

    def _again(
        self, ids: Sequence[str], texts: Sequence[str | None], among: tuple[Name, ...] | None
    ) -> list[Stored]:
        """Return the stored decisions with these ids, all or none.

        Raise ValueError if only some are stored, and Conflict if contexts or arms differ.
        """
        stored = self.log.ledger.stored(ids)
        if stored and len(stored) < len(ids):
            lost = next(one for one in ids if one not in {row.id for row in stored})
            raise ValueError(
                f"of these {len(ids)} ids the log has {len(stored)}, and not {lost!r}: a batch is "
                "stored as a whole"
            )
        for row, text in zip(stored, texts, strict=False):
            could = row.arms if among is None else among
            if set(row.available) != set(could) or not same_json(row.context, text):
                raise Conflict(
                    f"the log has a decision {row.id!r}, about another context or other arms: "
                    "give each decision an id of its own"
                )
        if len({row.arms for row in stored}) > 1:
            raise ValueError("these ids were decided in several calls; ask for each call's")
        return stored

    # ---- rewards ---------------------------------------------------------------------------------

    def reward(self, id: Any, value: Any, at: Any = None, key: Any = None) -> Any:
        """Store the reward of a decision, and return its status.

        "timely" rewards count. A "late" reward came after `wait`, after the decision was closed, or
        after the first one, if only the first counts. For an "unknown" one the log has no such
        decision. Both are stored and do not count. "again": the same reward is already stored, and
        nothing changes. Another value raises ValueError, and so does a time before the decision or
        in the future. Lists of ids and values return a list of statuses, where such a reward is
        "refused" instead.

        at: when it was observed: a date, a datetime or seconds since 1970; None: now. A date
            without a zone is of UTC. Clocks may differ by a minute.
        key: identifies one of several rewards of a decision, if their sum or the last one counts.
        Give a key or `at` then, so that a reward that is sent twice does not count twice.
        """
        now = self._now()
        several = not isinstance(id, str)
        ids = [check_id(one) for one in (list_of(id, "id") if several else [id])]
        n = len(ids)
        values = checks.column(value if several else [value], n, "rewards").tolist()
        times = [moment(one, "at") for one in each(at, n, several)]
        keys = [
            self._key(one, when) for one, when in zip(each(key, n, several), times, strict=True)
        ]
        rewards = list(zip(ids, keys, values, times, strict=True))
        status = self.log.ledger.rewards(rewards, now, self.settings)
        if several:
            return [REFUSED if isinstance(one, ValueError) else one for one in status]
        if isinstance(status[0], ValueError):
            raise status[0]
        return status[0]

    def _key(self, key: Any, at: int | None) -> str:
        """Return the key that identifies a reward of a decision."""
        if key is not None:
            return check_id(key, "key")
        if self.settings.aggregate == "first":
            return ""
        if at is None:
            raise ValueError(
                f"aggregate={self.settings.aggregate!r} takes several rewards of a decision: give "
                "each a key=, or at=, so that one that is sent twice counts once"
            )
        return str(at)

    def activate(self, id: Any) -> None:
        """Store that a decision was shown, or each decision in a list of ids.

        Calling it again changes nothing. Raise ValueError if an id is unknown.
        """
        ids = [check_id(one) for one in ([id] if isinstance(id, str) else list_of(id, "id"))]
        self.log.ledger.activate(ids, self._now(), self.settings)

    # ---- learning --------------------------------------------------------------------------------

    def learn(self, limit: int | None = None) -> int:
        """Learn the rewards that have come; return how many. 0 if another process is learning.

        It also closes the decisions whose `wait` is over. Each step is one transaction, and makes a
        new version of the bandit. limit: the largest number of decisions to close.
        """
        left = math.inf if limit is None else checks.integer(limit, "limit", least=1)
        learned = 0
        failed = 0
        ledger = self.log.ledger
        with self._changing, ledger.learner() as elected:
            while elected and left > 0:
                self.sync()
                due, broken = ledger.due(self._now(), int(min(DECISIONS_PER_TRANSACTION, left)))
                due = self._readable(due, broken)
                if broken:
                    ledger.set_aside(broken)
                    logger.error("%s: set aside %s", self.log, "; ".join(broken.values()))
                elif not due:
                    break
                else:
                    closed, new = self._learn(due)
                    failed = 0 if closed else failed + 1
                    if failed == MAX_ATTEMPTS:
                        raise TimeoutError("the log refuses a version each time; see log.verify()")
                    left -= closed
                    learned += new
        if learned:
            with suppress(OSError):  # it is learned anyway
                ledger.database.checkpoint()
        return learned

    def _readable(self, due: Sequence[Due], broken: dict[str, str]) -> list[Due]:
        """Return the decisions that this bandit can read; say in `broken` why not the others."""
        good = []
        for one in due:
            try:
                decision_of(layout_of(self._version.bandit, one.decision.arms), [one.decision])
            except ValueError as error:
                broken[one.decision.id] = str(error)
            else:
                good.append(one)
        return good

    def _learn(self, due: Sequence[Due]) -> tuple[int, int]:
        """Learn from these decisions; return how many were closed and how many learned."""
        retired = self._version.is_retired
        outcomes = [closed_by(one, self.settings, retired(one.decision)) for one in due]
        learned = [one for one in outcomes if one.outcome in LEARNED]
        try:
            version = self._version.learned(learned, len(due))
        except ValueError:  # the bandit refuses some of them
            refused = self._version.refused(learned)
            outcomes = [
                replace(one, outcome=REFUSED, reason=refused[one.decision.id])
                if one.decision.id in refused
                else one
                for one in outcomes
            ]
            learned = [one for one in outcomes if one.outcome in LEARNED]
            version = self._version.learned(learned, len(due))
        unsaved = self._unsaved + len(due)
        data = saved(version.bandit) if unsaved >= self.snapshot_every else None
        evidence = self._evidence_of(version)
        detail = {
            "closed": len(due),
            "learned": len(learned),
            "surprise": evidence.largest / math.log(10),
            "refit": version.refit,
            "outcomes": Counter(one.outcome for one in outcomes),
        }
        digest = self.log.ledger.commit(
            self._version.digest, version.number, LEARN, detail, outcomes, due, data
        )
        if digest is None:
            return 0, 0
        self._version = replace(version, digest=digest)
        self._evidence = evidence
        self._unsaved = 0 if data is not None else unsaved
        return len(due), len(learned)

    def _evidence_of(self, version: Version) -> EProcess:
        """Return the evidence of a version that is not stored yet; that of this service stays."""
        if self._evidence is None:
            self._evidence = EProcess(keep=0)
            self._evidence.followed = max(0, self._version.bandit.history.total - RECENT)
        evidence = deepcopy(self._evidence)
        evidence.follow(version.bandit.history)
        return evidence

    def add_arm(self, arm: Name) -> None:
        """Add an arm. This makes a new version of the bandit."""
        self._change(ADDED, checks.arm_name(arm))

    def remove_arm(self, arm: Name) -> None:
        """Remove an arm. This makes a new version of the bandit.

        The arm's open decisions are closed without being learned.
        """
        self._change(REMOVED, checks.arm_name(arm))

    def _change(self, kind: str, arm: Name) -> None:
        with self._changing:
            for _ in range(MAX_ATTEMPTS):
                self.sync()
                before = self._version
                number = self.version + 1
                detail = {"arm": arm}
                version = before.advance(Change(number, self._now(), kind, detail))
                digest = self.log.ledger.commit(before.digest, number, kind, detail)
                if digest is not None:
                    self._version = replace(version, digest=digest)
                    return
        raise TimeoutError(f"{kind}: {arm!r}: other processes change the bandit all the time")

    # ---- versions --------------------------------------------------------------------------------

    def sync(self) -> int:
        """Get the newest version of the bandit from the log; return its number.

        If the log went back, as to a backup, this service goes back with it, and says so.
        """
        with self._changing:
            ledger = self.log.ledger
            own = self._version
            known = ledger.digest(own.number)
            if known == own.digest:
                self._version = follow(ledger, own, self.parts)
                return self._version.number
            pruned = known is None and ledger.newest() > own.number
            self._lost = True  # until there is a version
            self._version = newest(ledger, self.parts)
            self._lost = False
            if not pruned:
                self._evidence = None
                logger.error(
                    "%s went back: its version %d is not the one that decided here, as after a "
                    "backup was restored. Decisions go on with version %d; what came since the "
                    "backup is lost", self.log, own.number, self._version.number,
                )  # fmt: skip
            return self._version.number

    def snapshot(self) -> int:
        """Store the current version's bandit in the log; return the version's number.

        New processes start from the newest snapshot.
        """
        with self._changing:
            data = saved(self._version.bandit)
            self.log.ledger.add_snapshot(self.version, data)
            self._unsaved = 0
            return self.version

    def _now(self) -> int:
        now = moment(self.clock(), "clock")
        assert now is not None
        return now
