"""Pictures of an experiment's table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bayesbandit.evaluation import RUN, check, curves, pairwise
from bayesbandit.plots.style import (
    BLUE,
    DASHES,
    GREY,
    MARKERS,
    PALETTE,
    VERMILLION,
    area,
    dot,
    dress,
    legend,
    panels,
    plain,
)

OUTCOMES = {"draw": (GREY, "D"), "loss": (VERMILLION, "^"), "win": (BLUE, "o")}
MANY = 12  # environments that still get a panel each


def regret_curves(table: pd.DataFrame) -> Figure:
    """Cumulative regret by round, mean ± standard error over replications; a panel an environment.

    More than 12 environments share one panel: regret / t against the share of the horizon played,
    mean ± standard error over environments.
    """
    if check(table)["environment"].nunique() > MANY:
        label = "regret a round (units of reward)"
        return _over_time(table, "normalised_regret", "Normalised regret", label)
    return _over_time(table, "regret", "Cumulative regret", "cumulative regret (units of reward)")


def propensities(table: pd.DataFrame) -> Figure:
    """Mean propensity of the chosen arms in each twentieth of the rounds; 1 is deterministic."""
    table = check(table)
    rounds = table.sort_values("t").groupby(RUN)["t"].diff().fillna(table["t"])
    rounds = rounds.where(table["propensity"].notna())
    part = np.ceil(20 * table["t"] / table.groupby("environment")["t"].transform("max"))
    table = table.assign(propensity=table["propensity"] * rounds, n=rounds, part=part)
    parts = table.groupby([*RUN, "part"], sort=False)
    mean = parts["propensity"].sum() / parts["n"].sum()
    table = parts.max().assign(propensity=mean).reset_index()
    return _over_time(table, "propensity", "Propensity", "propensity of chosen arm", top=1.03)


def optimal_share(table: pd.DataFrame) -> Figure:
    """Share of replications at the optimal assignment, where there are test contexts to tell."""
    table = check(table)
    tested = (table["value"].notna() | table["optimal"]).groupby(table["environment"]).any()
    if not tested.any():
        raise ValueError(f"none of {tested.index.tolist()} has test contexts to judge a policy by")
    table = table[table["environment"].isin(tested.index[tested])]
    return _over_time(table, "optimal", "Optimal assignment", "share of replications", top=1.03)


def pairwise_scatter(
    table: pd.DataFrame, bakeoff_compat: bool = False, level: float = 0.05
) -> Figure:
    """Every bandit against every other, one point an environment (the paper's section 3.2).

    x, y: normalised regret of the column's and of the row's bandit. Colour and shape are the row's
    win, loss or draw by the test of `pairwise`; the area grows with −log₁₀ p, up to p = 10⁻¹².
    """
    pairs = pairwise(table, bakeoff_compat, level)
    bandits = pd.unique(pairs["row"]).tolist()
    if (k := len(bandits)) < 2:
        raise ValueError("a pairwise comparison needs at least two bandits that met")
    low, high = pairs["row_regret"].min(), pairs["row_regret"].max()  # pairs go both ways
    pad = 0.06 * max(high - low, 0.01)
    side = min(2.6, max(1.4, 11 / k))
    figure = Figure(figsize=(side * k + 0.9, side * k + 1.1), layout="constrained")
    axes = figure.subplots(k, k, sharex=True, sharey=True, subplot_kw={"box_aspect": 1})
    for (row, column), met in pairs.groupby(["row", "column"]):
        _versus(axes[bandits.index(row), bandits.index(column)], met)
    for i, name in enumerate(bandits):
        shown = plain(name, int(9 * side))
        axes[i, 0].set_ylabel(shown, fontweight="bold")
        axes[0, i].set_title(shown, fontsize=10, fontweight="bold")
        axes[i, i].set_facecolor("#F2F2F2")
    axes[0, 0].set(xlim=(low - pad, high + pad), ylim=(low - pad, high + pad))
    axes[0, 0].locator_params(nbins=4, steps=[1, 2, 5, 10])
    test = f"two-sided p < {level:g}" + ", bake-off script" * bakeoff_compat
    figure.suptitle(f"Pairwise comparison, {pairs['environment'].nunique()} environments ({test})")
    figure.supxlabel("normalised regret of the column bandit", fontsize=10)
    figure.supylabel("normalised regret of the row bandit", fontsize=10)
    keys = [dot(*OUTCOMES[outcome], outcome) for outcome in ("win", "loss", "draw")]
    keys += [dot(GREY, "o", "p = 0.01", 1e-2), dot(GREY, "o", "p ≤ 1e-12", 1e-12)]
    look: dict[str, Any] = {"fontsize": 9, "frameon": False, "handlelength": 0.8}
    axes[0, 0].legend(handles=keys, title="row bandit's", loc="center", **look)
    return figure


def _over_time(
    table: pd.DataFrame, column: str, title: str, label: str, top: float | None = None
) -> Figure:
    """Mean ± standard error of a column of `curves`, a line a bandit, a panel an environment."""
    points = curves(table)
    bandits = pd.unique(points["bandit"])
    count, clock = f"{points['replications'].max()} replications", "round t"
    names = pd.unique(points["environment"]).tolist()
    if len(names) > MANY:
        count, clock = f"{len(names)} environments", "share of the horizon played (%)"
        points, names = _averaged(points, column), [""]
    figure, axes = panels(len(names), most=4, width=3.1, height=2.6)
    looks: list[dict[str, Any]] = [
        {"color": PALETTE[b % 7], "linestyle": DASHES[b % 4], "marker": MARKERS[b % 9]}
        for b in range(len(bandits))
    ]
    for ax, name in zip(axes, names, strict=True):
        here = points[points["environment"] == name]
        for b, look in enumerate(looks):
            line = here[here["bandit"] == bandits[b]].dropna(subset=column).sort_values("t")
            t, mean, se = (line[c].to_numpy() for c in ("t", column, f"{column}_se"))
            every = (0.05 * b % 0.2, 0.2) if len(t) > 1 else 1
            ax.plot(t, mean, lw=1.6, ms=4.5, markevery=every, **look)
            ax.fill_between(t, mean - se, mean + se, color=look["color"], alpha=0.18, lw=0)
        dress(ax, name, clock, label)
        ax.grid(color="#E6E6E6", lw=0.6)
        ax.set(xlim=(0, None), ylim=(0, top))
    figure.suptitle(title if count == "1 replications" else f"{title}: mean ± SE over {count}")
    keys = [Line2D([], [], label=name, **look) for look, name in zip(looks, bandits, strict=True)]
    legend(figure, keys, handle=3)
    return figure


def _averaged(points: pd.DataFrame, column: str) -> pd.DataFrame:
    """A column of `curves` by the share of the horizon: mean and error over environments."""
    horizon = points.groupby("environment")["t"].transform("max")
    runs = points.assign(t=100 * points["t"] / horizon).sort_values("t")
    cells = runs.groupby(["environment", "bandit"])
    times = np.linspace(cells["t"].min().max(), 100, 101)
    lines = {key: np.interp(times, run["t"], run[column]) for key, run in cells}
    shares = pd.DataFrame(lines, index=times).melt(value_name=column, ignore_index=False)
    means = shares.groupby(["variable_1", shares.index])[column].agg(["mean", "sem"]).reset_index()
    return means.set_axis(["bandit", "t", column, f"{column}_se"], axis=1).assign(environment="")


def _versus(ax: Axes, met: pd.DataFrame) -> None:
    """One panel of `pairwise_scatter`: a point an environment, and the row's wins and losses."""
    ax.axline((0, 0), slope=1, color=GREY, lw=0.7, zorder=1)
    for outcome, (colour, marker) in OUTCOMES.items():
        some = met[met["outcome"] == outcome]
        x, y, size = some["column_regret"], some["row_regret"], area(some["p"].to_numpy())
        ax.scatter(x, y, size, color=colour, marker=marker, alpha=0.65, ec="white", lw=0.4)
    won, lost = ((met["outcome"] == which).sum() for which in ("win", "loss"))
    ax.annotate(f"W {won}", (0.95, 0.05), None, "axes fraction", color=BLUE, ha="right")
    ax.annotate(f"L {lost}", (0.05, 0.95), None, "axes fraction", color="#A84600", va="top")
