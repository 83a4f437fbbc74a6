"""Curves over rounds of an experiment's table: a line a bandit, a panel an environment."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bayesbandit.evaluation import curves, last
from bayesbandit.evaluation.text import span
from bayesbandit.plots.style import GREY, Given, dress, finish, looks, panels, ruled, words

MAX_PANELS = 12  # of a picture, one for each environment


def regret_curves(
    table: pd.DataFrame,
    *,
    ax: Given = None,
    title: str | None = None,
    width: float | None = None,
) -> Figure:
    """Draw cumulative regret by round: mean ± standard error over replications, a panel for each
    environment.
    """
    label = "cumulative regret (units of reward)"
    return over_time(table, "regret", "Cumulative regret", label, ax=ax, title=title, width=width)


def over_time(
    table: pd.DataFrame,
    column: str,
    what: str,
    label: str,
    *,
    ax: Given = None,
    title: str | None = None,
    width: float | None = None,
) -> Figure:
    """Draw mean ± standard error of a column of `curves`: a line for each bandit, a panel for each
    environment.

    label: the label of the vertical axes, which begin at 0 if no value is negative, and have a line
    at 0 otherwise.
    """
    points = curves(table)
    names = pd.unique(points["environment"]).tolist()
    if len(names) > MAX_PANELS:
        raise ValueError(
            f"at most {MAX_PANELS} environments have panels; got {len(names)}: draw some"
        )
    styles = looks(pd.unique(points["bandit"]))
    count = replications(points["replications"])
    rounds = pd.unique(last(table)["t"])
    many = f" of {rounds[0]:,} rounds" if len(rounds) == 1 else ""
    _, axes = panels(len(names), 4, 3.1, 2.6, ax, width)
    for panel, name in zip(axes, names, strict=True):
        points_here = points[points["environment"] == name]
        for b, (bandit, style) in enumerate(styles.items()):
            line = (
                points_here[points_here["bandit"] == bandit].dropna(subset=column).sort_values("t")
            )
            t, mean, se = (line[c].to_numpy() for c in ("t", column, f"{column}_se"))
            every = (0.05 * b % 0.2, 0.2) if len(t) > 1 else 1
            panel.plot(t, mean, lw=1.6, ms=4.5, markevery=every, **style)
            panel.fill_between(t, mean - se, mean + se, color=style["color"], alpha=0.18, lw=0)
        dress(panel, words(name), "round t", label)
        ruled(panel)
        panel.set_xlim(0, None)
        if points_here[column].min() < 0.0:
            panel.axhline(0.0, color=GREY, lw=1.0, zorder=1)
        else:
            panel.set_ylim(0.0, None)
    over = ", " if count == "one replication" else ": mean ± SE over "
    default = f"{what}{over}{count}{many}"
    keys = [Line2D([], [], label=name, **style) for name, style in styles.items()]
    return finish(axes, title, default, keys, handle=3)


def replications(counts: pd.Series) -> str:
    """Return the number of replications as words for a title. counts: one for each line."""
    return "one replication" if counts.max() == 1 else f"{span(counts)} replications"


def horizon(table: pd.DataFrame) -> str:
    """Return the rounds after which the runs of a table end, as words for a title."""
    return f"after {span(last(table)['t'])} rounds"
