"""The picture of a balance table."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bayesbandit.plots.style import (
    BLUE,
    GREY,
    VERMILLION,
    Given,
    dress,
    finish,
    label_rows,
    panels,
    rows,
)

SMALL_DIFFERENCE = 0.1  # a standardised difference that is commonly called small
PANEL_INCHES = 2.8  # inches of a panel
# What is alike before and after is a point in a ring.
BEFORE: dict[str, Any] = {"ls": "", "marker": "o", "color": VERMILLION, "mfc": "white", "ms": 7}
AFTER: dict[str, Any] = {"ls": "", "marker": "o", "color": BLUE, "ms": 4}


def balance(
    table: pd.DataFrame,
    title: str | None = None,
    *,
    ax: Given = None,
    width: float | None = None,
) -> Figure:
    """Draw the standardised mean differences of a `balance_table`, before and after weighting.

    There is a panel for each arm and a row for each feature. The feature with the largest
    difference before weighting comes first. The grey band is ± .1, which is commonly called small.
    """
    if not isinstance(table, pd.DataFrame) or list(table.index.names) != ["arm", "feature"]:
        raise TypeError(f"balance takes bb.balance_table(history); got {type(table).__name__}")
    arms = table.index.unique("arm").tolist()
    size = table["before"].abs().groupby(level="feature", sort=False).max()
    features = size.sort_values(ascending=False, kind="stable").index
    labels, down, lines = rows(features)
    _, axes = panels(len(arms), 4, PANEL_INCHES, 1.0 + 0.22 * lines, ax, width)
    end = 1.05 * max(
        float(table[["before", "after"]].abs().to_numpy().max(initial=0.0)), 2 * SMALL_DIFFERENCE
    )
    for panel, arm in zip(axes, arms, strict=True):
        here = table.loc[arm].reindex(features)
        panel.axvspan(-SMALL_DIFFERENCE, SMALL_DIFFERENCE, color="#F2F2F2", lw=0)
        panel.axvline(0.0, color=GREY, lw=0.7)
        panel.hlines(-down, here["before"], here["after"], color="#D0D0D0", lw=1)
        panel.plot(here["before"], -down, **BEFORE)
        panel.plot(here["after"], -down, **AFTER)
        n = int(here["rounds"].iloc[0])
        name = f"arm {arm} ({n:,} round{'s' * (n != 1)})"
        dress(panel, name, "difference of means (sds)", "", inches=PANEL_INCHES)
        panel.set_xlim(-end, end)
    label_rows(axes, labels, down, lines)
    keys = [
        Line2D([], [], **BEFORE, label="before weighting"),
        Line2D([], [], **AFTER, label="after"),
    ]
    what = "Balance: each arm's mean context less that of all rounds"
    return finish(axes, title, what, keys, handle=1.2)
