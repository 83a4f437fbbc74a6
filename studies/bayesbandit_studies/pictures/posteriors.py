"""Pictures of posteriors: densities, and intervals of many coefficients side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bayesbandit.plots.style import BESIDE, GREY, dress, entitle, legend, look, panels, plain

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from bayesbandit.beliefs.linear_posterior import LinearPosterior
    from bayesbandit.posteriors.posterior import Posterior

ENDS = 0.003, 0.997  # probabilities where the axis of a density ends
POINTS = 301  # of a curve, by quantile and by place each
LEVELS = 0.5, 0.9  # of intervals, thick and thin
ROW = 0.16  # inches of an interval
MOST = 24  # panels of densities
NONE = "a picture of posteriors needs one at least; got none"

Truth = Mapping[str, Any]


def densities(
    posteriors: Mapping[str, Any],
    variables: Sequence[str] | None = None,
    truth: Truth | None = None,
    title: str = "Posterior densities",
) -> Figure:
    """Draw the posterior density of each element of each variable, a line for each posterior.

    posteriors: those of `bb.fit` or `bandit.posterior`, by name. A closed form is drawn exactly.
    Draws get a kernel density estimate, which the legend says. variables: names; None: those that
    all posteriors have. truth: the true values (*shape), by name.
    """
    names = _common(posteriors) if variables is None else list(variables)
    elements = [one for name in names for one in _elements(posteriors, name)]
    if len(elements) > MOST:
        raise ValueError(
            f"densities draws at most {MOST} elements; {', '.join(names)} have {len(elements)}"
        )
    figure, axes = panels(len(elements), most=4, width=2.6, height=2.0)
    looks = [look(i) for i in range(len(posteriors))]
    for ax, (name, index, label) in zip(axes, elements, strict=True):
        drawn = [_density(posterior, name, index) for posterior in posteriors.values()]
        low = min(x[0] for x, _ in drawn)
        high = max(x[-1] for x, _ in drawn)
        for (x, y), own in zip(drawn, looks, strict=True):
            ax.plot(x, y, lw=1.6, color=own["color"], ls=own["linestyle"])
        if truth is not None and name in truth:
            at = float(_true(truth[name], posteriors, name)[index])
            ax.axvline(at, color="black", lw=0.9, zorder=1)
            low, high = min(low, at), max(high, at)
        dress(ax, label, "", "density")
        pad = 0.02 * (high - low) or 0.5
        ax.set(xlim=(low - pad, high + pad), ylim=(0, None))
    entitle(figure, title)
    keys = [
        Line2D([], [], color=own["color"], ls=own["linestyle"], label=name + _by(posterior))
        for (name, posterior), own in zip(posteriors.items(), looks, strict=True)
    ]
    legend(figure, keys + _truth_key(truth, names), handle=2.5)
    return figure


def coefficients(
    posteriors: Mapping[str, Any],
    variable: str = "theta",
    select: Sequence[int] | None = None,
    truth: ArrayLike | None = None,
    title: str | None = None,
) -> Figure:
    """Draw medians with 50 % and 90 % intervals of a variable's elements, side by side for each
    posterior.

    posteriors: as in `densities`. select: the positions of some elements; None: all. truth: the
    variable's true values (*shape).
    """
    elements = [*_elements(posteriors, variable)]
    at = range(len(elements)) if select is None else list(select)
    if not at or not all(-len(elements) <= i < len(elements) for i in at):
        raise ValueError(
            f"select must be positions of the {len(elements)} elements of {variable!r}, one at "
            f"least; got {select!r}"
        )
    chosen = [elements[i] for i in at]
    n = len(posteriors)
    labels = [plain(label, BESIDE) for _, _, label in chosen]
    # Inches of the rows: of the intervals, or of the lines of a name where these need more.
    tall = np.array([max(ROW * n + 0.12, 0.2 * (1 + label.count("\n"))) for label in labels])
    place = tall / 2 - np.cumsum(tall)
    end = float(tall.sum())
    figure, (ax,) = panels(1, most=1, width=6.2, height=0.7 + end)
    tails = sorted(0.5 + side * level / 2 for level in LEVELS for side in (-1, 1))
    looks = [look(i) for i in range(n)]
    for j, (posterior, own) in enumerate(zip(posteriors.values(), looks, strict=True)):
        q = posterior.quantiles(variable, [tails[0], tails[1], 0.5, tails[2], tails[3]])
        low, lower, middle, upper, high = (
            np.array([row[index] for _, index, _ in chosen]) for row in q
        )
        y = place + ROW * ((n - 1) / 2 - j)
        ax.hlines(y, low, high, color=own["color"], lw=1.0)
        ax.hlines(y, lower, upper, color=own["color"], lw=2.6)
        ax.plot(middle, y, ls="", marker=own["marker"], color=own["color"], ms=6, mec="white")
    if truth is not None:
        known = _true(truth, posteriors, variable)
        values = np.array([known[index] for _, index, _ in chosen])
        ax.vlines(values, place - 0.42 * tall, place + 0.42 * tall, color="black", lw=1.4)
    dress(ax, "", "median, 50 % and 90 % intervals", "")
    ax.axvline(0.0, color=GREY, lw=0.9, zorder=0)
    ax.set_yticks(place, labels)
    ax.set_ylim(-end, 0.0)
    ax.tick_params("y", length=0)
    for edge in np.cumsum(tall)[:-1]:
        ax.axhline(-edge, color="#EDEDED", lw=0.6, zorder=0)
    entitle(figure, title or f"Posterior of {variable}")
    keys = [
        Line2D([], [], color=own["color"], marker=own["marker"], label=name, mec="white", lw=2)
        for name, own in zip(posteriors, looks, strict=True)
    ]
    named = None if truth is None else {variable: truth}
    legend(figure, keys + _truth_key(named, [variable]), handle=2)
    return figure


def shrinkage(
    posteriors: Mapping[str, Any],
    raw: ArrayLike,
    groups: Mapping[str, Any] | None = None,
    variable: str = "theta",
    axis: str = "least squares",
    title: str = "What each prior shrinks",
) -> Figure:
    """Draw posterior means of a variable's elements against raw estimates, a panel for each
    posterior.

    On the diagonal nothing is shrunk. raw: the estimates (*shape). groups: masks (*shape) by name,
    of elements that get a colour.
    """
    if not posteriors:
        raise ValueError(NONE)
    raw = np.asarray(raw, dtype=np.float64)
    figure, axes = panels(len(posteriors), most=5, width=2.2, height=2.2)
    groups = {"": np.ones(raw.shape, dtype=bool)} if groups is None else groups
    looks = [look(i) for i in range(len(groups))]
    means = []
    for name, posterior in posteriors.items():
        mean = np.asarray(posterior.coefficients[variable][0])
        if mean.shape != raw.shape:
            raise ValueError(
                f"raw must be {mean.shape}, as {variable!r} of {name}; got {raw.shape}"
            )
        means.append(mean)
    low, high = min(raw.min(), *map(np.min, means)), max(raw.max(), *map(np.max, means))
    ends = low - 0.05 * (high - low), high + 0.05 * (high - low)
    for ax, name, mean in zip(axes, posteriors, means, strict=True):
        ax.axhline(0.0, color=GREY, lw=0.6, zorder=0)
        ax.axline((0, 0), slope=1, color=GREY, lw=0.8, zorder=0)
        for some, own in zip(groups.values(), looks, strict=True):
            which = np.broadcast_to(some, raw.shape)
            ax.plot(
                raw[which],
                mean[which],
                ls="",
                ms=3.5,
                mew=0,
                alpha=0.8,
                color=own["color"],
                marker=own["marker"],
            )
        dress(ax, name, axis, "posterior mean")
        ax.set(xlim=ends, ylim=ends, box_aspect=1)
    entitle(figure, title)
    keys = [
        Line2D([], [], ls="", color=own["color"], marker=own["marker"], mew=0, label=name)
        for name, own in zip(groups, looks, strict=True)
    ]
    if list(groups) != [""]:
        legend(figure, keys, handle=1.2)
    return figure


def _true(values: ArrayLike, posteriors: Mapping[str, Any], name: str) -> np.ndarray:
    """Return a variable's true values (*shape); raise ValueError if the shape is another one."""
    array = np.asarray(values, dtype=np.float64)
    shape = np.shape(next(iter(posteriors.values())).quantiles(name, [0.5])[0])
    if array.shape != shape:
        raise ValueError(f"the truth of {name!r} must be {shape}; got {array.shape}")
    return array


def _truth_key(truth: Truth | None, names: Sequence[str]) -> list[Line2D]:
    if truth is None or not set(truth) & set(names):
        return []
    return [Line2D([], [], ls="", marker="|", color="black", ms=10, label="truth")]


def _by(posterior: Posterior) -> str:
    """Return how a line came about, where it is not the density itself."""
    return "" if posterior.marginals else f" ({_count(posterior):,} draws)"


def _count(posterior: Posterior) -> int:
    return len(next(iter(posterior.draws.values())))


def _common(posteriors: Mapping[str, Any]) -> list[str]:
    """Return the variables that all have, in order."""
    if not posteriors:
        raise ValueError(NONE)
    first, *others = (list(p.marginals or p.draws) for p in posteriors.values())
    return [name for name in first if all(name in other for other in others)]


def _elements(
    posteriors: Mapping[str, Any], name: str
) -> Iterator[tuple[str, tuple[int, ...], str]]:
    """Yield for each element of a variable its name, index and label; features by their names."""
    if not posteriors:
        raise ValueError(NONE)
    shapes = {np.shape(p.quantiles(name, [0.5])[0]) for p in posteriors.values()}
    if len(shapes) > 1:
        raise ValueError(f"{name!r} has different shapes: {sorted(shapes)}")
    [shape] = shapes
    posterior = next(iter(posteriors.values()))
    features = _features(posterior)
    for index in np.ndindex(shape):
        words = [str(i) for i in index]
        if index and features is not None and len(features) == shape[-1]:
            words[-1] = str(features[index[-1]])
        yield name, index, name + (f"[{', '.join(words)}]" if words else "")


def _features(posterior: Posterior | LinearPosterior) -> Sequence[Any] | None:
    """Return the names of the features, where they are known."""
    from bayesbandit.posteriors.posterior import Posterior

    if posterior.encoder is not None:
        return posterior.encoder.features
    return posterior.features if isinstance(posterior, Posterior) else None


def _density(
    posterior: Posterior, name: str, index: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the points (m,) of a curve, where it is steep by quantile, and its heights."""
    exact = posterior.marginals.get(name)
    if exact is not None:
        p = np.linspace(*ENDS, POINTS)
        at = np.stack([np.asarray(exact.ppf(one))[index] for one in p])
        x = np.unique(np.concatenate([at, np.linspace(at[0], at[-1], POINTS)]))
        height = exact.pdf(x.reshape(-1, *(1,) * len(index)))
        return x, np.array([row[index] for row in np.asarray(height)])
    from scipy.stats import gaussian_kde

    values = np.array([draw[index] for draw in posterior.draws[name]])
    low, high = np.quantile(values, ENDS)
    x = np.linspace(low, high, POINTS)
    return x, gaussian_kde(values)(x)
