"""Weights that change with hindsight, and when they are settled anew.

A new observation is weighted by what is known so far. When an arm that is pulled has grown by
enough, all of its weights are settled anew, and its estimate is rebuilt from its rows.
"""

from __future__ import annotations

from copy import copy
from typing import Any, Protocol, Self

import numpy as np

from bayesbandit.beliefs.base import Belief
from bayesbandit.checks import LARGEST, Name, column, shown
from bayesbandit.history import History, Layout
from bayesbandit.policies import Policy
from bayesbandit.runtime.schema import NAME, Row, Whole, check
from bayesbandit.schedule import Schedule
from bayesbandit.weighting.base import Balance, Provisional, is_known, schedule_of
from bayesbandit.weighting.by_arm import ByArm

COMMON = ""  # a name for all arms that share a posterior


class Weigher(Protocol):
    """The weights that a balance gives, in one bandit: of new rounds, and of an arm's past."""

    def first(self, arm: Name, rows: np.ndarray, belief: Belief, layout: Layout) -> np.ndarray:
        """Weights (n,) of new rows (n, width) of an arm, of which the belief has not learned."""
        ...

    def learn(self, history: History, belief: Belief) -> None:
        """Take in the history."""
        ...

    def of(self, arm: Name, rows: np.ndarray, mine: np.ndarray, layout: Layout) -> Any:
        """Weights (m,) of an arm's rows, which are those `mine` (m,) of the history's (n, width);
        None while they are not known."""
        ...

    def count(self, belief: Belief, policy: Policy, layout: Layout, t: int, n: int) -> None:
        """`n` more periods at round t, decided by this belief, not yet updated by their rewards."""
        ...

    def fork(self) -> Self:
        """What is known now, to be gone on with while this stays as it is."""
        ...

    def state(self) -> dict[str, Any]:
        """All that is needed to go on, as arrays and plain values."""
        ...

    def restore(self, state: dict[str, Any], belief: Belief) -> None:
        """Go on from `state`."""
        ...

    def verify(self, layout: Layout) -> None:
        """Raise ValueError where this cannot be known of arms and features of this layout."""
        ...


class Propensities(Protocol):
    """Propensities that are estimated from the past, and change as it grows."""

    def count(self, belief: Belief, policy: Policy, layout: Layout, t: int, n: int) -> None:
        """`n` more periods at round t, decided by this belief, not yet updated by their rewards."""
        ...

    def learn(self, history: History) -> None:
        """Take in the history."""
        ...

    def of(self, arm: Name, rows: np.ndarray, layout: Layout) -> np.ndarray | None:
        """P(arm | context) at the contexts of rows (n, width): (n,), None while not known."""
        ...

    def arrays(self, layout: Layout) -> dict[str, np.ndarray] | None:
        """What `kernels.reweighted.play` takes to compute them for arms that have a linear belief,
        by its names; None where it cannot."""
        ...

    def fork(self) -> Self:
        """What is known now, to be gone on with while this stays as it is."""
        ...

    def state(self) -> dict[str, Any]:
        """All that is needed to go on, as arrays and plain values."""
        ...

    def restore(self, state: dict[str, Any], belief: Belief) -> None:
        """Go on from `state`."""
        ...

    def verify(self, layout: Layout) -> None:
        """Raise ValueError where this cannot be known of arms and features of this layout."""
        ...


class Inverse:
    """1 / max(γ, p̂) under propensities that are estimated; γ = clip."""

    def __init__(self, estimator: Propensities, clip: float) -> None:
        self.estimator = estimator
        self.clip = clip

    def _weights(self, p: np.ndarray) -> np.ndarray:
        return 1.0 / np.maximum(self.clip, p)

    def first(self, arm: Name, rows: np.ndarray, belief: Belief, layout: Layout) -> np.ndarray:
        p = self.estimator.of(arm, rows, layout)
        return self._weights(layout.assumed(rows) if p is None else p)

    def learn(self, history: History, belief: Belief) -> None:
        self.estimator.learn(history)

    def of(self, arm: Name, rows: np.ndarray, mine: np.ndarray, layout: Layout) -> Any:
        p = self.estimator.of(arm, rows[mine], layout)
        return None if p is None else self._weights(p)

    def count(self, belief: Belief, policy: Policy, layout: Layout, t: int, n: int) -> None:
        self.estimator.count(belief, policy, layout, t, n)

    def fork(self) -> Inverse:
        return Inverse(self.estimator.fork(), self.clip)

    def state(self) -> dict[str, Any]:
        return self.estimator.state()

    def restore(self, state: dict[str, Any], belief: Belief) -> None:
        self.estimator.restore(state, belief)

    def verify(self, layout: Layout) -> None:
        self.estimator.verify(layout)


class Weighed:
    """The weights of anyone's balance, which are a function of history and belief alone."""

    def __init__(self, balance: Balance) -> None:
        self.balance = balance
        self.weights = np.empty(0)
        self.past: History | None = None

    def first(self, arm: Name, rows: np.ndarray, belief: Belief, layout: Layout) -> np.ndarray:
        if not isinstance(self.balance, Provisional):
            return np.ones(len(rows))
        new = History(layout, None)
        new.restore(rows.copy(), len(rows), [])
        return self._checked(self.balance.provisional(new, belief.fork()), len(rows), "provisional")

    def learn(self, history: History, belief: Belief) -> None:
        past = history.fork()
        past.detach()
        if type(self.balance).weights is ByArm.weights:  # those that are not due need none
            self.past = past
            return
        found = self.balance.weights(past, belief.fork())
        self.weights = self._checked(found, len(past), "weights")

    def _checked(self, weights: Any, n: int, method: str) -> np.ndarray:
        what = shown(self.balance)
        found = column(weights, n, f"what {what} gives as `{method}`")
        if not (found > 0.0).all():
            raise ValueError(f"{what} must give `{method}` > 0; got {found.min():g}")
        if found.min(initial=1.0) < 1 / LARGEST:
            raise ValueError(f"{what} must give `{method}` ≥ {1 / LARGEST:g}; got {found.min():g}")
        return found

    def of(self, arm: Name, rows: np.ndarray, mine: np.ndarray, layout: Layout) -> Any:
        if self.past is None:
            return self.weights[mine]
        given: Any = self.balance
        return self._checked(given.of_arm(mine, self.past), len(mine), "of_arm")

    def count(self, belief: Belief, policy: Policy, layout: Layout, t: int, n: int) -> None:
        """Past decisions are of no interest."""

    def fork(self) -> Weighed:
        return copy(self)

    def state(self) -> dict[str, Any]:
        """Nothing: they are computed before they are used."""
        return {}

    def restore(self, state: dict[str, Any], belief: Belief) -> None:
        """Nothing."""

    def verify(self, layout: Layout) -> None:
        """Nothing."""


class Reweighting:
    """The weights of the past in one bandit, and when each arm's are next settled: `due`, the
    number of its rounds by its name. together: all arms' when one's are. Where arms share a
    posterior, all of its rounds are those of one arm, `COMMON`."""

    def __init__(self, weigher: Weigher, schedule: Schedule, together: bool = False) -> None:
        self.weigher = weigher
        self.schedule = schedule
        self.together = together
        self.due: dict[Name, int] = {}

    def weigh(
        self, rows: np.ndarray, belief: Belief, policy: Policy, layout: Layout, t: int
    ) -> None:
        """Weights for new rows (n, width), decided at round t, before the belief learns of them."""
        self.weigher.count(belief, policy, layout, t, len(rows))
        log = layout.records(rows)
        for k in np.unique(log["arm"]).astype(np.int64).tolist():
            mine = log["arm"] == k
            log["weight"][mine] = self.weigher.first(layout.arms[k], rows[mine], belief, layout)

    def settle(self, rows: np.ndarray, belief: Belief, history: History) -> None:
        """After rows are in belief and history: refresh those of their arms that are due."""
        layout = history.layout
        arms, n, pulled = layout.arms, belief.n, np.unique(layout.records(rows)["arm"])
        if belief.of_arms:
            arms, n, pulled = (COMMON,), np.array([history.total]), np.zeros(1)
        due = [k for k in map(int, pulled) if n[k] >= self.due.get(arms[k], 1)]
        if not due:
            return
        if self.together:
            due = np.flatnonzero(n).tolist()
        self.weigher.learn(history, belief)
        history.detach()
        past, log, played, changed = history.ordered(), history.records, history.played(), []
        if belief.of_arms:
            played = np.zeros_like(played)
        for k in due:
            mine = np.flatnonzero(played == k)
            weights = self.weigher.of(arms[k], past, mine, layout)
            if weights is not None:
                log["weight"][mine] = weights
                changed.append(k)
            self.due[arms[k]] = self.schedule.next_due(len(mine))
        x = past[:, : layout.n_features]
        belief.reweigh(changed, x, played, log["reward"], log["weight"])

    def fork(self) -> Reweighting:
        """What is known now, to be gone on with while this stays as it is."""
        twin = copy(self)
        twin.weigher, twin.due = self.weigher.fork(), dict(self.due)
        return twin

    def forget(self, arm: Name) -> None:
        """An arm is gone; should one of its name come, it begins anew."""
        self.due.pop(arm, None)

    def state(self) -> dict[str, Any]:
        """All that is needed to go on, as arrays and plain values."""
        return {"due": [list(pair) for pair in self.due.items()], **self.weigher.state()}

    def restore(self, state: dict[str, Any], belief: Belief) -> None:
        """Go on from `state`."""
        check(state, {"due": [Row(NAME, Whole())], ...: object})
        self.due = dict(state["due"])
        self.weigher.restore(state, belief)

    def verify(self, layout: Layout) -> None:
        """Raise ValueError where this cannot be known of arms and features of this layout."""
        self.weigher.verify(layout)


def begin(balance: Balance) -> Reweighting | None:
    """What settles the weights of the past anew in a new bandit; None where they are known for
    good."""
    given: Any = balance
    if is_known(balance):
        if (weigher := given.weigher()) is None:
            return None
        return Reweighting(weigher, given.schedule, given.refresh == "all")
    return Reweighting(Weighed(balance), schedule_of(balance))
