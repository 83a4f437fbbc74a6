"""Shares by round: a panel an environment, on one scale that ends at 1."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from bayesbandit.evaluation import curves
from bayesbandit.plots.curves import over_time
from bayesbandit.plots.style import GREY, Given


def shares_over_time(
    table: pd.DataFrame,
    column: str,
    what: str,
    label: str,
    *,
    ax: Given = None,
    title: str | None = None,
    width: float | None = None,
) -> Figure:
    """Draw mean ± standard error of shares, as `over_time`, on axes that end at 1.

    All begin above 0 if all values are above .5.
    """
    figure = over_time(table, column, what, label, ax=ax, title=title, width=width)
    points = curves(table)
    least = float((points[column] - points[f"{column}_se"].fillna(0.0)).min())
    room = max(1.0 - least, 0.05)
    limits = (1.0 - 1.1 * room, 1.0 + 0.1 * room) if least > 0.5 else (0.0, 1.03)
    names = pd.unique(points["environment"])
    panels = figure.axes if ax is None else np.ravel(np.asarray(ax, dtype=object))
    for panel, name in zip(panels, names, strict=True):
        panel.set_ylim(*limits)
        if points[column][points["environment"] == name].isna().all():
            panel.text(0.5, 0.5, "none known", ha="center", color=GREY, transform=panel.transAxes)
    return figure
