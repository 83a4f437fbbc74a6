"""A bandit in production, by its log: how much it decides, and what it chooses."""

from __future__ import annotations

import pandas as pd
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bayesbandit.plots.style import dress, finish, look, panels, ruled

WIDTH, HEIGHT = 3.65, 2.9  # inches: a telephone's page is as wide


def daily(values: pd.DataFrame, label: str, title: str, top: float | None = None) -> Figure:
    """Draw a line for each column of `values` by day.

    label: that of the vertical axis, which begins at 0. top: where it ends.
    """
    figure, (panel,) = panels(1, 1, WIDTH, HEIGHT)
    figure.set_figwidth(WIDTH)
    dress(panel, "", "", label)
    ruled(panel)
    days = date2num(values.index.to_numpy())
    panel.set_xlim(days.min() - 1.0, days.max() + 1.0)
    locator = AutoDateLocator(minticks=2, maxticks=5)
    panel.xaxis.set_major_locator(locator)
    panel.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    panel.xaxis.get_offset_text().set(ha="right")
    keys: list[Line2D] = []
    for i, name in enumerate(values.columns):
        keys += panel.plot(values.index, values[name], label=str(name), ms=4, lw=1.6, **look(i))
    panel.set_ylim(0, top)
    return finish([panel], None, title, keys, handle=3)
