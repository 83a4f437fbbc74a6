"""Reweighting: past weights that are computed again, on a schedule.

A new observation gets a weight from what is known so far. When a pulled arm's rounds have grown
enough, all of them are reweighted. The arm's posterior is then rebuilt from them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bayesbandit.beliefs.base import Belief, Reweighable, needed
from bayesbandit.checks import MAX_ABS_VALUE, Array, Name, column, shown
from bayesbandit.forms import ARM_NAME, Form, Row, State, Whole
from bayesbandit.history import History, Layout
from bayesbandit.kernels.reweighted import Known
from bayesbandit.policies import Policy
from bayesbandit.schedule import Schedule
from bayesbandit.weighting.base import Balance, is_known, schedule_of
from bayesbandit.weighting.by_arm import ByArm

if TYPE_CHECKING:
    from bayesbandit.weighting.propensity import InversePropensity

ALL_ARMS = ""  # one name for all arms, if they share a posterior


class Reweighting(ABC):
    """The weights of one bandit's rounds: of new ones, and of an arm's past when it is due.

    `due` has the number of rounds at which an arm is next reweighted, by name. together: reweight
    all arms when one is due. Arms that share a posterior count as one arm, `ALL_ARMS`.

    Subclasses that depend on past decisions extend `count`, `state`, `form` and `restore`.
    """

    def __init__(self, schedule: Schedule, together: bool = False) -> None:
        self.schedule = schedule
        self.together = together
        self.due: dict[Name, int] = {}

    @abstractmethod
    def new_weights(self, arm: Name, rows: Array, layout: Layout) -> Array:
        """Return weights (n,) of an arm's new rows (n, width), before the belief learns them."""

    @abstractmethod
    def learn(self, history: History, belief: Belief) -> None:
        """Fit to the history."""

    @abstractmethod
    def past_weights(self, arm: Name, rows: Array, mine: Array, layout: Layout) -> Array | None:
        """Return weights (m,) of an arm's past: rows number `mine` (m,) of `rows` (n, width).

        `rows` are the history's. None while the weights are not known.
        """

    def count(self, belief: Belief, policy: Policy, layout: Layout, t: int, n: int) -> None:
        """Count n more periods at round t, decided by this belief before it learns the rewards."""
        return

    def weigh(self, rows: Array, belief: Belief, policy: Policy, layout: Layout, t: int) -> None:
        """Weight new rows (n, width), decided at round t, before the belief learns them."""
        self.count(belief, policy, layout, t, len(rows))
        records = layout.records(rows)
        for k in np.unique(records["arm"]).astype(np.int64).tolist():
            mine = records["arm"] == k
            records["weight"][mine] = self.new_weights(layout.arms[k], rows[mine], layout)

    def settle(self, rows: Array, belief: Belief, history: History) -> None:
        """Reweight the arms of these rows that are due. Belief and history must know the rows."""
        layout = history.layout
        arms = layout.arms
        n = belief.n
        pulled = layout.records(rows)["arm"]
        if belief.of_arms:
            arms = (ALL_ARMS,)
            n = np.array([history.total])
            pulled = np.zeros(len(rows))
        them = np.unique(pulled).astype(np.int64).tolist()
        due = [k for k in them if n[k] >= self.due.get(arms[k], 1)]
        if not due:
            return
        if self.together:
            due = np.flatnonzero(n).tolist()
        self.learn(history, belief)
        history.detach()  # copies of the bandit keep their weights
        past = history.ordered()
        records = history.records
        played = history.played()
        changed = []
        if belief.of_arms:
            played = np.zeros_like(played)
        for k in due:
            mine = np.flatnonzero(played == k)
            weights = self.past_weights(arms[k], past, mine, layout)
            if weights is not None:
                records["weight"][mine] = weights
                changed.append(k)
            self.due[arms[k]] = self.schedule.next_due(len(mine))
        needed(belief, Reweighable, "the weights of its past change").reweigh(
            changed, past[:, : layout.n_features], played, records["reward"], records["weight"]
        )

    def fork(self) -> Self:
        """Return a copy that may change while this one stays as it is."""
        twin = copy(self)
        twin.due = dict(self.due)
        return twin

    def forget(self, arm: Name) -> None:
        """Forget when a removed arm was due; a later arm with its name starts afresh."""
        self.due.pop(arm, None)

    def state(self) -> State:
        """Return the whole state as arrays and plain values, for `restore`."""
        return {"due": [list(pair) for pair in self.due.items()]}

    def restore(self, state: State, belief: Belief) -> None:
        """Restore what `state` returned."""
        self.due = dict(state["due"])

    def form(self, state: State, layout: Layout, belief: Belief, total: int) -> Form:
        """Return the form of each part of a state, after `total` rounds."""
        return {"due": [Row(ARM_NAME, Whole())]}


class Inverse(Reweighting):
    """The weights 1 / max(γ, p̂) with propensities p̂ estimated from past rounds; γ = clip."""

    def __init__(self, balance: InversePropensity) -> None:
        super().__init__(balance.schedule, balance.refresh == "all")
        self.clip = balance.clip

    @abstractmethod
    def chance_of(self, arm: Name, rows: Array, layout: Layout) -> Array | None:
        """Return P(arm | context) (n,) at the contexts of rows (n, width); None while not known."""

    @abstractmethod
    def known(self, layout: Layout) -> Known | None:
        """Return how kernels compute the propensities, if the arms have a linear belief.

        None where they cannot.
        """

    def new_weights(self, arm: Name, rows: Array, layout: Layout) -> Array:
        p = self.chance_of(arm, rows, layout)
        return 1.0 / np.maximum(self.clip, layout.assumed(rows) if p is None else p)

    def past_weights(self, arm: Name, rows: Array, mine: Array, layout: Layout) -> Array | None:
        p = self.chance_of(arm, rows[mine], layout)
        return None if p is None else 1.0 / np.maximum(self.clip, p)


class BalanceWeights(Reweighting):
    """The weights of a balance that the kernels do not know: a function of history and belief."""

    def __init__(self, balance: Balance) -> None:
        super().__init__(schedule_of(balance))
        self.balance = balance
        self.weights = np.empty(0)
        self.history: History | None = None  # kept for `of_arm` of a `ByArm`

    def new_weights(self, arm: Name, rows: Array, layout: Layout) -> Array:
        return np.ones(len(rows))

    def learn(self, history: History, belief: Belief) -> None:
        history = history.fork()
        history.detach()  # copies of the bandit keep their weights
        if type(self.balance).weights is ByArm.weights:  # `past` weights only the arms that are due
            self.history = history
            return
        weights = self.balance.weights(history, belief.fork())
        self.weights = self._checked(weights, len(history), "weights")

    def _checked(self, weights: Any, n: int, method: str) -> Array:
        what = shown(self.balance)
        w = column(weights, n, f"what {what} gives as `{method}`")
        if not (w > 0.0).all():
            raise ValueError(f"{what} must give `{method}` > 0; got {w.min():g}")
        if w.min(initial=1.0) < 1 / MAX_ABS_VALUE:
            raise ValueError(
                f"{what} must give `{method}` ≥ {1 / MAX_ABS_VALUE:g}; got {w.min():g}"
            )
        return w

    def past_weights(self, arm: Name, rows: Array, mine: Array, layout: Layout) -> Array:
        if self.history is None:
            return self.weights[mine]
        by_arm: Any = self.balance
        return self._checked(by_arm.of_arm(mine, self.history), len(mine), "of_arm")


def begin(balance: Balance) -> Reweighting | None:
    """Return the reweighting of a new bandit; None where past weights never change."""
    known: Any = balance
    return known.reweighting() if is_known(balance) else BalanceWeights(balance)
