"""Every bandit against every other, a point for each environment (paper, section 3.2)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bayesbandit.evaluation import pairwise
from bayesbandit.plots.curves import horizon, replications
from bayesbandit.plots.style import BLUE, GREY, VERMILLION, dot, finish, picture, plain

MAX_PAIRED_BANDITS = 12  # bandits that are compared in pairs, at most
LEAST_SIDE, MARGIN = 1.0, 0.9  # inches of a panel at least, and beside all of them
CORNER_INCHES = 0.17  # inches of a panel's corner that its counts need
OUTCOMES = {"draw": (GREY, "D"), "loss": (VERMILLION, "^"), "win": (BLUE, "o")}
SHOWN_P = (("p = 0.01", 1e-2), ("p ≤ 1e-12", 1e-12))  # in the legend


def pairwise_scatter(
    table: pd.DataFrame,
    level: float = 0.05,
    *,
    title: str | None = None,
    width: float | None = None,
) -> Figure:
    """Draw every bandit against every other, a point for each environment (paper, section 3.2).

    x and y are the normalised regrets of the column's and the row's bandit. Colour and shape show
    the row's win, loss or draw by the test of `pairwise`. The area grows with −log₁₀ p, up to p =
    10⁻¹². Of more than 12 bandits it shows the 12 with the least regret, and the title says so.
    """
    pairs = pairwise(table, level)
    bandits = pd.unique(pairs["row"]).tolist()
    if (all_of_them := len(bandits)) < 2:
        raise ValueError("a pairwise comparison needs at least two bandits that met")
    regret = pairs.groupby("row")["row_regret"].mean().sort_values()
    bandits = [name for name in bandits if name in regret.index[:MAX_PAIRED_BANDITS]]
    pairs = pairs[pairs["row"].isin(bandits) & pairs["column"].isin(bandits)]
    k = len(bandits)
    low, high = pairs["row_regret"].min(), pairs["row_regret"].max()  # pairs go both ways
    side = min(2.6, max(1.4, 11 / k))
    if width is not None:
        side = max(LEAST_SIDE, (width - MARGIN) / k)
    letters = 8.0 if side > 2.0 else 7.0  # points
    pad = max(0.16, CORNER_INCHES / (side - 0.3 - 2 * CORNER_INCHES)) * (
        (high - low) or abs(high) or 1.0
    )
    names = [plain(name, int(9 * side)) for name in bandits]
    label = 0.16 * max(name.count("\n") for name in names)  # inches of their further lines
    across = side * k + MARGIN + label
    figure = picture(across, across + 0.2, width, least=LEAST_SIDE * k + MARGIN)
    axes = figure.subplots(k, k, sharex=True, sharey=True, subplot_kw={"box_aspect": 1})
    for (row, column), met in pairs.groupby(["row", "column"]):
        _versus(axes[bandits.index(row), bandits.index(column)], met, letters)
    for i, shown in enumerate(names):
        axes[i, 0].set_ylabel(shown, fontweight="bold")
        axes[0, i].set_title(shown, fontsize=10, fontweight="bold")
        axes[i, i].set_facecolor("#F2F2F2")
    axes[0, 0].set(xlim=(low - pad, high + pad), ylim=(low - pad, high + pad))
    axes[0, 0].locator_params(nbins=4, steps=[1, 2, 5, 10])
    test = f"two-sided p\u00a0<\u00a0{level:g}"
    n = pairs["environment"].nunique()
    test += f", {k} of {all_of_them} bandits, by regret" * (k < all_of_them)
    over = f"{n} environment{'s' * (n > 1)}, {replications(pairs['replications'])}"
    figure.supxlabel("normalised regret of the column bandit", fontsize=10)
    figure.supylabel("normalised regret of the row bandit", fontsize=10)
    keys = [dot(*OUTCOMES[outcome], outcome) for outcome in ("win", "loss", "draw")]
    keys += [dot(GREY, "o", label, float(np.sqrt(area(np.array(p))))) for label, p in SHOWN_P]
    look: dict[str, Any] = {"fontsize": letters + 1, "frameon": False, "handlelength": 0.8}
    axes[0, 0].legend(handles=keys, title="row bandit's", loc="center", **look)
    default = f"Pairwise comparison {horizon(table)}: {over} ({test})"
    return finish(axes.ravel(), title, default)


def _versus(ax: Axes, met: pd.DataFrame, letters: float) -> None:
    """Draw one panel of `pairwise_scatter`: a point an environment, and the row's wins and
    losses."""
    ax.axline((0, 0), slope=1, color=GREY, lw=0.7, zorder=1)
    for outcome, (colour, marker) in OUTCOMES.items():
        some = met[met["outcome"] == outcome]
        x = some["column_regret"]
        y = some["row_regret"]
        size = area(some["p"].to_numpy())
        ax.scatter(x, y, size, color=colour, marker=marker, alpha=0.65, ec="white", lw=0.4)
    won, lost = ((met["outcome"] == which).sum() for which in ("win", "loss"))
    look: dict[str, Any] = {"xycoords": "axes fraction", "fontsize": letters}
    ax.annotate(f"W {won}", (0.97, 0.02), color=BLUE, ha="right", va="bottom", **look)
    ax.annotate(f"L {lost}", (0.03, 0.98), color="#A84600", ha="left", va="top", **look)


def area(p: np.ndarray) -> np.ndarray:
    """Return the area of a point with the p-value p; without a test (NaN) that of p = 1."""
    return 10 - 6 * np.log10(np.clip(np.nan_to_num(p, nan=1.0), 1e-12, 1))
