"""Values with intervals, in rows under each other."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from bayesbandit.plots.curves import replications
from bayesbandit.plots.style import (
    BLUE,
    GREY,
    dress,
    entitle,
    label_rows,
    panels,
    rows,
    ruled,
    words,
)

WIDTH = 3.1  # inches of a panel
ROOM_BEHIND_MOST = 0.03  # a share of a panel's width


def interval_rows(
    table: pd.DataFrame, row: str, value: str, panel: str, label: str, title: str,
    nominal: float | None = None, least: float | None = None, most: float | None = None,
) -> Figure:  # fmt: skip
    """Draw a table's values with their intervals, in rows and panels.

    value: the column with the values; their intervals are in the columns `low` and `high`, or else
    they are value ± 1.96 `value`_se. A missing value is left out. A value without an interval is a
    point. row, panel: columns whose values have a row or a panel each. nominal: where to draw a
    line, at what the values should be. least: where the panels begin; values below it are
    arrowheads at their left edge. most: where intervals end, and panels that have a `least`.
    """
    if "low" not in table and f"{value}_se" in table:
        reach = 1.96 * table[f"{value}_se"]
        high = (table[value] + reach).clip(upper=most)
        table = table.assign(low=table[value] - reach, high=high)
    if missing := [c for c in (row, value, panel, "low", "high") if c not in table.columns]:
        raise ValueError(f"the table lacks {missing}; it has {list(table.columns)}")
    names, lines = pd.unique(table[panel]).tolist(), pd.unique(table[row]).tolist()
    labels, down, end = rows(lines)
    figure, axes = panels(len(names), most=4, width=WIDTH, height=0.9 + 0.2 * end)
    for ax, name in zip(axes, names, strict=True):
        here = table[table[panel] == name].set_index(row).reindex(lines)
        middle, low, high = (here[c].to_numpy(np.float64) for c in (value, "low", "high"))
        seen = middle >= (-np.inf if least is None else least)
        ax.hlines(-down[seen], low[seen], high[seen], color=BLUE, lw=1.6)
        ax.plot(middle[seen], -down[seen], "o", color=BLUE, ms=5)
        if nominal is not None:
            ax.axvline(nominal, color=GREY, lw=1.0, zorder=1)
        if least is not None:
            ax.set_xlim(least, None if most is None else most + ROOM_BEHIND_MOST * (most - least))
            if (off := middle < least).any():
                at = np.full(off.sum(), least)
                ax.plot(at, -down[off], "<", color=BLUE, ms=6, clip_on=False)
        dress(ax, words(name), label, "", inches=WIDTH)
        ruled(ax, "x")
    label_rows(axes, labels, down, end)
    entitle(figure, title)
    return figure


def regret_rows(table: pd.DataFrame) -> Figure:
    """Draw the final regret of each bandit: its mean and 95 % interval by Student's t.

    There is a panel for each environment. table: what `evaluation.regrets` returns.
    """
    from scipy.stats import t

    reach = table["regret_se"] * t.ppf(0.975, table["replications"] - 1)
    over = replications(table["replications"])
    return interval_rows(
        table.assign(low=table["regret"] - reach, high=table["regret"] + reach),
        "bandit",
        "regret",
        "environment",
        "cumulative regret (units of reward)",
        f"Regret at the end: mean and 95 % interval over {over}",
        least=0.0,
    )
