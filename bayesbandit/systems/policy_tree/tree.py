"""A tree that parts the contexts, as arrays; and how it is grown on scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from bayesbandit.systems.policy_tree.kernels import descend, first_split

Array = np.ndarray
ROUNDING = 1e-12  # of the sum of all scores' sizes: a split is worth more than this


@dataclass(frozen=True, eq=False)
class Tree:
    """Nodes, each before those below it: `feature` and `threshold` of its split, feature −1 in a
    leaf; `left`, where the feature is at most the threshold, and `right`: (M,) each.

    Leaves are numbered from left to right.
    """

    feature: Array
    threshold: Array
    left: Array
    right: Array

    @classmethod
    def root(cls) -> Self:
        """One leaf."""
        none = np.full(1, -1)
        return cls(none, np.zeros(1), none, none)

    @property
    def number(self) -> Array:
        """Numbers of the leaves, by node (M,); −1 of a split."""
        is_leaf = self.feature < 0
        return np.where(is_leaf, np.cumsum(is_leaf) - 1, -1)

    @property
    def n_leaves(self) -> int:
        return int((self.feature < 0).sum())

    def leaf(self, x: Array) -> Array:
        """Numbers of the leaves of contexts x (n, d): (n,)."""
        nodes = descend(x, self.feature, self.threshold, self.left, self.right)
        return self.number[nodes]

    def text(
        self, leaves: Sequence[str] | None = None, features: Sequence[Any] | None = None
    ) -> str:
        """One line a node. leaves: what to say of each; features: their names."""
        lines: list[str] = []
        number = self.number

        def down(node: int, indent: str, before: str) -> None:
            if (j := int(self.feature[node])) < 0:
                said = f"leaf {number[node]}" if leaves is None else leaves[number[node]]
                lines.append(f"{indent}{before}{said}")
                return
            name = f"x{j}" if features is None else features[j]
            for sign, child in (("≤", self.left[node]), (">", self.right[node])):
                here = f"{name} {sign} {self.threshold[node]:.4g}"
                if self.feature[child] < 0:
                    down(int(child), indent, f"{here}: ")
                else:
                    lines.append(f"{indent}{here}")
                    down(int(child), indent + "    ", "")

        down(0, "", "")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text()

    def state(self) -> dict[str, Array]:
        """All of it, as arrays."""
        return dict(vars(self))

    @classmethod
    def restored(cls, state: dict[str, Array], n_features: int) -> Self:
        """The tree of `state`, checked."""
        found = cls(*(state[name] for name in ("feature", "threshold", "left", "right")))
        feature, M = found.feature, len(found.feature)
        shapes = {array.shape for array in vars(found).values()}
        whole = shapes == {(M,)} and M > 0 and found.threshold.dtype == np.float64
        whole = whole and all(a.dtype == np.int64 for a in (feature, found.left, found.right))
        if not (whole and ((feature >= -1) & (feature < n_features)).all()):
            raise ValueError(f"a tree of {n_features} features must be whole; got {state}")
        splits = feature >= 0
        below = np.concatenate([found.left[splits], found.right[splits]])
        parents = np.tile(np.flatnonzero(splits), 2)
        once = sorted(below.tolist()) == list(range(1, M))
        if not (once and (below > parents).all() and np.isfinite(found.threshold).all()):
            raise ValueError(f"each node of a tree must be below one before it; got {state}")
        return found


def cut_points(values: Array, most: int | None) -> Array:
    """Where to split values (n,): between those that differ, or at so many of their quantiles."""
    distinct = np.unique(values)
    if most is not None and len(distinct) > most + 1:
        at = np.arange(1, most + 1) / (most + 1)
        low = np.unique(np.quantile(values, at, method="inverted_cdf"))
        index = np.searchsorted(distinct, low[low < distinct[-1]])
    else:
        index = np.arange(len(distinct) - 1)
    low, high = distinct[index], distinct[index + 1]
    middle = low + (high - low) / 2.0
    return np.where(middle < high, middle, low)


def grown(
    x: Array, score: Array, arm: Array, depth: int, least: int, cuts: int | None,
    by: Literal["value", "classification"] = "value",
) -> Tree:  # fmt: skip
    """A tree for contexts x (n, d) with scores (n, K), of which the arms (n,) were played, −1 one
    that is gone.

    by: "value", the tree of largest value with leaves of `least` rows, exactly so up to two levels
    of splits among the cut points; a deeper one takes the first split of the best two levels, and
    goes on below (the hybrid search of `policytree`). "classification": by the Gini impurity of the
    arms that were played, weighed by |score|.
    """
    n, d = x.shape
    points = [cut_points(x[:, j], cuts) for j in range(d)]
    if n < 2 * least or not any(map(len, points)):
        return Tree.root()
    code = np.column_stack([np.searchsorted(p, x[:, j]) for j, p in enumerate(points)])
    if by == "classification":
        nodes = _classified(code, np.abs(score[np.arange(n), arm]), arm, depth, least)
    else:
        nodes = _searched(code, score, depth, least)
    feature, cut, left, right = np.array(nodes, dtype=np.int64).T.copy()
    threshold = [points[j][c] if j >= 0 else 0.0 for j, c in zip(feature, cut, strict=True)]
    return Tree(feature, np.array(threshold, dtype=np.float64), left, right)


Nodes = list[tuple[int, int, int, int]]  # feature, code, left, right
LEAF = (-1, 0, -1, -1)


def _searched(code: Array, score: Array, depth: int, least: int) -> Nodes:
    score = score - score.mean(axis=1, keepdims=True)  # which arm is best does not depend on it
    slack, C = ROUNDING * float(np.abs(score).sum()), int(code.max()) + 1
    nodes: Nodes = []

    def down(rows: Array, levels: int) -> int:
        node = len(nodes)
        nodes.append(LEAF)
        if levels > 0 and len(rows) >= 2 * least:
            found = first_split(code[rows], score[rows], C, levels > 1, least, slack)
            _, feature, cut = found
            if feature >= 0:
                here = code[rows, feature] <= cut
                left = down(rows[here], levels - 1)
                right = down(rows[~here], levels - 1)
                nodes[node] = (feature, cut, left, right)
        return node

    down(np.arange(len(code)), depth)
    return nodes


def _classified(code: Array, weight: Array, arm: Array, depth: int, least: int) -> Nodes:
    from sklearn.tree import DecisionTreeClassifier

    told = (weight > 0.0) & (arm >= 0)
    if told.sum() < 2 * least:
        return [LEAF]
    fit = DecisionTreeClassifier(max_depth=depth, min_samples_leaf=least, random_state=0)
    found = fit.fit(code[told], arm[told], sample_weight=weight[told] / weight.max()).tree_
    columns = found.feature, found.threshold, found.children_left, found.children_right
    return [
        (int(j), int(c), int(left), int(right)) if j >= 0 else LEAF
        for j, c, left, right in zip(*columns, strict=True)
    ]
