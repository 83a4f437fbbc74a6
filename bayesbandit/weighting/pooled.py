"""Propensities pooled over the policies of all past periods (paper, Algorithm 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bayesbandit.beliefs import ridge_arms
from bayesbandit.beliefs.base import Belief, CompiledArms
from bayesbandit.checks import LARGEST_FLOAT, Array, Name
from bayesbandit.forms import ARM_NAME, Form, Real, Row, State, Whole, demand
from bayesbandit.history import History, Layout
from bayesbandit.kernels.arm import core_width
from bayesbandit.kernels.propensities import chances
from bayesbandit.kernels.reweighted import Known
from bayesbandit.kernels.rounds import describe_many
from bayesbandit.kernels.row_layout import TABULATED, row_type
from bayesbandit.policies import Policy, rule, rule_parameters
from bayesbandit.runtime.compiling import interpreted
from bayesbandit.weighting.reweighting import Inverse

if TYPE_CHECKING:
    from bayesbandit.weighting.propensity import InversePropensity


class Snapshot(NamedTuple):
    """A past policy: the numbers (K, …) with which the arms of these names predicted, the rule's
    KIND, number and minimum probability, and how many periods it decided."""

    names: tuple[Name, ...]
    arms: Array
    rule: tuple[int, float, float]
    periods: int


class Pooled(Inverse):
    """The mean of an arm's probability over the policies of all past periods.

    A snapshot of the policy is taken before the first period after each reweighting. It stands for
    the periods until the next.
    Where there are `max_snapshots` of them, every second one is dropped, and its periods count as
    those of the one before. A period counts when its reward arrives, with the belief and the arms
    of that moment.
    """

    def __init__(self, balance: InversePropensity) -> None:
        super().__init__(balance)
        self.max_snapshots = balance.snapshots
        self.past_policies: tuple[Snapshot, ...] = ()
        self.settings = np.empty(0)  # of the regressions
        self.stale = True  # whether the next period needs a new snapshot

    def count(self, belief: Belief, policy: Policy, layout: Layout, t: int, n: int) -> None:
        past = self.past_policies
        if self.stale or past[-1].names != layout.arms:
            kind = rule(policy)
            assert kind is not None, "pooled propensities are for policies that have a rule"
            if len(past) == self.max_snapshots:
                pairs = (past[i : i + 2] for i in range(0, len(past), 2))
                past = tuple(
                    pair[0]._replace(periods=sum(s.periods for s in pair)) for pair in pairs
                )
            regressions = regressions_of(belief)
            width = interpreted(core_width)(layout.n_columns)
            self.settings = regressions.settings
            param, floor = rule_parameters(policy, kind, t, 1)
            floor = min(floor, 1 / len(layout.arms))  # it was checked for one arm
            arms = regressions.arms[:, :width].copy()
            past = (*past, Snapshot(layout.arms, arms, (kind, param, floor), 0))
            self.stale = False
        last = past[-1]
        self.past_policies = (*past[:-1], last._replace(periods=last.periods + n))

    def learn(self, history: History, belief: Belief) -> None:
        self.stale = True

    def chance_of(self, arm: Name, rows: Array, layout: Layout) -> Array | None:
        """Return the mean probability (n,) of an arm at the contexts of rows (n, width)."""
        x = rows[:, : layout.n_columns]
        p = np.zeros(len(x))
        for past in self.past_policies:
            if arm in past.names:
                p += past.periods * self._chances_then(past, x, past.names.index(arm))
        return p / sum(past.periods for past in self.past_policies)

    def _chances_then(self, past: Snapshot, x: Array, k: int) -> Array:
        """Return P(arm k) (n,) under a past policy, at x (n, D) with its constant."""
        D = x.shape[1]
        K = len(past.names)
        row = row_type(D, K)
        rows = np.empty((len(x), row.itemsize // 8))
        log = rows.view(row)[:, 0]
        kind, number, floor = past.rule
        log["x"] = x
        describe_many(rows, past.arms, np.ones(K, np.bool_), self.settings, kind)
        log["rule"] = kind
        log["number"] = number
        log["min_probability"] = floor
        return chances(rows, k, D, K)[:, 0]

    def known(self, layout: Layout) -> Known | None:
        past = self.past_policies
        if any(one.names != layout.arms for one in past):
            return None
        return Known(
            past=np.array([one.arms for one in past]),
            rules=np.array([one.rule for one in past], dtype=np.float64),
            periods=np.array([one.periods for one in past], dtype=np.float64),
        )

    def state(self) -> State:
        past = self.past_policies
        return super().state() | {
            "periods": [one.periods for one in past],
            "rules": [list(one.rule) for one in past],
            "arms": [list(one.names) for one in past],
            "stale": self.stale,
            **{f"{i}.arms": one.arms for i, one in enumerate(past)},
        }

    def form(self, state: State, layout: Layout, belief: Belief, total: int) -> Form:
        width = interpreted(core_width)(layout.n_columns)
        n = len(state["periods"])
        demand(len(state["arms"]) == n, "its snapshots are not all there")
        form = super().form(state, layout, belief, total)
        form |= {"stale": bool, "periods": [Whole()], "arms": [[ARM_NAME]]}
        rules = []
        for i, arms in enumerate(state["arms"]):
            floor = Real(0.0, (1.0 + 1e-9) / max(1, len(arms)))
            rules.append(Row(Whole(0, TABULATED - 1), Real(0.0, LARGEST_FLOAT), floor))
            form[f"{i}.arms"] = ridge_arms.form(len(arms), width)
        return form | {"rules": Row(*rules)}

    def restore(self, state: State, belief: Belief) -> None:
        super().restore(state, belief)
        self.stale = state["stale"]
        self.settings = regressions_of(belief).settings
        rows = zip(state["arms"], state["rules"], state["periods"], strict=True)
        self.past_policies = tuple(
            Snapshot(tuple(names), state[f"{i}.arms"], (kind, param, floor), periods)
            for i, (names, (kind, param, floor), periods) in enumerate(rows)
        )


def regressions_of(belief: Belief) -> CompiledArms:
    """Return the arrays of a belief that `Bandit.__init__` has found to consist of regressions."""
    kernel = belief.kernel
    assert kernel is not None, "pooled propensities are for regressions"
    return kernel
