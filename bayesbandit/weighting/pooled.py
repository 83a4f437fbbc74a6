"""Propensities pooled over the policies of all past periods (paper, Algorithm 1)."""

from __future__ import annotations

from typing import Self

import numpy as np

from bayesbandit.beliefs import ridge_arms
from bayesbandit.beliefs.base import Belief, Kernel
from bayesbandit.checks import LARGEST_FLOAT, Array, Name
from bayesbandit.forms import ARM_NAME, Form, Real, Row, State, Whole, demand
from bayesbandit.history import History, Layout
from bayesbandit.kernels.arm import core_width
from bayesbandit.kernels.propensities import chances
from bayesbandit.kernels.reweighted import Known
from bayesbandit.kernels.rounds import describe_many
from bayesbandit.kernels.row_layout import TABULATED, row_type
from bayesbandit.policies import Policy, numbers, rule
from bayesbandit.runtime.compiling import interpreted
from bayesbandit.weighting.reweighting import Inverse


class Pooled(Inverse):
    """The mean of an arm's probability over the policies of all past periods.

    A snapshot of the regressions is taken at each refresh: the numbers of their arms with which
    they predict. It stands for the periods until the next.
    Where there are `max_snapshots` of them, every second one is dropped, and its periods count as
    those of the one before. A period counts when its reward arrives, with the belief and the arms
    of that moment.
    """

    def __init__(self, max_snapshots: int, clip: float) -> None:
        super().__init__(clip)
        self.max_snapshots = max_snapshots
        self.periods: list[int] = []
        self.snapshots: list[Array] = []  # the arms' numbers (K, …)
        self.rules: list[tuple[int, float, float]] = []  # kind, number and minimum probability
        self.arms: list[tuple[Name, ...]] = []
        self.settings = np.empty(0)  # of the regressions
        self.stale = True  # whether the next period needs a new snapshot

    def count(self, belief: Belief, policy: Policy, layout: Layout, t: int, n: int) -> None:
        if self.stale or self.arms[-1] != layout.arms:
            kind = rule(policy)
            assert kind is not None, "pooled propensities are for policies that have a rule"
            if len(self.periods) == self.max_snapshots:
                self._thin()
            regressions = regressions_of(belief)
            width = interpreted(core_width)(layout.n_columns)
            self.settings = regressions.settings
            self.snapshots.append(regressions.arms[:, :width].copy())
            param, floor = numbers(policy, kind, t, 1)
            floor = min(floor, 1 / len(layout.arms))  # γ was checked for one arm
            self.rules.append((kind, param, floor))
            self.arms.append(layout.arms)
            self.periods.append(0)
            self.stale = False
        self.periods[-1] += n

    def _thin(self) -> None:
        self.periods = [sum(self.periods[i : i + 2]) for i in range(0, len(self.periods), 2)]
        self.snapshots = self.snapshots[::2]
        self.rules = self.rules[::2]
        self.arms = self.arms[::2]

    def learn(self, history: History, belief: Belief) -> None:
        self.stale = True

    def of(self, arm: Name, rows: Array, layout: Layout) -> Array | None:
        """Return the mean probability (n,) of an arm at the contexts of rows (n, width)."""
        x = rows[:, : layout.n_columns]
        p = np.zeros(len(x))
        for s, arms in enumerate(self.arms):
            if arm in arms:
                p += self.periods[s] * self._chances_then(s, x, arms.index(arm))
        return p / sum(self.periods)

    def _chances_then(self, s: int, x: Array, k: int) -> Array:
        """Return P(arm k) (n,) under the policy of snapshot s, at x (n, D) with its constant."""
        D = x.shape[1]
        K = len(self.snapshots[s])
        row = row_type(D, K)
        rows = np.empty((len(x), row.itemsize // 8))
        log = rows.view(row)[:, 0]
        kind, number, floor = self.rules[s]
        log["x"] = x
        describe_many(rows, self.snapshots[s], np.ones(K, np.bool_), self.settings, kind)
        log["rule"], log["number"], log["min_probability"] = kind, number, floor
        out = np.empty(len(x))
        chances(rows, k, D, K, out)
        return out

    def known(self, layout: Layout) -> Known | None:
        if any(arms != layout.arms for arms in self.arms):
            return None
        return Known(
            past=np.array(self.snapshots),
            rules=np.array(self.rules, dtype=np.float64),
            periods=np.array(self.periods, dtype=np.float64),
        )

    def fork(self) -> Self:
        twin = super().fork()
        twin.periods, twin.snapshots = list(self.periods), list(self.snapshots)
        twin.rules, twin.arms = list(self.rules), list(self.arms)
        return twin

    def state(self) -> State:
        return {
            "periods": self.periods,
            "rules": [list(rule) for rule in self.rules],
            "arms": [list(arms) for arms in self.arms],
            "stale": self.stale,
            **{f"{i}.arms": arms for i, arms in enumerate(self.snapshots)},
        }

    def form(self, state: State, layout: Layout, belief: Belief, total: int) -> Form:
        regressions = regressions_of(belief)
        n = len(state["periods"])
        demand(len(state["arms"]) == n, "its snapshots are not all there")
        form: Form = {"stale": bool, "periods": [Whole()], "arms": [[ARM_NAME]]}
        rules = []
        for i, arms in enumerate(state["arms"]):
            floor = Real(0.0, (1.0 + 1e-9) / max(1, len(arms)))
            rules.append(Row(Whole(0, TABULATED - 1), Real(0.0, LARGEST_FLOAT), floor))
            form[f"{i}.arms"] = ridge_arms.form(regressions.settings, len(arms), learns=False)
        return {**form, "rules": Row(*rules)}

    def restore(self, state: State, belief: Belief) -> None:
        self.periods, self.stale = list(state["periods"]), state["stale"]
        self.rules = [(kind, param, floor) for kind, param, floor in state["rules"]]
        self.arms = [tuple(arms) for arms in state["arms"]]
        self.settings = regressions_of(belief).settings
        self.snapshots = [state[f"{i}.arms"] for i in range(len(self.periods))]


def regressions_of(belief: Belief) -> Kernel:
    """Return the arrays of a belief that `Bandit.__init__` has found to consist of regressions."""
    kernel = belief.kernel
    assert kernel is not None, "pooled propensities are for regressions"
    return kernel
