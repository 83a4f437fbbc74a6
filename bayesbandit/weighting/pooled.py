"""Propensities pooled over the policies of all past periods (paper, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from bayesbandit.beliefs.base import Belief, Recallable, Snapshot, needed
from bayesbandit.checks import LARGEST_FLOAT, Name
from bayesbandit.forms import ARM_NAME, Real, Row, Whole, demand, prefixed, unprefixed
from bayesbandit.history import History, Layout
from bayesbandit.kernels.propensities import chances
from bayesbandit.kernels.reweighted import Known
from bayesbandit.kernels.row_layout import TABULATED, row_type
from bayesbandit.policies import Policy, numbers, rule
from bayesbandit.weighting.reweighting import Form, Inverse


class Pooled(Inverse):
    """The mean of an arm's probability over the policies of all past periods.

    A snapshot of the belief is taken at each refresh; it stands for the periods until the next.
    Where there are `max_snapshots` of them, every second one is dropped, and its periods count as
    those of the one before. A period counts when its reward arrives, with the belief and the arms
    of that moment.
    """

    def __init__(self, max_snapshots: int, clip: float) -> None:
        super().__init__(clip)
        self.max_snapshots = max_snapshots
        self.periods: list[int] = []
        self.beliefs: list[Snapshot] = []
        self.rules: list[tuple[int, float, float]] = []  # kind, number and minimum probability
        self.arms: list[tuple[Name, ...]] = []
        self.stale = True  # whether the next period needs a new snapshot

    def count(self, belief: Belief, policy: Policy, layout: Layout, t: int, n: int) -> None:
        if self.stale or self.arms[-1] != layout.arms:
            kind = rule(policy)
            assert kind is not None, "pooled propensities are for policies that have a rule"
            if len(self.periods) == self.max_snapshots:
                self._thin()
            snapshot = needed(belief, Recallable, "past policies are asked again").snapshot()
            assert snapshot is not None, (
                "Bandit.__init__ has checked that the belief takes snapshots"
            )
            self.beliefs.append(snapshot)
            param, floor = numbers(policy, kind, t, 1)
            floor = min(floor, 1 / len(layout.arms))  # γ was checked for one arm
            self.rules.append((kind, param, floor))
            self.arms.append(layout.arms)
            self.periods.append(0)
            self.stale = False
        self.periods[-1] += n

    def _thin(self) -> None:
        self.periods = [sum(self.periods[i : i + 2]) for i in range(0, len(self.periods), 2)]
        self.beliefs, self.rules, self.arms = self.beliefs[::2], self.rules[::2], self.arms[::2]

    def learn(self, history: History, belief: Belief) -> None:
        self.stale = True

    def of(self, arm: Name, rows: np.ndarray, layout: Layout) -> np.ndarray | None:
        """Return the mean probability (n,) of an arm at the contexts of rows (n, width)."""
        x = rows[:, : layout.n_features]
        p = np.zeros(len(x))
        past = zip(self.arms, self.periods, self.beliefs, self.rules, strict=True)
        for arms, periods, belief, its_rule in past:
            if arm in arms:
                p += periods * chances_then(belief, x, arms.index(arm), *its_rule)
        return p / sum(self.periods)

    def known(self, layout: Layout) -> Known | None:
        beliefs: list[Any] = self.beliefs
        if any(arms != layout.arms for arms in self.arms):
            return None
        return Known(
            past=np.array([belief.arms for belief in beliefs]),
            rules=np.array(self.rules, dtype=np.float64),
            periods=np.array(self.periods, dtype=np.float64),
        )

    def fork(self) -> Self:
        twin = super().fork()
        twin.periods, twin.beliefs = list(self.periods), list(self.beliefs)
        twin.rules, twin.arms = list(self.rules), list(self.arms)
        return twin

    def state(self) -> dict[str, Any]:
        return {
            "periods": self.periods,
            "rules": [list(rule) for rule in self.rules],
            "arms": [list(arms) for arms in self.arms],
            "stale": self.stale,
            **{f"{i}.{k}": v for i, b in enumerate(self.beliefs) for k, v in b.state().items()},
        }

    def form(self, state: Mapping[str, Any], layout: Layout, belief: Belief, total: int) -> Form:
        past = needed(belief, Recallable, "past policies are asked again")
        n = len(state["periods"])
        demand(len(state["arms"]) == n, "its snapshots are not all there")
        form: Form = {"stale": bool, "periods": [Whole()], "arms": [[ARM_NAME]]}
        rules = []
        for i, arms in enumerate(state["arms"]):
            floor = Real(0.0, (1.0 + 1e-9) / max(1, len(arms)))
            rules.append(Row(Whole(0, TABULATED - 1), Real(0.0, LARGEST_FLOAT), floor))
            form |= prefixed(f"{i}.", past.recall_form(len(arms)))
        return {**form, "rules": Row(*rules)}

    def restore(self, state: dict[str, Any], belief: Belief) -> None:
        self.periods, self.stale = list(state["periods"]), state["stale"]
        self.rules = [(kind, param, floor) for kind, param, floor in state["rules"]]
        self.arms = [tuple(arms) for arms in state["arms"]]
        past = needed(belief, Recallable, "past policies are asked again")
        self.beliefs = [past.recall(unprefixed(state, f"{i}.")) for i in range(len(self.periods))]


def chances_then(
    belief: Snapshot, x: np.ndarray, k: int, kind: int, param: float, floor: float
) -> np.ndarray:
    """Return P(arm k) (n,) at contexts x (n, d) under a past belief and a compiled rule.

    kind, param, floor: the rule, its number and its minimum probability.
    """
    prediction = belief.predict(np.ascontiguousarray(x))
    new = belief.new
    entries = prediction.entries(kind)
    assert entries is not None, "snapshots are of beliefs that a compiled rule decides by"
    scale, last = entries
    row = row_type(0, new.size)
    out = np.empty(len(x))
    rows = np.empty((len(x), row.itemsize // 8))
    log = rows.view(row)[:, 0]
    log["mean"], log["scale"], log["last"] = prediction.mean, scale, np.where(new, -last, last)
    log["rule"], log["number"], log["min_probability"] = kind, param, floor
    chances(rows, k, 0, new.size, out)
    return out
