"""A tree that splits the contexts, stored as arrays, and the functions that grow it on scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from bayesbandit.checks import Array
from bayesbandit.systems.policy_tree.kernels import descend, first_split

# share of the scores' absolute sum by which a split must improve the value
MIN_RELATIVE_GAIN = 1e-12


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree as arrays (M,), one element for each node. A node comes before its children.

    feature, threshold: the node's split; feature −1 is a leaf.
    left, right: the children. A row goes left where its feature is at most the threshold.
    Leaves are numbered from left to right.
    """

    feature: Array
    threshold: Array
    left: Array
    right: Array

    @classmethod
    def root(cls) -> Self:
        """Return a tree with one leaf."""
        none = np.full(1, -1)
        return cls(none, np.zeros(1), none, none)

    @property
    def number(self) -> Array:
        """Return each node's number among the leaves (M,); −1 for a split."""
        is_leaf = self.feature < 0
        return np.where(is_leaf, np.cumsum(is_leaf) - 1, -1)

    @property
    def n_leaves(self) -> int:
        return int((self.feature < 0).sum())

    def leaf(self, x: Array) -> Array:
        """Return the leaf numbers (n,) of contexts x (n, d)."""
        nodes = descend(x, self.feature, self.threshold, self.left, self.right)
        return self.number[nodes]

    def text(self, leaves: Sequence[str], features: Sequence[Any] | None = None) -> str:
        """Return the tree as text, one line for each node.

        leaves: a text for each leaf. features: their names.
        """
        names = [f"x{j}" for j in range(self.feature.max() + 1)] if features is None else features
        number = self.number
        lines: list[str] = []

        def below(node: int, indent: str) -> None:
            for sign, child in (("≤", self.left[node]), (">", self.right[node])):
                split = f"{indent}{names[self.feature[node]]} {sign} {self.threshold[node]:.4g}"
                if self.feature[child] < 0:
                    lines.append(f"{split}: {leaves[number[child]]}")
                else:
                    lines.append(split)
                    below(child, indent + "    ")

        if self.n_leaves == 1:
            return leaves[0]
        below(0, "")
        return "\n".join(lines)


def cut_points(values: Array, most: int | None) -> Array:
    """Return the cut points of values (n,): between all distinct values, or at `most` quantiles."""
    distinct = np.unique(values)
    if most is not None and len(distinct) > most + 1:
        p = np.arange(1, most + 1) / (most + 1)
        low = np.unique(np.quantile(values, p, method="inverted_cdf"))
        index = np.searchsorted(distinct, low[low < distinct[-1]])
    else:
        index = np.arange(len(distinct) - 1)
    low = distinct[index]
    high = distinct[index + 1]
    middle = low + (high - low) / 2.0
    return np.where(middle < high, middle, low)


def grown(
    x: Array, score: Array, arm: Array, depth: int, least: int, cuts: int | None,
    by: Literal["value", "classification"] = "value",
) -> Tree:  # fmt: skip
    """Return a tree grown on contexts x (n, d) with scores (n, K).

    arm (n,): the arms that were played; −1 for a removed arm.
    least: the fewest rows in a leaf.
    by: "value" finds the tree of the largest value. It is exact up to two levels of splits at the
        cut points. A deeper tree takes the first split of the best two levels and repeats this
        below it (the hybrid search of `policytree`). "classification" uses the Gini impurity of the
        arms that were played, weighted by |score|.
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
    slack = MIN_RELATIVE_GAIN * float(np.abs(score).sum())
    C = int(code.max()) + 1
    nodes: Nodes = []

    def down(rows: Array, levels: int) -> int:
        node = len(nodes)
        nodes.append(LEAF)
        if levels > 0 and len(rows) >= 2 * least:
            _, feature, cut = first_split(code[rows], score[rows], C, levels > 1, least, slack)
            if feature >= 0:
                goes_left = code[rows, feature] <= cut
                left = down(rows[goes_left], levels - 1)
                right = down(rows[~goes_left], levels - 1)
                nodes[node] = (feature, cut, left, right)
        return node

    down(np.arange(len(code)), depth)
    return nodes


def _classified(code: Array, weight: Array, arm: Array, depth: int, least: int) -> Nodes:
    from sklearn.tree import DecisionTreeClassifier

    used = (weight > 0.0) & (arm >= 0)
    if used.sum() < 2 * least:
        return [LEAF]
    model = DecisionTreeClassifier(max_depth=depth, min_samples_leaf=least, random_state=0)
    tree = model.fit(code[used], arm[used], sample_weight=weight[used] / weight.max()).tree_
    columns = tree.feature, tree.threshold, tree.children_left, tree.children_right
    return [
        (int(j), int(c), int(left), int(right)) if j >= 0 else LEAF
        for j, c, left, right in zip(*columns, strict=True)
    ]
