"""A bandit in production: a decision is stored before it is returned, a reward counts once."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from threading import Lock
from typing import Any, Unpack

import numpy as np

from bayesbandit import checks
from bayesbandit.bandit import choosing
from bayesbandit.bandit.bandit import Bandit
from bayesbandit.bandit.decision import Decision
from bayesbandit.checks import Array, Contexts, Name
from bayesbandit.kernels.row_layout import ARM, PROPENSITY, TAIL
from bayesbandit.runtime.identifiers import id_text, new_ids
from bayesbandit.service.learner import Learner, check_log
from bayesbandit.store.log import DecisionLog
from bayesbandit.store.records import (
    ADDED,
    REFUSED,
    REMOVED,
    Conflict,
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
    same_json,
    saved,
    seeds_of,
    to_microseconds,
)
from bayesbandit.store.settings import (
    Beginning,
    beginning_of,
    check_same,
    described,
    settings_of,
)
from bayesbandit.store.versions import rehearse


class Service:
    """A bandit that decides, takes rewards and learns through a `DecisionLog`.

    bandit: the bandit to begin with, if the log is empty. If the log already has this bandit, as
        after a restart, the service continues with the newest version in the log.
    wait: how long after a decision its rewards count: "1d", "12h", a timedelta or seconds; None:
        forever.
    default_reward: the reward of decisions without a reward after `wait`. None: they are not
        learned.
    activation: whether a decision counts only after `activate` says that it was shown.
    snapshot_every: a learner stores a snapshot after this many decisions that were learned, expired
    or refused.
    clock: a function that returns the time, in seconds since 1970.

    Threads may share a service; from asyncio call `await asyncio.to_thread(service.decide, x)`. Any
    number of processes may decide, each with its own service on the same log. One of them learns at
    a time; the others get its versions by `sync`.
    """

    def __init__(
        self,
        bandit: Bandit,
        log: DecisionLog,
        wait: str | float | timedelta | None = None,
        default_reward: float | None = None,
        *,
        activation: bool = False,
        snapshot_every: int = 5_000,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not isinstance(bandit, Bandit):
            raise TypeError(f"bandit must be a bb.Bandit; got {checks.shown(bandit)}")
        checks.integer(snapshot_every, "snapshot_every", least=1)  # before a log begins
        ledger = check_log(log)
        settings = settings_of(wait, default_reward, activation)
        if (beginning := ledger.beginning()) is None:
            ledger.begin(settings, described(bandit), saved(bandit))
            beginning = ledger.begun()
        check_same(log, beginning, beginning_of(bandit, beginning) | vars(settings))
        parts = Parts(policy=bandit.policy, model=bandit.spec, balance=bandit.balance)
        self._begin(log, beginning, parts, snapshot_every, clock)
        if (limit := self.bandit.history.limit) != bandit.history.limit:
            raise ValueError(
                f"{log} has a bandit with history={limit}; got history={bandit.history.limit}: "
                "another bandit needs another log"
            )

    @classmethod
    def open(
        cls,
        log: DecisionLog,
        *,
        snapshot_every: int = 5_000,
        clock: Callable[[], float] = time.time,
        **parts: Unpack[Parts],
    ) -> Service:
        """Return a service that continues with the newest version of the log's bandit.

        parts: the policy, model or balance that snapshots do not hold; see `Bandit.load`.
        """
        checks.integer(snapshot_every, "snapshot_every", least=1)
        beginning = check_log(log).begun()
        if (policy := parts.get("policy")) is not None:
            check_same(log, beginning, {"policy": checks.shown(policy)})
        service = object.__new__(cls)
        service._begin(log, beginning, parts, snapshot_every, clock)
        return service

    def _begin(
        self, log: DecisionLog, beginning: Beginning, parts: Parts, snapshot_every: int,
        clock: Callable[[], float],
    ) -> None:  # fmt: skip
        self.log = log
        self.clock = clock
        self.settings = beginning.settings
        self._secret = beginning.secret
        self._count_lock = Lock()
        self._t = 0
        self._learner = Learner(log.ledger, parts, self.settings, snapshot_every, self._now)
        self._count_rounds()

    def __repr__(self) -> str:
        return f"Service({self._learner.version.bandit!r}, version {self.version}, {self.log!r})"

    @property
    def bandit(self) -> Bandit:
        """A copy of the current version's bandit. What the copy learns is not kept."""
        return self._learner.version.bandit.copy()

    @property
    def version(self) -> int:
        """The number of the version that decides here. The first bandit has 0."""
        return self._learner.version.number

    @property
    def arms(self) -> tuple[Name, ...]:
        """The arms' names."""
        return self._learner.version.bandit.arms

    def rehearse(self) -> None:
        """Compile what decides here and follows a learner; see `versions.rehearse`.

        Nothing changes, here or in the log. Afterwards no request waits for a compiler.
        """
        rehearse(self._learner.version.bandit)

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
        return decision_of(layout_of(self._learner.version.bandit, stored[0].arms), stored, single)

    def decide_stored(
        self, context: Any = None, arms: Iterable[Name] | None = None, id: Any = None
    ) -> tuple[list[Stored], bool]:
        """Return the decisions of `decide` as the log has them, and whether it is a single one."""
        version = self._learner.version
        listed = [arms] if isinstance(arms, str | int) else arms
        names = None if listed is None else tuple(dict.fromkeys(listed))
        x, among, single = encoded(version.bandit, context, names)
        n = len(x)
        now = self._now()
        if context is not None and version.bandit.encoder is None and not version.bandit.of_arms:
            context = x[0] if single else x  # numbers, of whatever types they were
        texts = context_texts(context, n, single)
        ids = [id_text(one) for one in new_ids(n)] if id is None else ids_of(id, n, single)
        with self._count_lock:  # how many rounds were decided before
            first = max(self._t, self._learner.version.bandit.t)
            self._t = first + n
        t = range(first, first + n)
        seeds = seeds_of(self._secret, ids)
        decision = choosing.choose_by_seeds(version.bandit, x, among, seeds, t, [now] * n)
        numbers = decision.rows[:, ARM - TAIL].astype(np.int64).tolist()
        propensities = decision.rows[:, PROPENSITY - TAIL].tolist()
        probabilities = decision.probabilities
        stored = [
            Stored(
                ids[i], now, version.number, t[i], decision.arms[numbers[i]], propensities[i],
                decision.arms, decision.rows[i], probabilities[i],
                x[i] if x.ndim > 2 else None, texts[i],
            )
            for i in range(n)
        ]  # fmt: skip
        if self._learner.lost:
            raise Unavailable(f"the log {self.log.ledger} has no bandit any more")
        wait = self.settings.wait
        if not self.log.ledger.append(stored, None if wait is None else now + wait):
            stored = self._stored_before(ids, texts, among)
            if not stored:
                raise NotStored("the log has another decision in the place of this one")
        return stored, single

    def _stored_before(
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
            same = not row.erased and same_json(row.context, text)
            if set(row.available) != set(could) or not same:
                raise Conflict(
                    f"the log has a decision {row.id!r}, about another context or other arms: "
                    "give each decision an id of its own"
                )
        if len({row.arms for row in stored}) > 1:
            raise ValueError("these ids were decided in several calls; ask for each call's")
        return stored

    # ---- rewards ---------------------------------------------------------------------------------

    def reward(self, id: Any, value: Any, at: Any = None) -> Any:
        """Store the reward of a decision, and return its status.

        "timely" rewards count. A "late" reward came after `wait`, or after the decision was closed.
        For an "unknown" one the log has no such decision. Both are stored and do not count.
        "again": the same reward is already stored, and nothing changes. A decision has one reward:
        another value raises ValueError, and so does a time before the decision or in the future.
        Lists of ids and values return a list of statuses, where such a reward is "refused" instead.

        at: when it was observed: a date, a datetime or seconds since 1970; None: now. A date
            without a zone is of UTC. Clocks may differ by a minute.
        """
        now = self._now()
        several = not isinstance(id, str)
        ids = [check_id(one) for one in (list_of(id) if several else [id])]
        n = len(ids)
        # databases may lose the sign of −0.0, which a digest would miss
        values = (checks.column(value if several else [value], n, "rewards") + 0.0).tolist()
        if not several or isinstance(at, str | bytes) or not isinstance(at, Iterable):
            at = [at] * n
        if len(at := list(at)) != n:
            raise ValueError(f"at must have one time for each of {n} ids; got {len(at)}")
        times = [to_microseconds(one, "at") for one in at]
        rewards = list(zip(ids, values, times, strict=True))
        status = self.log.ledger.rewards(rewards, now, self.settings)
        if several:
            return [REFUSED if isinstance(one, ValueError) else one for one in status]
        if isinstance(status[0], ValueError):
            raise status[0]
        return status[0]

    def activate(self, id: Any) -> None:
        """Store that a decision was shown, or each decision in a list of ids.

        Calling it again changes nothing. Raise ValueError if an id is unknown.
        """
        ids = [check_id(one) for one in ([id] if isinstance(id, str) else list_of(id))]
        self.log.ledger.activate(ids, self._now(), self.settings)

    # ---- learning --------------------------------------------------------------------------------

    def learn(self, limit: int | None = None) -> int:
        """Learn the rewards that have come; return how many. 0 if another process is learning.

        It also closes the decisions whose `wait` is over. Each step is one transaction, and makes a
        new version of the bandit. limit: the largest number of decisions to close.
        """
        left = math.inf if limit is None else checks.integer(limit, "limit", least=1)
        return self._learner.learn(left)

    def add_arm(self, arm: Name) -> None:
        """Add an arm. This makes a new version of the bandit."""
        self._learner.change_arms(ADDED, checks.arm_name(arm))

    def remove_arm(self, arm: Name) -> None:
        """Remove an arm. This makes a new version of the bandit.

        The arm's open decisions are closed without being learned.
        """
        self._learner.change_arms(REMOVED, checks.arm_name(arm))

    # ---- versions --------------------------------------------------------------------------------

    def sync(self) -> int:
        """Get the newest version of the bandit from the log; return its number.

        If the log went back, as to a backup, this service goes back with it, and says so.
        """
        version = self._learner.sync().number
        self._count_rounds()
        return version

    def snapshot(self) -> int:
        """Store the current version's bandit in the log; return the version's number.

        New processes start from the newest snapshot.
        """
        return self._learner.snapshot()

    def _count_rounds(self) -> None:
        """Count the rounds of other processes, and of this one before a restart."""
        decided = self.log.ledger.rounds()
        with self._count_lock:
            self._t = max(self._t, decided)

    def _now(self) -> int:
        now = to_microseconds(self.clock(), "clock")
        assert now is not None
        return now


def encoded(
    bandit: Bandit, context: Contexts, names: tuple[Name, ...] | None
) -> tuple[Array, tuple[Name, ...] | None, bool]:
    """Return encoded contexts, the available arms, and whether x is a single context.

    Contexts are (n, d), or (n, A, d) if the A available arms have features. Arms are in the
    bandit's order; None: all.
    """
    if not bandit.of_arms:
        context = choosing.EMPTY_CONTEXT if context is None else bandit.encoded(context)
    x, available, one = choosing.contexts(bandit, context, names)
    if not len(x):
        raise ValueError("contexts must have at least one row; got none")
    if names is None and not bandit.of_arms:
        return x, None, one
    among = tuple(arm for arm, on in zip(bandit.arms, available, strict=True) if on)
    return x[:, available] if bandit.of_arms else x, among, one


def ids_of(names: object, n: int, one: bool) -> list[str]:
    """Return the ids of n decisions as a list; raise ValueError unless all differ."""
    ids = [names] if one else list_of(names)
    checked = [check_id(each) for each in ids]
    if len(checked) != n or len(set(checked)) < n:
        raise ValueError(
            f"id must have one text for each of {n} contexts, all different; got {len(checked)}, "
            f"{len(set(checked))} of them different"
        )
    return checked


def list_of(values: object) -> list[object]:
    """Return ids as a list; raise TypeError if they are no list."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError(f"id must be text, or a list of texts for several; got {values!r}")
    return values.tolist() if isinstance(values, np.ndarray) else list(values)
