"""Honest trees: scikit-learn grows them on half a subsample, and the other half fills them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Literal

import numpy as np

from bayesbandit.checks import Array
from bayesbandit.forms import Form, Numbers, State, check, demand, nodes_form
from bayesbandit.systems.forest import kernels as honest

Weighing = Literal["sample_weight", "replicate", "covariate"]


@dataclass(frozen=True, eq=False)
class Trees:
    """T trees whose N nodes are stored one tree after another; `kernels.py` explains the format.

    feature, left, right (N,): int64.
    threshold (N,).
    value (N, 2): average weight and average weighted reward of the rows that fill a node.
    roots (T + 1,): int64, where each tree begins, and N.
    """

    feature: Array
    threshold: Array
    left: Array
    right: Array
    value: Array
    roots: Array

    def ask(self, x: Array) -> Array:
        """Return each tree's two values at contexts x (n, d): (T, n, 2)."""
        out = np.empty((len(self.roots) - 1, len(x), 2))
        honest.ask(
            np.ascontiguousarray(x), self.feature, self.threshold, self.left, self.right,
            self.value, self.roots, out,
        )  # fmt: skip
        return out


def trees_form(state: State, n_trees: int, n_features: int) -> Form:
    """Return the form of `Trees` by name: every path ends in a leaf of its tree."""
    N = len(state["feature"])

    def roots(value: object, where: str) -> None:
        check(value, Numbers((n_trees + 1,), 0, N, dtype="<i8"), where)
        begins = state["roots"]
        one_by_one = begins[0] == 0 and begins[-1] == N and (np.diff(begins) > 0).all()
        demand(one_by_one, f"{where}: trees must begin one after the other")

    def ends() -> Array:
        return np.repeat(state["roots"][1:], np.diff(state["roots"]))

    form = {"roots": roots, "value": Numbers((N, 2))}
    return form | nodes_form(state, n_features, ends)


def joined(trees: list[Trees]) -> Trees:
    """Return all these trees as one `Trees`."""
    nodes = np.cumsum([0, *(len(tree.feature) for tree in trees)])
    ends = [tree.roots[1:] + start for tree, start in zip(trees, nodes, strict=False)]
    names = [f.name for f in fields(Trees)]
    arrays = {name: np.concatenate([vars(tree)[name] for tree in trees]) for name in names}
    for name in ("left", "right"):
        arrays[name] = arrays[name] + np.repeat(nodes[:-1], np.diff(nodes))
    return Trees(**arrays | {"roots": np.concatenate([np.zeros(1, np.int64), *ends])})


def ranks(x: Array) -> Array:
    """Return the ranks of the values in each column of x (n, p), as float32.

    Trees depend on the order of values only. With ranks, units do not matter, and scikit-learn's
    float32 comparisons are exact.
    """
    codes = [np.unique(column, return_inverse=True)[1] for column in x.T]
    return np.ascontiguousarray(np.column_stack(codes), np.float32)


@dataclass(frozen=True, eq=False)
class Growth:
    """The data and settings from which one arm's trees are grown.

    x (n, p): columns. reward, weight (n,). how, min_node, min_leaf, tried: settings of `Forest`.
    """

    x: Array
    reward: Array
    weight: Array
    how: Weighing
    min_node: int
    min_leaf: int
    tried: int

    def tree(self, grow: Array, fill: Array, seed: int) -> Trees:
        """Return one tree, grown on the rows `grow` and filled by the rows `fill`."""
        from sklearn.tree import DecisionTreeRegressor  # takes a second to load

        if self.how == "replicate":
            grow = np.repeat(grow, self.copies[grow])
        unweighted = self.how != "sample_weight" or np.ptp(self.weight) == 0.0
        weight = None if unweighted else self.weight[grow]
        tree = DecisionTreeRegressor(
            min_samples_split=max(2, self.min_node + 1),
            min_samples_leaf=self.min_leaf,
            max_features=self.tried,
            random_state=seed,
        )
        tree.fit(self.codes[grow], self.reward[grow], weight, check_input=False)
        grown = tree.tree_
        inner = tree.tree_.children_left >= 0
        columns = (grown.feature, -1), (grown.children_left, 0), (grown.children_right, 0)
        feature, left, right = (
            np.where(inner, column, end).astype(np.int64) for column, end in columns
        )
        threshold = np.empty(len(feature))
        averages = np.empty((len(feature), 3))
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
        """Replace thresholds on the propensity by the left side's share of the population.

        mass (N,): the sum of inverse propensities in each node.
        """
        [split] = np.nonzero(feature == self.x.shape[1] - 1)
        both = mass[left[split]] + mass[right[split]]
        share = mass[left[split]] / np.where(both > 0.0, both, 1.0)
        threshold[split] = np.where(both > 0.0, share, 0.5)

    @cached_property
    def codes(self) -> Array:
        """Return the ranks of x (n, p)."""
        return ranks(self.x)

    @cached_property
    def copies(self) -> Array:
        """Return how often each row is replicated (n,): w rounded, at least 1."""
        return np.maximum(np.rint(self.weight), 1.0).astype(np.int64)

    @cached_property
    def sums(self) -> Array:
        """Return the numbers (n, 4) that are summed in the nodes.

        They are a row's count, weight, weighted reward and inverse propensity.
        """
        count = self.copies if self.how == "replicate" else np.ones(len(self.weight))
        v = self.weight if self.how == "sample_weight" else np.ones(len(self.weight))
        return np.column_stack([count, count * v, count * v * self.reward, self.weight])
