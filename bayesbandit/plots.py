"""Pictures of results and beliefs: each function returns a matplotlib `Figure`, ready to save."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bayesbandit.evaluation import RUN, check, curves, pairwise

BLUE, VERMILLION, GREY = "#0072B2", "#D55E00", "#8C8C8C"
# The colours of Okabe & Ito (Color Universal Design, 2008) without yellow, too faint on white.
PALETTE = (BLUE, VERMILLION, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)))
MARKERS = "osD^vPX*h"
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
        axes[i, 0].set_ylabel(name, fontweight="bold")
        axes[0, i].set_title(name, fontsize=10, fontweight="bold")
        axes[i, i].set_facecolor("#F2F2F2")
    axes[0, 0].set(xlim=(low - pad, high + pad), ylim=(low - pad, high + pad))
    axes[0, 0].locator_params(nbins=4, steps=[1, 2, 5, 10])
    test = f"two-sided p < {level:g}" + ", bake-off script" * bakeoff_compat
    figure.suptitle(f"Pairwise comparison, {pairs['environment'].nunique()} environments ({test})")
    figure.supxlabel("normalised regret of the column bandit", fontsize=10)
    figure.supylabel("normalised regret of the row bandit", fontsize=10)
    keys = [_dot(*OUTCOMES[outcome], outcome) for outcome in ("win", "loss", "draw")]
    keys += [_dot(GREY, "o", "p = 0.01", 1e-2), _dot(GREY, "o", "p ≤ 1e-12", 1e-12)]
    look: dict[str, Any] = {"fontsize": 9, "frameon": False, "handlelength": 0.8}
    axes[0, 0].legend(handles=keys, title="row bandit's", loc="center", **look)
    return figure


def assignment(
    x: np.ndarray,
    arm: np.ndarray,
    t: np.ndarray,
    arms: Sequence[str | int],
    windows: int | Sequence[tuple[int, int]] = 4,
    grid: np.ndarray | None = None,
    regions: np.ndarray | None = None,
    truth: np.ndarray | None = None,
    title: str = "Arm assignment in the context space",
) -> Figure:
    """Contexts coloured by the arm they got, a panel a window of rounds (the paper's section 3.1).

    x (n, 2) contexts, arm (n,) indices into `arms`, t (n,) rounds; t ≤ 0 is the warm start.
    `windows` are (first, last) rounds, both included, or a number of windows that grow
    geometrically, after one for the warm start. Over a regular `grid` (m, 2), `regions`
    (windows, m) shades the arm that the greedy policy picks in each window, and the mean rewards
    `truth` (m, K) draw the border of the optimal assignment.
    """
    x, arm, t = np.asarray(x, dtype=np.float64), np.asarray(arm), np.asarray(t)
    if x.ndim != 2 or x.shape[1] != 2 or not len(x) or not len(x) == len(arm) == len(t):
        raise ValueError(f"wanted x (n, 2), arm (n,), t (n,); got {x.shape} {arm.shape} {t.shape}")
    if not np.isin(arm, range(len(arms))).all():
        raise ValueError(f"arm must hold indices 0..{len(arms) - 1}, got {np.unique(arm)[:9]}")
    if grid is None and not (regions is None and truth is None):
        raise ValueError("regions and truth are values over a grid, but grid is None")
    spans = _windows(t, windows) if isinstance(windows, int) else list(windows)
    if regions is not None and len(regions) != len(spans):
        raise ValueError(f"{len(regions)} regions for {len(spans)} windows {spans}")
    figure, axes = _panels(len(spans), most=5, width=2.3, height=2.5)
    looks = [(PALETTE[k % 7], MARKERS[k % 9]) for k in range(len(arms))]
    colours = ListedColormap([colour for colour, _ in looks])
    shown = x if grid is None else np.asarray(grid)
    pad = 0.03 * np.ptp(shown, axis=0)
    (left, low), (right, high) = shown.min(axis=0) - pad, shown.max(axis=0) + pad
    for i, (ax, (first, last)) in enumerate(zip(axes, spans, strict=True)):
        inside = (t >= first) & (t <= last)
        area = float(np.clip(1500 / max(int(inside.sum()), 1), 4, 22))
        if grid is not None and regions is not None:
            x0, x1, picked = _mesh(grid, regions[i])
            ax.pcolormesh(x0, x1, colours(picked.astype(int), 0.25), lw=0, rasterized=True)
        if grid is not None and truth is not None:
            for k in np.unique(truth.argmax(axis=1))[:-1]:
                lead = truth[:, k] - np.delete(truth, k, axis=1).max(axis=1)
                ax.contour(*_mesh(grid, lead), [0.0], colors="black", linewidths=1.1)
        for k, (colour, marker) in enumerate(looks):
            x0, x1 = x[inside & (arm == k)].T
            ax.scatter(x0, x1, s=area, color=colour, marker=marker, lw=0, rasterized=True)
        _dress(ax, f"rounds {first:,}–{last:,}" if last > 0 else "warm start", "$x_0$", "$x_1$")
        ax.set(xlim=(left, right), ylim=(low, high), box_aspect=1)
    figure.suptitle(title)
    keys = [_dot(*look, f"arm {name}") for look, name in zip(looks, arms, strict=True)]
    border = Line2D([], [], color="black", lw=1.1, label="optimal border")
    _legend(figure, keys + [border] * (truth is not None), handle=1.2)
    return figure


def bias(
    grid: np.ndarray,
    estimated: np.ndarray,
    truth: np.ndarray,
    arms: Sequence[str | int],
    titles: Sequence[str],
    title: str = "Estimation bias over the context space",
) -> Figure:
    """Estimate − truth of every arm's mean reward: rows of moments or bandits, columns of arms.

    grid (m, 2) regular, estimated (rows, m, K), truth (m, K), a title for each row. One colour
    scale, white at 0: blue is too low, red too high; it ends at the 98 % quantile of |bias|. The
    captions of the paper (section 3.1) leave the sign open; ours is estimate − truth.
    """
    estimated, truth = np.asarray(estimated, np.float64), np.asarray(truth, np.float64)
    wanted = (len(titles), len(grid), len(arms))
    if estimated.shape != wanted or truth.shape != wanted[1:]:
        raise ValueError(f"wanted {wanted} and {wanted[1:]}, got {estimated.shape}, {truth.shape}")
    error = estimated - truth
    end = max(float(np.quantile(np.abs(error), 0.98)), 1e-12)
    rows, columns = len(titles), len(arms)
    figure = Figure(figsize=(1.9 * columns + 1.5, 1.9 * rows + 1), layout="constrained")
    axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for (i, j), ax in np.ndenumerate(axes):
        shades: dict[str, Any] = {"cmap": "RdBu_r", "vmin": -end, "vmax": end}
        image = ax.pcolormesh(*_mesh(grid, error[i, :, j]), rasterized=True, **shades)
        _dress(ax, f"arm {arms[j]}" if i == 0 else "", "$x_0$", f"{titles[i]}\n$x_1$")
        ax.set_box_aspect(1)
        ax.label_outer()
    bar = figure.colorbar(image, ax=axes, extend="both", shrink=0.8, aspect=8 + 8 * rows)
    bar.set_label("estimate − truth (units of reward)")
    figure.suptitle(title)
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
    figure, axes = _panels(len(names), most=4, width=3.1, height=2.6)
    looks: list[dict[str, Any]] = [
        {"color": PALETTE[b % 7], "linestyle": DASHES[b % 4], "marker": MARKERS[b % 9]}
        for b in range(len(bandits))
    ]
    for ax, name in zip(axes, names, strict=True):
        here = points[points["environment"] == name]
        for b, look in enumerate(looks):
            line = here[here["bandit"] == bandits[b]].sort_values("t")
            t, mean, se = (line[c].to_numpy() for c in ("t", column, f"{column}_se"))
            every = (0.05 * b % 0.2, 0.2) if len(t) > 1 else 1
            ax.plot(t, mean, lw=1.6, ms=4.5, markevery=every, **look)
            ax.fill_between(t, mean - se, mean + se, color=look["color"], alpha=0.18, lw=0)
        _dress(ax, name, clock, label)
        ax.grid(color="#E6E6E6", lw=0.6)
        ax.set(xlim=(0, None), ylim=(0, top))
    figure.suptitle(title if count == "1 replications" else f"{title}: mean ± SE over {count}")
    keys = [Line2D([], [], label=name, **look) for look, name in zip(looks, bandits, strict=True)]
    _legend(figure, keys, handle=3)
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
        x, y, area = some["column_regret"], some["row_regret"], _area(some["p"].to_numpy())
        ax.scatter(x, y, area, color=colour, marker=marker, alpha=0.65, ec="white", lw=0.4)
    won, lost = ((met["outcome"] == which).sum() for which in ("win", "loss"))
    ax.annotate(f"W {won}", (0.95, 0.05), None, "axes fraction", color=BLUE, ha="right")
    ax.annotate(f"L {lost}", (0.05, 0.95), None, "axes fraction", color="#A84600", va="top")


def _area(p: np.ndarray) -> np.ndarray:
    """Area of a point of significance p; NaN, no test, is as small as p = 1."""
    return 10 - 6 * np.log10(np.clip(np.nan_to_num(p, nan=1.0), 1e-12, 1))


def _dot(colour: str, marker: str, label: str, p: float = 1e-3) -> Line2D:
    size = float(np.sqrt(_area(np.array(p))))
    return Line2D([], [], ls="", color=colour, marker=marker, ms=size, mew=0, label=label)


def _panels(n: int, most: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """A figure of n panels in even rows of at most so many, and their axes."""
    rows = -(-n // most)
    columns = -(-n // rows)
    size = (max(width * columns, 5) + 0.3, height * rows + 0.9)
    figure = Figure(figsize=size, layout="constrained")
    return figure, [figure.add_subplot(rows, columns, i + 1) for i in range(n)]


def _dress(ax: Axes, title: str, x: str, y: str) -> None:
    ax.set_title(title, fontsize=10)
    place = ax.get_subplotspec()
    ax.set(xlabel=x, ylabel=y if place is None or place.is_first_col() else "")
    ax.spines[["top", "right"]].set_visible(False)
    ax.locator_params("x", nbins=5, steps=[1, 2, 2.5, 5, 10])


def _legend(figure: Figure, keys: list[Line2D], handle: float) -> None:
    """One legend below all panels, in as many columns as its longest label allows."""
    inches = 0.35 + 0.14 * handle + 0.085 * max(len(str(key.get_label())) for key in keys)
    columns = max(1, min(len(keys), int(figure.get_figwidth() / inches)))
    place: dict[str, Any] = {"loc": "outside lower center", "frameon": False, "ncols": columns}
    figure.legend(handles=keys, handlelength=handle, columnspacing=1.4, **place)


def _mesh(grid: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The two axes of a regular grid (m, 2), and values (m,) as a table over them."""
    (x0, i), (x1, j) = (np.unique(axis, return_inverse=True) for axis in np.asarray(grid).T)
    if not len(x0) * len(x1) == len(grid) == len(values):
        seen = f"{len(values)} values, {len(grid)} points on {len(x0)} × {len(x1)} lines"
        raise ValueError(f"wanted a value at each point of a regular grid, got {seen}")
    table = np.empty((len(x1), len(x0)))
    table[j, i] = values
    return x0, x1, table


def _windows(t: np.ndarray, n: int) -> list[tuple[int, int]]:
    """The warm start, where there is one, and n windows of rounds that grow geometrically."""
    last = max(int(t.max()), 1)
    ends = np.unique(np.geomspace(last, min(10, last), n).round()).astype(int).tolist()
    spans = list(zip([1, *(end + 1 for end in ends)], ends, strict=False))
    return [(int(t.min()), 0), *spans] if t.min() <= 0 else spans
