"""Pictures of what is learned over rounds or with the number of rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from bayesbandit.plots.curves import replications
from bayesbandit.plots.style import GREY, dress, entitle, legend, looks, panels, ruled, words


def learning_curves(
    table: pd.DataFrame,
    x: str,
    y: str,
    line: str,
    panel: str,
    x_label: str,
    y_label: str,
    title: str,
    log: bool = False,
    alike: bool = False,
    nominal: float | None = None,
) -> Figure:
    """Draw mean ± standard error of column `y` by column `x`, over the rows that share x, line and
    panel.

    line, panel: columns whose values have a line or a panel each. log: whether both axes are
    logarithmic. alike: whether all panels have one scale. nominal: the value that y should have.
    The title gives the number of rows behind a point. Panels with negative values have a line at 0.
    """
    if missing := [name for name in (x, y, line, panel) if name not in table.columns]:
        raise ValueError(f"the table lacks {missing}; it has {list(table.columns)}")
    cells = table.groupby([panel, line, x], sort=False)[y]
    points = pd.DataFrame({"mean": cells.mean(), "se": cells.sem().fillna(0.0)}).reset_index()
    names = pd.unique(table[panel]).tolist()
    styles = looks(pd.unique(table[line]).tolist())
    figure, axes = panels(len(names), most=4, width=3.1, height=2.6)
    for ax, name in zip(axes, names, strict=True):
        for value, style in styles.items():
            here = points[(points[panel] == name) & (points[line] == value)].sort_values(x)
            at, mean, se = (here[column].to_numpy() for column in (x, "mean", "se"))
            ax.plot(at, mean, lw=1.6, ms=4.5, **style)
            low = np.maximum(mean - se, 0.1 * mean) if log else mean - se
            ax.fill_between(at, low, mean + se, color=style["color"], alpha=0.18, lw=0)
        label = words(name) if isinstance(name, str) else f"{panel} = {name}"
        dress(ax, label, x_label, y_label)
        ruled(ax)
        if nominal is not None:
            ax.axhline(nominal, color=GREY, lw=1.0, zorder=1)
        if log:
            ax.set(xscale="log", yscale="log")
            for axis in (ax.xaxis, ax.yaxis):  # 100, 200, 500: no ticks that collide
                axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=8))
                axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
                axis.set_minor_locator(NullLocator())
        elif points.loc[points[panel] == name, "mean"].min() < 0.0:
            ax.axhline(0.0, color=GREY, lw=1.0, zorder=1)
        else:
            ax.set_ylim(0, None)
    if alike:
        ends = np.array([ax.get_ylim() for ax in axes])
        for ax in axes:
            ax.set_ylim(ends[:, 0].min(), ends[:, 1].max())
    count = replications(cells.count())
    one = count == "one replication"
    entitle(figure, title if one else f"{title}: mean ± SE over {count}")
    keys = [Line2D([], [], label=str(value), **style) for value, style in styles.items()]
    if nominal is not None:
        keys.append(Line2D([], [], color=GREY, lw=1.0, label=f"nominal, {nominal:g}"))
    legend(figure, keys, handle=3)
    return figure
