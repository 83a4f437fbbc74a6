"""Weights that change with hindsight: propensities estimated from all of the past.

A new observation is weighted by what is known so far. When an arm that is pulled has grown by
enough, all of its weights are settled anew, and its estimate is rebuilt from its rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from bayesbandit.checks import Name
from bayesbandit.history import History, Layout
from bayesbandit.kernels import linear
from bayesbandit.kernels.rounds import pooled_chances
from bayesbandit.kernels.rules import ARM, REWARD, WEIGHT
from bayesbandit.policies import Policy, numbers, rule

if TYPE_CHECKING:
    from bayesbandit.beliefs.linear import LinearBelief


class Propensities(Protocol):
    """Propensities that are estimated from the past, and change as it grows."""

    def count(self, belief: LinearBelief, policy: Policy, layout: Layout, t: int, n: int) -> None:
        """`n` more periods at round t, decided by this belief, not yet updated by their rewards."""
        ...

    def learn(self, history: History) -> None:
        """Take in the history."""
        ...

    def of(self, arm: Name, rows: np.ndarray, layout: Layout) -> np.ndarray | None:
        """P(arm | context) at the contexts of rows (n, width): (n,), None while not known."""
        ...

    def fork(self) -> Self:
        """What is known now, to be gone on with while this stays as it is."""
        ...

    def state(self) -> dict[str, Any]:
        """All that is needed to go on, as arrays and plain values."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        ...


class Pooled:
    """The mean over past periods' policies, each stretch of periods by one snapshot of the belief.

    A snapshot is taken at each refresh and stands for the periods until the next. At the greatest
    number of snapshots every second one is dropped, and its periods go to the one before. A period
    counts when its reward arrives, for the belief of that moment, over all arms of that moment.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.periods: list[int] = []
        self.beliefs: list[np.ndarray] = []
        self.rules: list[tuple[int, float, float]] = []  # kind, number and floor
        self.arms: list[tuple[Name, ...]] = []
        self.settings = np.empty(0)
        self.stale = True

    def count(self, belief: LinearBelief, policy: Policy, layout: Layout, t: int, n: int) -> None:
        if self.stale or self.arms[-1] != layout.arms:
            kind = rule(policy)
            assert kind is not None, "pooled propensities are for policies that have a rule"
            if len(self.periods) == self.most:
                self._thin()
            core = linear.core_width(belief.n_columns)
            self.settings = belief.settings
            self.beliefs.append(belief.arms[:, :core].copy())
            self.rules.append((kind, *numbers(policy, t, len(layout.arms))))
            self.arms.append(layout.arms)
            self.periods.append(0)
            self.stale = False
        self.periods[-1] += n

    def _thin(self) -> None:
        self.periods = [sum(self.periods[i : i + 2]) for i in range(0, len(self.periods), 2)]
        self.beliefs, self.rules, self.arms = self.beliefs[::2], self.rules[::2], self.arms[::2]

    def learn(self, history: History) -> None:
        self.stale = True

    def of(self, arm: Name, rows: np.ndarray, layout: Layout) -> np.ndarray | None:
        z = np.ascontiguousarray(rows[:, : layout.n_columns])
        p = np.zeros(len(z))
        for periods, belief, how, arms in zip(
            self.periods, self.beliefs, self.rules, self.arms, strict=True
        ):
            if arm in arms:
                share = periods / sum(self.periods)
                pooled_chances(z, arms.index(arm), belief, self.settings, *how, share, p)
        return p

    def fork(self) -> Pooled:
        twin = copy(self)
        for name in ("periods", "beliefs", "rules", "arms"):
            setattr(twin, name, list(getattr(self, name)))
        return twin

    def state(self) -> dict[str, Any]:
        return {
            "periods": self.periods,
            "rules": [list(rule) for rule in self.rules],
            "arms": [list(arms) for arms in self.arms],
            "stale": self.stale,
            "settings": self.settings,
            **{f"belief{i}": belief for i, belief in enumerate(self.beliefs)},
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.periods = list(state["periods"])
        self.rules = [(kind, param, floor) for kind, param, floor in state["rules"]]
        self.arms = [tuple(arms) for arms in state["arms"]]
        self.stale, self.settings = state["stale"], state["settings"]
        self.beliefs = [state[f"belief{i}"] for i in range(len(self.periods))]


class Estimated:
    """Multinomial logistic regression of arm on standardised context, by scikit-learn (C = 1)."""

    def __init__(self) -> None:
        self.arms: tuple[Name, ...] = ()
        self.coef = np.empty((0, 0))  # (arms, d), the constant's column last

    def count(self, belief: LinearBelief, policy: Policy, layout: Layout, t: int, n: int) -> None:
        pass

    def learn(self, history: History) -> None:
        from sklearn.linear_model import LogisticRegression
        from threadpoolctl import threadpool_limits

        names, x = history.names(), history.x
        code = np.array([names.index(name) for name in names])  # an arm that came back is one arm
        arm = code[history.played()]
        if x.shape[1] == 0:
            x = np.zeros((len(x), 1))
        present = np.unique(arm)
        if len(present) < 2:
            return
        centre, width = x.mean(axis=0), x.std(axis=0)
        width[width <= 1e-12 * np.abs(centre)] = 1.0
        with threadpool_limits(limits=1), warnings.catch_warnings():  # one thread: small matrices
            warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
            fit = LogisticRegression(max_iter=1000).fit((x - centre) / width, arm)
        coef, constant = fit.coef_ / width, fit.intercept_ - fit.coef_ @ (centre / width)
        if len(present) == 2:  # one logit, of the second against the first
            coef, constant = np.vstack([0 * coef, coef]), np.append(0.0, constant)
        self.arms = tuple(names[k] for k in present)
        coef = coef[:, : history.layout.n_features]
        self.coef = np.ascontiguousarray(np.column_stack([coef, constant]))

    def of(self, arm: Name, rows: np.ndarray, layout: Layout) -> np.ndarray | None:
        if arm not in self.arms:
            return None
        logits = rows[:, : layout.n_features] @ self.coef[:, :-1].T + self.coef[:, -1]
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        return odds[:, self.arms.index(arm)] / odds.sum(axis=1)

    def fork(self) -> Estimated:
        return copy(self)

    def state(self) -> dict[str, Any]:
        return {"arms": list(self.arms), "coef": self.coef}

    def restore(self, state: dict[str, Any]) -> None:
        self.arms, self.coef = tuple(state["arms"]), state["coef"]


class Reweighting:
    """Past weights 1 / max(γ, p̂) under estimated propensities, and when they are next settled.

    clip: γ. next_due: from an arm's rows now to its rows at the next refresh.
    """

    def __init__(
        self, estimator: Pooled | Estimated, clip: float, next_due: Callable[[int], int]
    ) -> None:
        self.estimator = estimator
        self.clip = clip
        self.next_due = next_due
        self.due: dict[Name, int] = {}

    def weigh(
        self, rows: np.ndarray, belief: LinearBelief, policy: Policy, layout: Layout, t: int
    ) -> None:
        """Weights for new rows (n, width), decided at round t, before the belief learns of them."""
        self.estimator.count(belief, policy, layout, t, len(rows))
        played = rows[:, layout.tail + ARM].astype(np.int64)
        for k in set(played.tolist()):
            mine = played == k
            p = self.estimator.of(layout.arms[k], rows[mine], layout)
            p = layout.fill_propensities(rows[mine]) if p is None else p
            rows[mine, layout.tail + WEIGHT] = 1.0 / np.maximum(self.clip, p)

    def settle(self, rows: np.ndarray, belief: LinearBelief, history: History) -> None:
        """After rows are in belief and history: refresh those of their arms that are due."""
        layout = history.layout
        pulled = {int(k) for k in rows[:, layout.tail + ARM]}
        due = [k for k in sorted(pulled) if belief.n[k] >= self.due.get(layout.arms[k], 1)]
        if not due:
            return
        self.estimator.learn(history)
        history.detach()
        past, played, changed = history.ordered(), history.played(), []
        for k in due:
            mine = np.flatnonzero(played == k)
            p = self.estimator.of(layout.arms[k], past[mine], layout)
            if p is not None:
                past[mine, layout.tail + WEIGHT] = 1.0 / np.maximum(self.clip, p)
                changed.append(k)
            self.due[layout.arms[k]] = self.next_due(len(mine))
        reward, weight = past[:, layout.tail + REWARD], past[:, layout.tail + WEIGHT]
        belief.reweigh(changed, past[:, : layout.n_features], played, reward, weight)

    def fork(self) -> Reweighting:
        """What is known now, to be gone on with while this stays as it is."""
        twin = copy(self)
        twin.estimator, twin.due = self.estimator.fork(), dict(self.due)
        return twin

    def forget(self, arm: Name) -> None:
        """An arm is gone; should one of its name come, it begins anew."""
        self.due.pop(arm, None)

    def state(self) -> dict[str, Any]:
        """All that is needed to go on, as arrays and plain values."""
        return {"due": [list(pair) for pair in self.due.items()], **self.estimator.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self.due = dict(state["due"])
        self.estimator.restore(state)
