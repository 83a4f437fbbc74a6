"""The picture of a balance table."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bayesbandit.plots.style import BLUE, GREY, VERMILLION, dress, entitle, legend, panels, plain

LIMIT = 0.1  # a standardised difference that is commonly called small


def balance(
    table: pd.DataFrame, title: str = "Balance: each arm's mean context less that of all rounds"
) -> Figure:
    """Standardised mean differences of `balance_table`, before and after weighing: a panel an arm,
    a line a feature, the largest before on top."""
    if not isinstance(table, pd.DataFrame) or list(table.index.names) != ["arm", "feature"]:
        raise TypeError(f"balance takes bb.balance_table(history); got {type(table).__name__}")
    arms = table.index.unique("arm").tolist()
    figure, axes = panels(len(arms), most=4, width=3.2, height=1.2 + 0.22 * len(table) / len(arms))
    end = 1.05 * max(float(table[["before", "after"]].abs().to_numpy().max(initial=0.0)), 2 * LIMIT)
    for ax, arm in zip(axes, arms, strict=True):
        here = table.loc[arm].sort_values("before", key=np.abs)
        place = np.arange(len(here))
        ax.axvspan(-LIMIT, LIMIT, color="#F2F2F2", lw=0)
        ax.axvline(0.0, color=GREY, lw=0.7)
        ax.hlines(place, here["before"], here["after"], color="#D0D0D0", lw=1)
        ax.plot(here["before"], place, "o", color=VERMILLION, mfc="white", ms=5)
        ax.plot(here["after"], place, "o", color=BLUE, ms=5)
        dress(ax, f"arm {arm} ({int(here['rounds'].iloc[0]):,} rounds)", "difference (sds)", "")
        ax.set_yticks(place, [plain(name, 40) for name in here.index])
        ax.set(xlim=(-end, end), ylim=(-0.7, len(here) - 0.3))
    entitle(figure, title)
    keys = [
        Line2D([], [], ls="", marker="o", color=VERMILLION, mfc="white", label="before weighing"),
        Line2D([], [], ls="", marker="o", color=BLUE, label="after"),
    ]
    legend(figure, keys, handle=1.2)
    return figure
