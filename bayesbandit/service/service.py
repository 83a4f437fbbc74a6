"""A bandit in production: a decision is stored before it is returned, a reward counts once."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit import checks
from bayesbandit.bandit.bandit import Bandit
from bayesbandit.bandit.decision import Decision
from bayesbandit.checks import Name
from bayesbandit.service.beginning import check_log, check_policy, check_same, described
from bayesbandit.service.inputs import each, encoded, ids_of, list_of, listed
from bayesbandit.service.randomness import Stream, Streams
from bayesbandit.store.log import DecisionLog
from bayesbandit.store.records import (
    ADDED,
    BANDIT,
    DEFAULT,
    EXPIRED,
    FALLBACK,
    INACTIVE,
    LEARN,
    LEARNED,
    REFUSED,
    REMOVED,
    RETIRED,
    REWARD,
    Change,
    Conflict,
    Due,
    NotStored,
    Outcome,
    Stored,
    Unavailable,
)
from bayesbandit.store.rows import (
    Parts,
    arms_text,
    check_id,
    column,
    context_texts,
    decision_of,
    layout_of,
    moment,
    saved,
    text_of,
)
from bayesbandit.store.settings import joined, settings_of
from bayesbandit.store.versions import Version, catch_up, certain, decided, follow, restored

if TYPE_CHECKING:
    from bayesbandit.policies import Policy
    from bayesbandit.weighting.base import Balance

CHUNK = 1000  # decisions that are learned in one transaction
ATTEMPTS = 100  # to be the first to change a version
MOST_LATE = 10_000  # calls that fell back and wait to be stored


@dataclass(frozen=True)
class Asked:
    """A call of `decide`: contexts (n, …) for a version, the arms that may be chosen (None: all),
    the contexts as texts, and ids, where they are given."""

    version: Version
    x: np.ndarray
    among: tuple[Name, ...] | None
    texts: list[str | None]
    ids: list[str] | None


class Service:
    """A bandit that decides, takes rewards and learns through a `DecisionLog`.

    bandit: where the log has none yet, everything begins with it. Where the log has this bandit, as
        after a restart, the service goes on with the newest version of the log.
    wait: how long after a decision its rewards count: "1d", "12h", or seconds; None: for ever.
    default_reward: the reward of decisions that have none after `wait`. None: they teach nothing.
    aggregate: which of several rewards of a decision counts: "first", or after `wait` their "sum"
        or the "last" one.
    activation: whether decisions count only after `activate`, which says that they were shown.
    fallback: the arm to show where the log cannot be written, and this arm may be chosen. It is
        logged, with probability 1, as soon as that is possible. None: an error is raised and there
        is no decision.
    snapshot_every: after so many closed decisions a learner stores a snapshot.
    keep_snapshots: the newest so many snapshots stay, and the first. Of those between, about as
        many stay for each doubling of their age. None: all stay.
    clock: what tells the time, in seconds since 1970.

    Threads may share a service; from asyncio call `await asyncio.to_thread(service.decide, x)`. Any
    number of processes may decide, each with a service of its own on the same log. One of them
    learns at a time; the others take over its versions by `sync`.
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
        fallback: Name | None = None,
        snapshot_every: int = 5_000,
        keep_snapshots: int | None = 3,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not isinstance(bandit, Bandit):
            raise TypeError(f"bandit must be a bb.Bandit; got {checks.shown(bandit)}")
        check_log(log)
        self.settings = settings_of(wait, default_reward, aggregate, activation)
        if log.ledger.settings() is None:
            log.ledger.begin(self.settings, described(bandit), saved(bandit))
        check_same(bandit, log, self.settings)
        parts = Parts(bandit.policy, bandit.spec, bandit.balance)
        self._begin(log, parts, fallback, snapshot_every, keep_snapshots, clock)

    @classmethod
    def open(
        cls,
        log: DecisionLog,
        *,
        policy: Policy | None = None,
        model: Any = None,
        balance: Balance | None = None,
        fallback: Name | None = None,
        snapshot_every: int = 5_000,
        keep_snapshots: int | None = 3,
        clock: Callable[[], float] = time.time,
    ) -> Service:
        """Return a service that goes on with the newest version of the log's bandit.

        policy, model, balance: what snapshots do not hold; see `Bandit.load`.
        """
        check_log(log)
        service, settings = object.__new__(cls), log.ledger.settings()
        if settings is None:
            raise log.ledger.nothing()
        check_policy(policy, log)
        service.settings = settings
        parts = Parts(policy, model, balance)
        service._begin(log, parts, fallback, snapshot_every, keep_snapshots, clock)
        return service

    def _begin(
        self, log: DecisionLog, parts: Parts, fallback: Name | None, snapshot_every: int,
        keep_snapshots: int | None, clock: Callable[[], float],
    ) -> None:  # fmt: skip
        self.log, self.parts, self.clock = log, parts, clock
        self.snapshot_every = checks.integer(snapshot_every, "snapshot_every", least=1)
        self.keep_snapshots = keep_snapshots
        if keep_snapshots is not None:
            checks.integer(keep_snapshots, "keep_snapshots", least=1)
        self._changing = RLock()  # who takes over another version
        self._unsaved = 0  # decisions learned since the last snapshot
        self._late: list[tuple[Stream, list[dict[str, Any]]]] = []  # calls to be stored
        self._streams = Streams(self._record)
        self._counting, self._t = RLock(), 0
        self._take_over(self._newest())
        known = self._version.bandit
        self.fallback = None if fallback is None else known.arms[known.number(fallback)]

    def _record(self, stream: Stream) -> None:
        self.log.ledger.open_stream(stream.key, stream.entropy)

    def __repr__(self) -> str:
        return f"Service({self._version.bandit!r}, version {self.version}, {self.log!r})"

    @property
    def bandit(self) -> Bandit:
        """A copy of the bandit of this version, to look at: what it learns is not kept."""
        return self._version.bandit.copy()

    @property
    def version(self) -> int:
        """The number of the version that decides here; the bandit that began has 0."""
        return self._version.number

    @property
    def arms(self) -> tuple[Name, ...]:
        """The arms' names."""
        return self._version.bandit.arms

    # ---- decisions -------------------------------------------------------------------------------

    def decide(
        self, context: Any = None, arms: Iterable[Name] | None = None, id: Any = None
    ) -> Decision:
        """Return a decision about one context or a batch, as `Bandit.choose` does, once the log has
        stored it.

        arms: those that may be chosen, where not all may. id: text that you choose, a list of such
        texts for a batch; without it ids are made. The same id with the same context and arms gives
        the stored decision again; with others it is refused.
        """
        version, bandit = self._version, self._version.bandit
        names = None if arms is None else tuple(dict.fromkeys(listed(arms)))
        x, among, one = encoded(bandit, context, names)
        texts = context_texts(context, len(x), one)
        ids = None if id is None else ids_of(id, len(x), one)
        asked = Asked(version, x, among, texts, ids)
        try:
            decision = self._decided(asked)
        except Unavailable:
            decision = self._fallen_back(asked)
        return decision[0] if one else decision

    def _decided(self, asked: Asked) -> Decision:
        """Return the decisions of a call, as the log has them."""
        bandit, texts, among = asked.version.bandit, asked.texts, asked.among
        if asked.ids is not None and (stored := self._again(asked.ids, texts, among)):
            return decision_of(layout_of(bandit, stored[0].arms), stored)
        with self._streams.one() as stream:
            decision, rows = self._made(asked, stream)
            self.flush()
            done = self.log.ledger.append(rows, self._due(rows))
            stream.position += done
        if done:
            return decision
        again = self._again([row["id"] for row in rows], texts, among)  # another process was first
        if not again:
            raise NotStored("the log has another decision in the place of this one")
        return decision_of(layout_of(bandit, again[0].arms), again)

    def _made(self, asked: Asked, stream: Stream) -> tuple[Decision, list[dict[str, Any]]]:
        """Return the decisions of a call by the random numbers of a stream, and their rows."""
        version, x = asked.version, asked.x
        t, now = self._count(len(x)), self._now()
        decision = decided(version.bandit, x, asked.among, t, stream.entropy, stream.position, now)
        if asked.ids is not None:
            decision.ids = np.array(asked.ids)
        rows = self._rows(decision, version.number, now)
        for i, row in enumerate(rows):
            row |= {
                "stream": stream.key,
                "position": stream.position,
                "t": t + i,
                "context": asked.texts[i],
                "x": column(x[i]) if x.ndim > 2 else None,
            }
        return decision, rows

    def _count(self, n: int) -> int:
        """Return how many contexts were decided before these n."""
        with self._counting:
            before = max(self._t, self._version.bandit.t)
            self._t = before + n
        return before

    def _again(
        self, ids: Sequence[str], texts: Sequence[str | None], among: tuple[Name, ...] | None
    ) -> list[Stored]:
        """Return the decisions that the log has of these ids, none or all, of the same contexts."""
        stored = self.log.ledger.stored(ids)
        if stored and len(stored) < len(ids):
            lost = next(one for one in ids if one not in {row.id for row in stored})
            raise ValueError(
                f"of these {len(ids)} ids the log has {len(stored)}, and not {lost!r}: a batch is "
                "stored as a whole"
            )
        for row, text in zip(stored, texts, strict=False):
            could = row.arms if among is None else among
            if row.context != text or (row.mode == BANDIT and set(row.available) != set(could)):
                raise Conflict(
                    f"the log has a decision {row.id!r}, about another context or other arms: "
                    "give each decision an id of its own"
                )
        if len({row.arms for row in stored}) > 1:
            raise ValueError("these ids were decided in several calls; ask for each call's")
        return stored

    def _rows(self, decision: Decision, version: int, now: int) -> list[dict[str, Any]]:
        """Return what the log keeps of a decision (n, …), without the call that made it."""
        rows = decision.rows
        names, arms = np.asarray(decision.arm), arms_text(decision.arms)
        probabilities, propensity = decision.probabilities, np.atleast_1d(decision.propensity)
        return [
            {
                "id": one, "decided_at": now, "arm": text_of(arm), "propensity": float(p),
                "mode": BANDIT, "version": version, "place": i, "size": len(rows), "arms": arms,
                "row": column(rows[i]), "probabilities": column(probabilities[i]),
            }
            for i, (one, arm, p) in enumerate(
                zip(np.atleast_1d(decision.id).tolist(), names.tolist(), propensity, strict=True)
            )
        ]  # fmt: skip

    def flush(self) -> None:
        """Store the decisions that fell back while the log could not be written, if there are any.
        `decide` does so, too."""
        while self._late:
            with self._counting:
                if self._late:
                    stream, rows = self._late[0]
                    self._record(stream)
                    if not self.log.ledger.append(rows, due := self._due(rows)):
                        known = self.log.ledger.overrule(rows, self._now(), self.settings)
                        rest = [row for row in rows if row["id"] not in known]
                        sized = [
                            row | {"place": i, "size": len(rest)} for i, row in enumerate(rest)
                        ]
                        self.log.ledger.append(sized, due)
                    del self._late[0]

    def _due(self, rows: list[dict[str, Any]]) -> int | None:
        wait = self.settings.wait
        return None if wait is None else int(rows[0]["decided_at"]) + wait

    def _fallen_back(self, asked: Asked) -> Decision:
        """Return decisions for the fallback arm, which will be stored before the next ones. Raise
        the error at hand where there is none.

        They have a stream of their own. The call that failed may be in the log after all.
        """
        arm, bandit = self.fallback, asked.version.bandit
        if arm not in (bandit.arms if asked.among is None else asked.among):
            raise
        if len(self._late) >= MOST_LATE:
            raise
        stream = Stream()
        decision, rows = self._made(asked, stream)
        own = certain(decision, bandit.number(arm))
        for i, row in enumerate(rows):
            row |= {
                "arm": text_of(arm),
                "propensity": 1.0,
                "mode": FALLBACK,
                "row": column(own.rows[i]),
                "probabilities": column(own.probabilities[i]),
            }
        with self._counting:
            self._late.append((stream, rows))
        return own

    # ---- rewards ---------------------------------------------------------------------------------

    def reward(self, id: Any, value: Any, at: Any = None, key: Any = None) -> Any:
        """Store the reward of a decision, and return how it came: "timely", "late" (after `wait`,
        or when the decision was closed), "unknown" (the log has no such decision) or "again".

        It is stored in each case, and counts if it is timely. The same reward again changes
        nothing. Another value raises ValueError. Lists of ids and values give a list, in which
        another value is "refused" and no error.
        at: when it was observed: a date, a datetime or seconds since 1970; None: now.
        key: tells several rewards of a decision apart, where their sum or the last one counts. It
        or `at` must be given there, so that a reward that is sent twice does not count twice.
        """
        now, several = self._now(), not isinstance(id, str)
        ids = [check_id(one) for one in (list_of(id, "id") if several else [id])]
        n = len(ids)
        values = checks.column(value if several else [value], n, "rewards").tolist()
        times = [moment(one, "at") for one in each(at, n, several)]
        keys = [
            self._key(one, when) for one, when in zip(each(key, n, several), times, strict=True)
        ]
        when = [now if one is None else one for one in times]
        told = list(zip(ids, keys, values, when, strict=True))
        found = self.log.ledger.rewards(told, now, self.settings)
        if several:
            return [REFUSED if isinstance(one, Conflict) else one for one in found]
        if isinstance(found[0], Conflict):
            raise found[0]
        return found[0]

    def _key(self, key: Any, at: int | None) -> str:
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
        """Say that a decision, or each of a list of ids, was shown. Again changes nothing. Raise
        ValueError of an unknown id."""
        ids = [check_id(one) for one in ([id] if isinstance(id, str) else list_of(id, "id"))]
        self.log.ledger.activate(ids, self._now(), self.settings)

    # ---- learning --------------------------------------------------------------------------------

    def learn(self, limit: int | None = None) -> int:
        """Learn the rewards that have come, close the decisions whose time is over, and return how
        many rewards were learned; 0 where another process learns.

        limit: of so many decisions at most. What is learned is in the log in one transaction, as a
        new version of the bandit.
        """
        left = math.inf if limit is None else checks.integer(limit, "limit", least=1)
        learned = 0
        with self._changing, self.log.ledger.learner() as elected:
            while elected and left > 0:
                self.sync()
                due = self.log.ledger.due(self._now(), int(min(CHUNK, left)))
                if not due:
                    break
                left -= (done := self._learn(due))[0]
                learned += done[1]
        return learned

    def _learn(self, due: Sequence[Due]) -> tuple[int, int]:
        """Learn what has come of these decisions; return how many were closed, and learned."""
        outcomes = [self._outcome(one) for one in due]
        told = [one for one in outcomes if one.outcome in LEARNED]
        try:
            version = self._version.learned(told, len(due))
        except ValueError:  # some of them cannot be learned
            outcomes = self._without(outcomes, self._version.refused(told))
            told = [one for one in outcomes if one.outcome in LEARNED]
            version = self._version.learned(told, len(due))
        unsaved = self._unsaved + len(due)
        data = saved(version.bandit) if unsaved >= self.snapshot_every else None
        touched = {one.decision.id: one.touched for one in due}
        detail = {
            "closed": len(due),
            "learned": len(told),
            "refit": version.refit,
            "outcomes": Counter(one.outcome for one in outcomes),
        }
        if not self.log.ledger.commit(
            version.number, LEARN, detail, outcomes, touched, data, self.keep_snapshots
        ):
            return 0, 0
        self._take_over(version)
        self._unsaved = 0 if data is not None else unsaved
        return len(due), len(told)

    def _outcome(self, due: Due) -> Outcome:
        how, decision = self.settings, due.decision
        if how.activation and not due.activated:
            return Outcome(decision, INACTIVE, reason="it was not activated")
        if due.overruled:
            return Outcome(decision, INACTIVE, reason="the fallback arm was shown")
        reward = joined(due.rewards, how)
        kind = DEFAULT if reward is None else REWARD
        reward = how.default_reward if reward is None else reward
        if reward is None:
            return Outcome(decision, EXPIRED, reason="no reward came in time")
        if self._version.is_retired(decision):
            said = f"the arm {decision.arm!r} was removed"
            return Outcome(decision, RETIRED, reward, said)
        return Outcome(decision, kind, reward)

    @staticmethod
    def _without(outcomes: Sequence[Outcome], refused: dict[str, str]) -> list[Outcome]:
        return [
            Outcome(one.decision, REFUSED, one.reward, refused[one.decision.id])
            if one.decision.id in refused
            else one
            for one in outcomes
        ]

    def add_arm(self, arm: Name) -> None:
        """Add an arm: a new version of the bandit."""
        self._change(ADDED, checks.arm_name(arm))

    def remove_arm(self, arm: Name) -> None:
        """Remove an arm: a new version of the bandit. Its open decisions are closed as retired."""
        self._change(REMOVED, checks.arm_name(arm))

    def _change(self, kind: str, arm: Name) -> None:
        with self._changing:
            for _ in range(ATTEMPTS):
                self.sync()
                number, detail = self.version + 1, {"arm": arm}
                version = self._version.advance(Change(number, self._now(), kind, detail))
                if self.log.ledger.commit(number, kind, detail):
                    self._take_over(version)
                    return
        raise TimeoutError(f"{kind}: {arm!r}: other processes change the bandit all the time")

    # ---- versions --------------------------------------------------------------------------------

    def sync(self) -> int:
        """Take over the newest version of the bandit from the log; return its number."""
        with self._changing:
            if (version := follow(self.log.ledger, self._version, self.parts)) is not self._version:
                self._take_over(version)
            return version.number

    def snapshot(self) -> int:
        """Store the bandit of this version in the log, from which others start; return its
        number."""
        with self._changing:
            data = saved(self._version.bandit)
            self.log.ledger.add_snapshot(self.version, data, self.keep_snapshots)
            self._unsaved = 0
            return self.version

    def _newest(self) -> Version:
        ledger = self.log.ledger
        newest = ledger.snapshot()
        assert newest is not None
        return catch_up(ledger, restored(ledger, newest, self.parts))

    def _take_over(self, version: Version) -> None:
        self._version = version

    def _now(self) -> int:
        return round(self.clock() * 1e6)
