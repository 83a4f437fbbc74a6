"""The picture of a policy tree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bayesbandit.bandit.bandit import Bandit
from bayesbandit.checks import shown
from bayesbandit.plots.style import (
    GREY,
    dress,
    finish,
    label_rows,
    look,
    picture,
    plain,
    rows,
    ruled,
)
from bayesbandit.systems.policy_tree.belief import TreeBelief
from bayesbandit.systems.policy_tree.tree import Tree

WIDTH, LEAST_LEAF = 2.3, 1.2  # inches of a leaf
# characters of a feature's name on one line: a split is over two leaves at least
QUESTION_LENGTH = 32
BOX = {"boxstyle": "round,pad=0.35", "fc": "white", "ec": GREY, "lw": 0.8}


def policy_tree(
    bandit: Bandit,
    features: Sequence[object] | None = None,
    title: str | None = None,
    *,
    width: float | None = None,
) -> Figure:
    """Draw the policy tree of a bandit such as `PolicyTreeTS`.

    The splits are above. Below them each leaf has a row for each arm: mean ± sd, and at its right
    the number of rounds that played the arm there. An arm with no estimate there has no point.
    features: their names.
    """
    belief = bandit.belief if isinstance(bandit, Bandit) else bandit
    if not isinstance(belief, TreeBelief):
        raise TypeError(f"a picture of a tree needs a bandit with one; got {shown(belief)}")
    if features is not None and len(features) != bandit.n_features:
        raise ValueError(f"features must be {bandit.n_features} names; got {list(features)!r}")
    tree = belief.tree
    L = belief.tree.n_leaves
    if features is None and bandit.encoder is not None:
        features = bandit.encoder.features
    names = [f"x{j}" for j in range(bandit.n_features)] if features is None else list(features)
    labels, down, lines = rows(bandit.arms)
    questions = {
        node: f"{plain(names[tree.feature[node]], QUESTION_LENGTH)} ≤ {tree.threshold[node]:.3g}"
        for node in np.flatnonzero(tree.feature >= 0)
    }
    longest = max((text.count("\n") for text in questions.values()), default=0)
    across, level = places(tree)
    height = (1.0 + 0.17 * longest) * int(level.max())
    leaf = 0.9 + 0.22 * max(lines, 3)
    figure = picture(max(WIDTH * L, 4.0), 0.6 + height + leaf, width, LEAST_LEAF * L)
    grid = figure.add_gridspec(2, L, height_ratios=[max(height, 0.05), leaf])
    top = figure.add_subplot(grid[0, :])
    top.set(xlim=(0, L), ylim=(-level.max() - 0.1, 0.4))
    top.set_axis_off()
    for node, question in questions.items():
        x = across[node]
        y = -level[node]
        for child, word in ((tree.left[node], "yes"), (tree.right[node], "no")):
            is_leaf = tree.feature[child] < 0
            to = across[child], -level.max() - 0.1 if is_leaf else -level[child]
            top.plot([x, to[0]], [y, to[1]], color=GREY, lw=0.9, zorder=0)
            middle = (x + to[0]) / 2, (y + to[1]) / 2
            top.text(*middle, word, fontsize=8, color=GREY, ha="center", backgroundcolor="white")
        top.text(x, y, question, ha="center", va="center", fontsize=9, bbox=BOX)
    axes = [figure.add_subplot(grid[1, leaf]) for leaf in range(L)]
    _leaves(axes, belief, down)
    label_rows(axes, labels, down, lines)
    return finish(axes, title, "Policy tree")


def _leaves(axes: list[Axes], belief: TreeBelief, down: np.ndarray) -> None:
    """Draw each leaf's arms, row by row, and at the right of it the rounds that played them."""
    mean, sd = belief.of_leaves()
    known = np.isfinite(sd)
    mean, sd = np.where(known, mean, np.nan), np.where(known, sd, np.nan)
    low, high = (np.nanmin(mean - sd), np.nanmax(mean + sd)) if known.any() else (0.0, 0.0)
    room = 0.1 * (high - low) or 1.0
    for leaf, ax in enumerate(axes):
        for k, y in enumerate(-down):
            own = look(k, line=False)
            ax.errorbar(mean[leaf, k], y, xerr=sd[leaf, k], ms=6, lw=1.2, capsize=3, **own)
        dress(ax, f"leaf {leaf}", "mean reward ± sd", "", inches=WIDTH)
        ax.set_xlim(low - room, high + room)
        ruled(ax, "x")
        counts = ax.secondary_yaxis("right")
        counts.set_yticks(-down, [f"{int(n):,}" for n in belief.leaves.plays[leaf]], fontsize=8)
        counts.tick_params(length=0)
        counts.spines["right"].set_visible(False)
        if ax is axes[-1]:
            counts.set_ylabel("rounds")


def places(tree: Tree) -> tuple[np.ndarray, np.ndarray]:
    """Return where nodes stand (M,): across, leaf l at l + ½ and a split midway between its
    children, and how many splits are above."""
    across = tree.number + 0.5
    level = np.zeros(len(tree.feature), dtype=np.int64)
    for node in np.flatnonzero(tree.feature >= 0):
        level[[tree.left[node], tree.right[node]]] = level[node] + 1
    for node in np.flatnonzero(tree.feature >= 0)[::-1]:
        across[node] = (across[tree.left[node]] + across[tree.right[node]]) / 2.0
    return across, level
