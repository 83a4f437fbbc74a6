"""Pictures over a plane of contexts: which arm they got, and how wrong estimates are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bayesbandit.checks import integer
from bayesbandit.plots.style import Picture, dot, dress, entitle, legend, look, panels, plain

SMOOTH: dict[str, Any] = {"shading": "gouraud", "rasterized": True}
WIDEST = 6  # arms side by side


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
    """Draw contexts coloured by the chosen arm, a panel for each window of rounds (paper, section
    3.1).

    x (n, 2): contexts. arm (n,): numbers of `arms`. t (n,): rounds; t ≤ 0 is the warm start.
    windows: pairs of first and last rounds, both included; or a number of windows that grow
    geometrically, with one more for the warm start. grid (m, 2): a regular grid, for two additions.
    `regions` (windows, m) shades the arm that the greedy policy picks in each window. `truth` (m,
    K), the arms' mean rewards, draws the border of the optimal assignment.
    """
    x = np.asarray(x, dtype=np.float64)
    arm = np.asarray(arm)
    t = np.asarray(t)
    if x.ndim != 2 or x.shape[1] != 2 or not len(x) or not len(x) == len(arm) == len(t):
        raise ValueError(f"wanted x (n, 2), arm (n,), t (n,); got {x.shape} {arm.shape} {t.shape}")
    if not np.isin(arm, range(len(arms))).all():
        raise ValueError(f"arm must hold indices 0..{len(arms) - 1}, got {np.unique(arm)[:9]}")
    if grid is None and not (regions is None and truth is None):
        raise ValueError("regions and truth are values over a grid, but grid is None")
    if grid is not None and truth is not None and np.shape(truth) != (len(grid), len(arms)):
        raise ValueError(f"truth must be {(len(grid), len(arms))}; got {np.shape(truth)}")
    if isinstance(windows, int | np.integer):
        spans = _windows(t, integer(windows, "windows", least=1))
    elif not (spans := list(windows)):
        raise ValueError("windows must be one at least; got none")
    if regions is not None and len(regions) != len(spans):
        raise ValueError(f"{len(regions)} regions for {len(spans)} windows {spans}")
    figure, axes = panels(len(spans), most=5, width=2.3, height=2.25)
    looks = [(own["color"], own["marker"]) for own in map(look, range(len(arms)))]
    # Arms that share a colour differ in its shade.
    shades = [to_rgba(own, 0.25 + 0.2 * (k // 7 % 4)) for k, (own, _) in enumerate(looks)]
    colours = ListedColormap(shades)
    shown = x if grid is None else np.concatenate([x, grid])
    (left, low), (right, high) = _ends(shown)
    for i, (ax, (first, last)) in enumerate(zip(axes, spans, strict=True)):
        inside = (t >= first) & (t <= last)
        area = float(np.clip(1500 / max(int(inside.sum()), 1), 4, 22))
        if grid is not None and regions is not None:
            x0, x1, picked = _mesh(grid, regions[i])
            ax.pcolormesh(x0, x1, colours(picked.astype(int)), lw=0, rasterized=True)
        if grid is not None and truth is not None:
            for k in np.unique(truth.argmax(axis=1))[:-1]:
                lead = truth[:, k] - np.delete(truth, k, axis=1).max(axis=1)
                ax.contour(*_mesh(grid, lead), [0.0], colors="black", linewidths=1.1)
        for k, (colour, marker) in enumerate(looks):
            x0, x1 = x[inside & (arm == k)].T
            ax.scatter(x0, x1, s=area, color=colour, marker=marker, lw=0, rasterized=True)
        dress(ax, f"rounds {first:,}–{last:,}" if last > 0 else "warm start", "$x_0$", "$x_1$")
        ax.set(xlim=(left, right), ylim=(low, high))
        _square(ax)
    entitle(figure, title)
    keys = [dot(*look, f"arm {name}") for look, name in zip(looks, arms, strict=True)]
    legend(figure, keys + [_border()] * (truth is not None), handle=1.2)
    return figure


def outcomes(
    grid: np.ndarray,
    truth: np.ndarray,
    arms: Sequence[str | int],
    title: str = "Expected reward of each arm",
) -> Figure:
    """Draw every arm's mean reward over a regular grid (paper, section 3.1).

    grid (m, 2), truth (m, K): the mean rewards. A black line surrounds the contexts for which an
    arm is the best.
    """
    grid, truth = np.asarray(grid, np.float64), np.asarray(truth, np.float64)
    if truth.shape != (len(grid), len(arms)):
        raise ValueError(f"wanted {(len(grid), len(arms))}, got {truth.shape}")
    lines = 1 + max(plain(f"arm {arm}", 27).count("\n") for arm in arms)
    figure, axes = panels(len(arms), most=4, width=2.6, height=2.3 + 0.2 * lines)
    low, high = truth.min(), truth.max()
    if low == high:
        low = low - (abs(low) or 1.0)
        high = high + (abs(high) or 1.0)
    scale: dict[str, Any] = {"vmin": low, "vmax": high, "cmap": "viridis"}
    for k, ax in enumerate(axes):
        image = ax.pcolormesh(*_mesh(grid, truth[:, k]), **SMOOTH, **scale)
        if len(arms) > 1:
            lead = truth[:, k] - np.delete(truth, k, axis=1).max(axis=1)
            ax.contour(*_mesh(grid, lead), [0.0], colors="black", linewidths=1.1)
        dress(ax, f"arm {arms[k]}", "$x_0$", "$x_1$")
        _square(ax)
    deep = 8 + 8 * -(-len(arms) // 4)
    figure.colorbar(image, ax=axes, shrink=0.8, aspect=deep, label="mean reward")
    entitle(figure, title)
    if len(arms) > 1:
        legend(figure, [_border("border of where the arm is best")], handle=1.2)
    return figure


def bias(
    grid: np.ndarray,
    estimated: np.ndarray,
    truth: np.ndarray,
    arms: Sequence[str | int],
    titles: Sequence[str],
    title: str = "Estimation bias over the context space",
) -> Figure:
    """Draw estimate − truth of every arm's mean reward over a regular grid.

    Rows are moments or bandits and columns are arms; with more than six arms it is the other way
    round.

    grid (m, 2), estimated (n, m, K), truth (m, K), titles: one for each of the n. White is 0, blue
    too low, red too high. Each row has one scale, from − to + the 98 % quantile of |bias| in the
    row, which its colour bar names. The paper's captions (section 3.1) do not say which sign means
    too high.
    """
    estimated, truth = np.asarray(estimated, np.float64), np.asarray(truth, np.float64)
    wanted = (len(titles), len(grid), len(arms))
    if estimated.shape != wanted or truth.shape != wanted[1:]:
        raise ValueError(f"wanted {wanted} and {wanted[1:]}, got {estimated.shape}, {truth.shape}")
    error = np.moveaxis(estimated - truth, 1, -1)  # (n, K, m)
    beside = list(titles)
    above = [f"arm {arm}" for arm in arms]
    if len(arms) > WIDEST:
        error, beside, above = error.swapaxes(0, 1), above, beside
    ends = np.quantile(np.abs(error), 0.98, axis=(1, 2))
    ends[ends == 0.0] = ends.max() or 1.0
    rows, columns = error.shape[:2]
    beside = [plain(name, 18) for name in beside]
    across = 1.9 * columns + 2.0 + 0.17 * max(name.count("\n") for name in beside)
    down = 1.9 * rows + 1.0 + 0.17 * max(plain(name, 20).count("\n") for name in above)
    figure = Picture(figsize=(max(across, 5.0), down), layout="constrained")
    axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for (i, j), ax in np.ndenumerate(axes):
        shades: dict[str, Any] = {"cmap": "RdBu_r", "vmin": -ends[i], "vmax": ends[i]}
        image = ax.pcolormesh(*_mesh(grid, error[i, j]), **SMOOTH, **shades)
        dress(ax, above[j] if i == 0 else "", "$x_0$", f"{beside[i]}\n$x_1$", inches=2.0)
        _square(ax)
        ax.label_outer()
        if j == columns - 1:
            # Part of its panel: the layout would move panels of fixed shape with bars beside them.
            bar = figure.colorbar(image, cax=ax.inset_axes((1.06, 0.1, 0.06, 0.8)), extend="both")
            end = f"{ends[i]:.2g}"
            bar.set_ticks([-ends[i], 0.0, ends[i]], labels=[f"−{end}", "0", end])
    entitle(figure, f"{title}: estimate − truth (units of reward), a scale for each row")
    return figure


def _ends(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where the axes of a map of points (n, 2) begin and end; of the same length, so that
    circles are round, unless one coordinate reaches more than twice as far as the other."""
    low, high = points.min(axis=0), points.max(axis=0)
    span = high - low
    if span.max() <= 2.0 * span.min():
        span[:] = span.max()
    half = np.where(span > 0.0, 0.53 * span, 0.5)
    return (low + high) / 2 - half, (low + high) / 2 + half


def _square(ax: Axes) -> None:
    ax.set_box_aspect(1)
    ax.locator_params("y", nbins=5, steps=[1, 2, 2.5, 5, 10])


def _border(label: str = "optimal border") -> Line2D:
    return Line2D([], [], color="black", lw=1.1, label=label)


def _mesh(grid: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the two axes of a regular grid (m, 2), and values (m,) as a table over them."""
    (x0, i), (x1, j) = (np.unique(axis, return_inverse=True) for axis in np.asarray(grid).T)
    if not len(x0) * len(x1) == len(grid) == len(values):
        seen = f"{len(values)} values, {len(grid)} points on {len(x0)} × {len(x1)} lines"
        raise ValueError(f"wanted a value at each point of a regular grid, got {seen}")
    table = np.empty((len(x1), len(x0)))
    table[j, i] = values
    return x0, x1, table


def _windows(t: np.ndarray, n: int) -> list[tuple[int, int]]:
    """Return the warm start, where there is one, and n windows of rounds that grow
    geometrically."""
    last = max(int(t.max()), 1)
    ends = np.unique(np.geomspace(last, min(10, last), n).round()).astype(int).tolist()
    spans = list(zip([1, *(end + 1 for end in ends)], ends, strict=False))
    return [(int(t.min()), 0), *spans] if t.min() <= 0 else spans
