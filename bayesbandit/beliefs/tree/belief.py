"""Policy-tree smoothing (paper, section 4.3): one rule for each of few regions of contexts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

import numpy as np

from bayesbandit.beliefs.base import Belief, BeliefModel, below
from bayesbandit.beliefs.linear import Ridge
from bayesbandit.beliefs.rounds import Rounds
from bayesbandit.beliefs.tree.leaves import Leaves
from bayesbandit.beliefs.tree.tree import Tree, grown
from bayesbandit.checks import LARGEST, finite, integer, number, one_of, shown
from bayesbandit.engines.base import one_thread
from bayesbandit.kernels.best_arm import best_of_location_scale
from bayesbandit.kernels.rules import HUGE, put_moments
from bayesbandit.schedule import Schedule

Array = np.ndarray
TREE = "tree."  # begins the names of a tree's arrays in a file
BASE = "base."  # and those of the outcome model


@dataclass(frozen=True)
class PolicyTree:
    base: Any = field(default_factory=Ridge)
    depth: int = 2
    by: Literal["value", "classification"] = "value"
    cuts: int | None = 32
    least: int = 10
    refit_every: int | float = 0.25
    prior_rows: float = 1.0
    balanced: bool = False
    means: str = "predictable"

    def belief(self, n_arms, n_features, normalize=False, seed=None):
        return TreeBelief(self, n_arms, n_features, seed)


class TreeBelief(Belief):
    tabulates: ClassVar[bool] = False

    def __init__(self, spec, n_arms, n_features, seed):
        self.spec, self.n_features, self.n = spec, n_features, np.zeros(n_arms)
        self.inner = spec.base.belief(n_arms, n_features, False, seed)
        self.log = Rounds(n_features + n_arms)
        self.tree, self.fitted = Tree.root(), 0
        self.leaves = Leaves(1, n_arms)

    def moments(self, x):
        mean, variance = self.leaves.moments(self.spec.prior_rows)
        sd = np.where(self.new, np.inf, np.sqrt(variance))
        leaf = self.tree.leaf(x)
        return mean[leaf], sd[leaf]

    def describe(self, rows, available, alpha=None):
        mean, sd = self.moments(np.ascontiguousarray(rows[:, : self.n_features]))
        last = np.where(self.new, -np.inf, np.inf)
        put_moments(rows, self.n_features, available, mean, sd, last)

    def best(self, x, alpha=1.0, available=None):
        mean, sd = self.moments(x)
        which = slice(None) if available is None else available
        scale = np.reshape(alpha, (-1, 1)) * np.minimum(sd, HUGE)[:, which]
        return best_of_location_scale(mean[:, which], scale, np.full_like(scale, np.inf))

    def draw(self, x, size, rng, available=None):
        mean, sd = self.moments(x)
        values = mean + sd * rng.standard_normal((size, 1, len(self.n)))
        return values if available is None else values[:, :, available]

    def update(self, x, arm, reward, weight=None):
        weight = np.ones(len(x)) if weight is None else weight
        own = weight if self.spec.balanced else np.ones(len(x))
        leaf = self.tree.leaf(x)
        due = Schedule(self.spec.refit_every).next_due(self.fitted)
        for i in range(len(x)):
            one = slice(i, i + 1)
            means = self.inner.mean(x[one])
            self.log.append(np.hstack([x[one], means]), arm[one], reward[one], weight[one])
            self.inner.update(x[one], arm[one], reward[one], own[one])
            rows = {"arm": arm[one], "reward": reward[one], "weight": weight[one]}
            self.leaves.learn(leaf[one], rows, means)
            self.n = self.n + np.bincount(arm[one], minlength=len(self.n))
            if len(self.log) >= due:
                self._grow()
                due = Schedule(self.spec.refit_every).next_due(self.fitted)
                leaf = self.tree.leaf(x)

    def reweigh(self, due, x, arm, reward, weight):
        rows = self.log.of()
        self.log.clear()
        self.log.append(rows["x"], arm, reward, weight)
        if self.spec.balanced:
            self.inner.reweigh(due, x, arm, reward, weight)
        self._tally()

    def _rows(self):
        rows = self.log.of()
        x, means = np.split(rows["x"], [self.n_features], axis=1)
        return {**rows, "x": np.ascontiguousarray(x), "means": np.ascontiguousarray(means)}

    def _tally(self):
        rows = self._rows()
        self.leaves = Leaves(self.tree.n_leaves, len(self.n))
        self.leaves.learn(self.tree.leaf(rows["x"]), rows, rows["means"])

    def _grow(self):
        rows, spec = self._rows(), self.spec
        x, score, arm = rows["x"], rows["means"], rows["arm"]
        self.fitted = len(x)
        if spec.means == "refreshed":
            score = self.inner.mean(x)
            self.log.clear()
            self.log.append(np.hstack([x, score]), arm, rows["reward"], rows["weight"])
        score = score.copy()
        known = np.flatnonzero(arm >= 0)
        mine = known, arm[known]
        score[mine] += rows["weight"][known] * (rows["reward"][known] - score[mine])
        self.tree = grown(x, score, arm, spec.depth, spec.least, spec.cuts, spec.by)
        self._tally()

    def fork(self):
        twin = copy(self)
        twin.log, twin.inner, twin.leaves = self.log.fork(), self.inner.fork(), self.leaves.fork()
        return twin
