"""Honest trees on scikit-learn's: grown by one half of a subsample, filled by the other half."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Literal

import numpy as np

from bayesbandit.checks import LARGEST
from bayesbandit.systems.forest import kernels as honest

Array = np.ndarray
Weighing = Literal["sample_weight", "replicate", "covariate"]


@dataclass(frozen=True, eq=False)
class Trees:
    """T trees, their N nodes one after the other: what `kernels.py` says of them.

    feature, left, right (N,), roots (T + 1,): int64; threshold (N,); value (N, 2): average weight
    and average weighted reward of the honest rows.
    """

    feature: Array
    threshold: Array
    left: Array
    right: Array
    value: Array
    roots: Array

    def ask(self, x: Array) -> Array:
        """Each tree's two values at contexts x (n, d): (T, n, 2)."""
        out = np.empty((len(self.roots) - 1, len(x), 2))
        honest.ask(
            np.ascontiguousarray(x), self.feature, self.threshold, self.left, self.right,
            self.value, self.roots, out,
        )  # fmt: skip
        return out

    def check(self, n_trees: int, n_features: int) -> None:
        """That no question leads astray: every way goes on, and ends."""
        N = len(self.feature)
        shapes = {"threshold": (N,), "left": (N,), "right": (N,), "value": (N, 2)}
        for name, shape in (shapes | {"feature": (N,), "roots": (n_trees + 1,)}).items():
            array = vars(self)[name]
            kind = np.float64 if name in ("threshold", "value") else np.int64
            if array.shape != shape or array.dtype != kind:
                raise ValueError(f"trees' {name} must be {shape}; got {array.dtype}{array.shape}")
        roots, node, inner = self.roots, np.arange(N), self.feature >= 0
        if roots[0] != 0 or roots[-1] != N or not (np.diff(roots) > 0).all():
            raise ValueError(f"trees must begin one after the other; got {roots}")
        end = np.repeat(roots[1:], np.diff(roots))
        for child in (self.left[inner], self.right[inner]):
            if not ((child > node[inner]) & (child < end[inner])).all():
                raise ValueError("a tree's children must stand behind their parent")
        if not ((self.feature >= -1) & (self.feature <= n_features)).all():
            raise ValueError(f"trees must split on features 0 to {n_features}; got {self.feature}")
        weight, reward = self.value.T
        lean = (weight >= 1 / LARGEST) & (weight <= LARGEST)
        if not (lean & (np.abs(reward) <= LARGEST * weight)).all():
            raise ValueError(f"trees' values must be of weights > 0, at most {LARGEST:g} a weight")
        share = self.threshold[self.feature == n_features]
        if not np.isfinite(self.threshold).all() or not ((share >= 0) & (share <= 1)).all():
            raise ValueError("trees' thresholds must be finite, shares between 0 and 1")


def joined(trees: list[Trees]) -> Trees:
    """All of these as one."""
    nodes = np.cumsum([0, *(len(one.feature) for one in trees)])
    ends = [one.roots[1:] + at for one, at in zip(trees, nodes, strict=False)]
    names = [f.name for f in fields(Trees)]
    arrays = {name: np.concatenate([vars(one)[name] for one in trees]) for name in names}
    for name in ("left", "right"):
        arrays[name] = arrays[name] + np.repeat(nodes[:-1], np.diff(nodes))
    return Trees(**arrays | {"roots": np.concatenate([np.zeros(1, np.int64), *ends])})


def ranks(x: Array) -> Array:
    """Columns x (n, p) by the ranks of their values, float32: as trees see nothing else, neither
    units nor float32, in which scikit-learn compares, change anything."""
    codes = [np.unique(column, return_inverse=True)[1] for column in x.T]
    return np.ascontiguousarray(np.column_stack(codes), np.float32)


@dataclass(frozen=True, eq=False)
class Growth:
    """What one arm's trees are grown of: columns x (n, p), rewards and weights (n,), and how."""

    x: Array
    reward: Array
    weight: Array
    how: Weighing
    min_node: int
    min_leaf: int
    tried: int  # features at each split

    def tree(self, grow: Array, fill: Array, seed: int) -> Trees:
        """One tree, grown by some rows and filled by others."""
        from sklearn.tree import DecisionTreeRegressor  # takes a second to load

        if self.how == "replicate":
            grow = np.repeat(grow, self.copies[grow])
        alike = self.how != "sample_weight" or np.ptp(self.weight) == 0.0
        weight = None if alike else self.weight[grow]
        tree = DecisionTreeRegressor(
            min_samples_split=max(2, self.min_node + 1), min_samples_leaf=self.min_leaf,
            max_features=self.tried, random_state=seed,
        )  # fmt: skip
        tree.fit(self.codes[grow], self.reward[grow], weight, check_input=False)
        grown, inner = tree.tree_, tree.tree_.children_left >= 0
        columns = (grown.feature, -1), (grown.children_left, 0), (grown.children_right, 0)
        feature, left, right = (
            np.where(inner, column, end).astype(np.int64) for column, end in columns
        )
        threshold, averages = np.empty(len(feature)), np.empty((len(feature), 3))
        code = np.ascontiguousarray(grown.threshold)
        honest.halfway(self.codes[grow], self.x[grow], feature, code, left, right, threshold)
        nodes = feature, threshold, left, right
        total = honest.fill(self.x[fill], self.sums[fill], *nodes, self.min_leaf, averages)
        if self.how == "covariate":
            self._share(feature, threshold, left, right, total[:, -1])
        roots = np.array([0, len(feature)])
        return Trees(feature, threshold, left, right, averages[:, :2].copy(), roots)

    def _share(
        self, feature: Array, threshold: Array, left: Array, right: Array, mass: Array
    ) -> None:
        """Where a tree splits on the propensity, the left side's share of the population instead:
        of inverse propensities, `mass` (N,)."""
        [at] = np.nonzero(feature == self.x.shape[1] - 1)
        both = mass[left[at]] + mass[right[at]]
        threshold[at] = np.where(both > 0.0, mass[left[at]] / np.where(both > 0.0, both, 1.0), 0.5)

    @cached_property
    def codes(self) -> Array:
        """Ranks (n, p)."""
        return ranks(self.x)

    @cached_property
    def copies(self) -> Array:
        """How often a row is replicated (n,), [w], at least once."""
        return np.maximum(np.rint(self.weight), 1.0).astype(np.int64)

    @cached_property
    def sums(self) -> Array:
        """Rows (n, 4) to be summed in the nodes: how many a row stands for, weight, weighted
        reward, inverse propensity."""
        count = self.copies if self.how == "replicate" else np.ones(len(self.weight))
        v = self.weight if self.how == "sample_weight" else np.ones(len(self.weight))
        return np.column_stack([count, count * v, count * v * self.reward, self.weight])
