"""The picture of a policy tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bayesbandit.bandits.bandit import Bandit
from bayesbandit.beliefs.tree.belief import TreeBelief
from bayesbandit.beliefs.tree.tree import Tree
from bayesbandit.checks import shown
from bayesbandit.plots.style import GREY, MARKERS, PALETTE, Picture, dress, entitle, legend, plain

BOX = {"boxstyle": "round,pad=0.35", "fc": "white", "ec": GREY, "lw": 0.8}


def policy_tree(
    bandit: Bandit, features: Sequence[Any] | None = None, title: str = "Policy tree"
) -> Figure:
    """The tree of a bandit such as `PolicyTreeTS`: its splits above, and below them what each leaf
    knows of each arm, mean ± sd, with the number of rounds that played an arm there. features:
    their names."""
    if not isinstance(belief := bandit.belief, TreeBelief):
        raise TypeError(f"a picture of a tree needs a bandit with one; got {shown(belief)}")
    if features is not None and len(features) != bandit.n_features:
        raise ValueError(f"features must be {bandit.n_features} names; got {list(features)!r}")
    tree, L = belief.tree, belief.tree.n_leaves
    if features is None and bandit.encoder is not None:
        features = bandit.encoder.features
    names = [f"x{j}" for j in range(bandit.n_features)] if features is None else list(features)
    across, down = places(tree)
    height = 1.2 * int(down.max())
    width = max(L * max(1.9, 0.45 * len(bandit.arms)), 4.0) + 0.5
    figure = Picture(figsize=(width, 2.9 + height), layout="constrained")
    grid = figure.add_gridspec(2, L, height_ratios=[max(height, 0.05), 2.0])
    top = figure.add_subplot(grid[0, :])
    top.set(xlim=(0, L), ylim=(-down.max() - 0.1, 0.4))
    top.set_axis_off()
    for node in np.flatnonzero(tree.feature >= 0):
        x, y = across[node], -down[node]
        for child, word in ((tree.left[node], "yes"), (tree.right[node], "no")):
            leaf = tree.feature[child] < 0
            to = across[child], -down.max() - 0.1 if leaf else -down[child]
            top.plot([x, to[0]], [y, to[1]], color=GREY, lw=0.9, zorder=0)
            middle = (x + to[0]) / 2, (y + to[1]) / 2
            top.text(*middle, word, fontsize=8, color=GREY, ha="center", backgroundcolor="white")
        question = f"{plain(names[tree.feature[node]])} ≤ {tree.threshold[node]:.3g}"
        top.text(x, y, question, ha="center", va="center", fontsize=9, bbox=BOX)
    _leaves([figure.add_subplot(grid[1, leaf]) for leaf in range(L)], belief)
    entitle(figure, title)
    keys = [Line2D([], [], ls="", label=str(arm), **look(k)) for k, arm in enumerate(bandit.arms)]
    legend(figure, keys, handle=1.2)
    return figure


def _leaves(axes: list[Axes], belief: TreeBelief) -> None:
    mean, sd = belief.of_leaves()
    sd = np.where(np.isfinite(sd), sd, 0.0)
    low, high = (mean - sd).min(), (mean + sd).max()
    room = 0.1 * (high - low) or 1.0
    for leaf, ax in enumerate(axes):
        for k in range(mean.shape[1]):
            ax.errorbar(k, mean[leaf, k], sd[leaf, k], ms=6, lw=1.2, capsize=3, **look(k))
        dress(ax, f"leaf {leaf}", "rounds of each arm", "mean reward ± sd")
        ax.set(xlim=(-0.6, mean.shape[1] - 0.4), ylim=(low - room, high + room))
        ax.set_xticks(range(mean.shape[1]), [f"{int(n)}" for n in belief.leaves.plays[leaf]])
        if leaf:
            ax.set_yticklabels([])


def look(k: int) -> dict[str, Any]:
    """Colour and marker of arm k."""
    return {"color": PALETTE[k % len(PALETTE)], "marker": MARKERS[k % len(MARKERS)]}


def places(tree: Tree) -> tuple[np.ndarray, np.ndarray]:
    """Where nodes stand (M,): across, leaf l at l + ½ and a split midway between its children, and
    how many splits are above."""
    across, down = tree.number + 0.5, np.zeros(len(tree.feature), dtype=np.int64)
    for node in np.flatnonzero(tree.feature >= 0):
        down[[tree.left[node], tree.right[node]]] = down[node] + 1
    for node in np.flatnonzero(tree.feature >= 0)[::-1]:
        across[node] = (across[tree.left[node]] + across[tree.right[node]]) / 2.0
    return across, down
