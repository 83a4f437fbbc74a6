"""The style of all pictures: colours that colour-blind people can distinguish, panels, legends."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from io import BytesIO
from textwrap import fill
from typing import Any, Literal
from zlib import crc32

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bayesbandit.checks import shown

BLUE, VERMILLION, GREY = "#0072B2", "#D55E00", "#8C8C8C"
# The colours of Okabe & Ito (Color Universal Design, 2008) without yellow, too faint on white.
PALETTE = (BLUE, VERMILLION, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)))
MARKERS = "osD^vPX*h"
LOOKS = len(PALETTE) * len(MARKERS) * len(DASHES)
PRESETS = (
    "LinTS", "LinUCB", "BLTS", "BLUCB", "LinGreedy", "PolicyTreeTS", "PolicyTreeUCB",
    "ForestTS", "ForestUCB", "BayesianLassoTS", "BayesianLassoUCB", "BootstrapLassoTS",
    "BootstrapLassoUCB", "BootstrapRidgeTS", "BootstrapRidgeUCB",
)  # fmt: skip
# The look of a bandit by number, and the words for an environment by a pattern of its name, in all
# pictures. A publication adds its own.
KNOWN = {name: i for i, name in enumerate(PRESETS)}
DESIGNS: dict[str, str] = {}

MAX_LEGEND_LENGTH = 50  # characters of a name on one line of a legend
BESIDE, LETTER = 24, 0.08  # characters of a row's name on one line, and inches of one
VERTICAL_LABEL_LENGTH = 24  # characters of a vertical label on one line: no panel is lower
LETTERS_PER_INCH = 10  # of a figure's title to the inch
NOTEBOOK_DPI = 80  # of pictures in a notebook
LEGEND_LINE_INCHES = 0.24  # inches, of a legend
DOT_POINTS = 5.3  # of a point in a legend

Given = Axes | Sequence[Axes] | np.ndarray | None  # axes to draw on


class Picture(Figure):
    """A figure that notebooks show, without pyplot and its global state."""

    def _repr_png_(self) -> bytes:
        file = BytesIO()
        self.savefig(file, format="png", dpi=NOTEBOOK_DPI)
        return file.getvalue()


def look(i: int, line: bool = True) -> dict[str, Any]:
    """Return colour, marker and dashes of the bandit, arm or posterior number i.

    The first 252 differ; of points, which have no line, the first 63.
    """
    dashes = DASHES[i % len(DASHES)] if line else ""
    return {"color": PALETTE[i % 7], "marker": MARKERS[i % 9], "linestyle": dashes}


def looks(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return a look for each name, which is the same in all pictures.

    `KNOWN` or the name itself decides it. If two names of a picture get the same look, the later
    one takes the next look.
    """
    number_of: dict[str, int] = {}
    for name in names:
        i = KNOWN.get(name)
        if i is None or i in number_of.values():
            left = sorted({*range(LOOKS)} - {*KNOWN.values()})
            at = crc32(str(name).encode()) % len(left)
            i = next((i for i in left[at:] + left[:at] if i not in number_of.values()), left[at])
        number_of[name] = i
    return {name: look(i) for name, i in number_of.items()}


def words(environment: object) -> str:
    """Return an environment's name, or what `DESIGNS` calls it."""
    name = str(environment)
    for pattern, text in DESIGNS.items():
        if match := re.fullmatch(pattern, name):
            return match.expand(text)
    return name


def plain(name: object, width: int = 0) -> str:
    """Return a name as plain text, in which "$" does not begin mathematics.

    width: the longest line; 0: one line.
    """
    text = " ".join(str(name).split()) or repr(name)
    return (fill(text, width) if width else text).replace("$", r"\$")


def panels(
    n: int,
    most: int,
    width: float,
    height: float,
    ax: Given = None,
) -> tuple[Figure, list[Axes]]:
    """Return a figure with n panels, at most `most` in a row, and the panels' axes.

    width, height: inches of a panel. ax: axes to draw on, n of them, in place of a new figure.
    """
    if ax is not None:
        axes = list(np.ravel(np.asarray(ax, dtype=object)))
        if len(axes) != n or not all(isinstance(one, Axes) for one in axes):
            raise ValueError(
                f"ax must be {n} axes, one for each panel; got {len(axes)}: {shown(ax)}"
            )
        return figure_of(axes[0]), axes
    rows = -(-n // most)
    columns = -(-n // rows)
    size = max(width * columns, 5) + 0.3, height * rows + 0.9
    figure = Picture(figsize=size, layout="constrained")
    return figure, [figure.add_subplot(rows, columns, i + 1) for i in range(n)]


def figure_of(ax: Axes) -> Figure:
    """Return the whole figure of an axes; raise ValueError if it was removed from it."""
    figure = ax.get_figure(root=True)
    if figure is None:
        raise ValueError(f"{shown(ax)} was removed from its figure")
    return figure


def rows(names: Iterable[object]) -> tuple[list[str], np.ndarray, int]:
    """Return names as labels of rows, how far down each row is (n,), in lines of text, and the
    lines in all."""
    labels = [plain(name, BESIDE) for name in names]
    lines = np.array([1 + label.count("\n") for label in labels])
    return labels, np.cumsum(lines) - lines / 2, int(lines.sum())


def label_rows(axes: Sequence[Axes], labels: Sequence[str], down: np.ndarray, end: float) -> None:
    """Label the rows of panels; only the first panel in a row of panels has labels.

    down: how far down each row is. end: where the rows end, both in lines of text. The figure grows
    with the labels, and with the lines of titles and axis labels.
    """
    for ax in axes:
        first = (place := ax.get_subplotspec()) is None or place.is_first_col()
        ax.set_yticks(-down, labels if first else [""] * len(labels))
        ax.tick_params("y", length=0)
        ax.set_ylim(-end, 0.0)
    if isinstance(figure := axes[0].get_figure(root=True), Picture):
        longest = max(len(line) for label in labels for line in label.split("\n"))
        figure.set_figwidth(figure.get_figwidth() + LETTER * longest)
        more: dict[int, int] = {}
        for ax in axes:
            row = 0 if (place := ax.get_subplotspec()) is None else place.rowspan.start
            lines = ax.get_title().count("\n") + ax.get_xlabel().count("\n")
            more[row] = max(more.get(row, 0), lines)
        figure.set_figheight(figure.get_figheight() + 0.17 * sum(more.values()))


def finish(
    axes: Sequence[Axes],
    title: str | None,
    default: str,
    keys: Sequence[Line2D] = (),
    handle: float = 2.0,
) -> Figure:
    """Give panels their title and legend, and return their figure.

    title: None: the default; "": none. On axes of the caller there is a title only where it is
    asked for, and the legend is on the last of them.
    """
    figure = figure_of(axes[0])
    if not isinstance(figure, Picture):
        if title and len(axes) == 1:
            axes[0].set_title(title)
        elif title:
            figure.suptitle(title)
        if keys:
            axes[-1].legend(handles=list(keys), handlelength=handle, frameon=False)
        return figure
    if above := default if title is None else title:
        entitle(figure, above)
    if keys:
        legend(figure, list(keys), handle)
    return figure


def entitle(figure: Figure, text: str) -> None:
    """Put a title over all panels, on as many lines as it needs."""
    figure.suptitle(fill(text, int(LETTERS_PER_INCH * figure.get_figwidth())))


def dress(ax: Axes, title: str, x: str, y: str, inches: float | None = None) -> None:
    """Give a panel its title, axis labels and ticks.

    Only the first panel in a row has the label y. Labels have as many lines as they need. inches:
    the panel's width, if labels beside it take a part of its share of the figure.
    """
    place = ax.get_subplotspec()
    if inches is None:
        inches = figure_of(ax).get_figwidth() / (1 if place is None else place.get_gridspec().ncols)
    ax.set_title(plain(title, int(10.5 * inches)) if title else "", fontsize=10)
    beside = place is None or place.is_first_col()
    lines = (y.replace(" (", "\n(") if len(y) > VERTICAL_LABEL_LENGTH else y).split("\n")
    upright = "\n".join(fill(line, VERTICAL_LABEL_LENGTH) for line in lines)
    ax.set(xlabel=fill(x, int(LETTERS_PER_INCH * inches)), ylabel=upright if beside else "")
    ax.spines[["top", "right"]].set_visible(False)
    ax.locator_params("x", nbins=5, steps=[1, 2, 2.5, 5, 10])
    ax.xaxis.get_offset_text().set(x=1.0, ha="left")  # a power of ten, beside the label of the axis


def ruled(ax: Axes, axis: Literal["both", "x"] = "both") -> None:
    """Draw a pale grid, behind all that is drawn."""
    ax.grid(axis=axis, color="#E6E6E6", lw=0.6)
    ax.set_axisbelow(True)


def legend(figure: Figure, keys: list[Line2D], handle: float) -> None:
    """Put one legend below all panels, with as many columns as its longest label allows.

    The figure grows with the lines of the legend.
    """
    names = [plain(key.get_label(), MAX_LEGEND_LENGTH) for key in keys]
    longest = max(len(line) for name in names for line in name.split("\n"))
    columns = max(
        1, min(len(keys), int(figure.get_figwidth() / (0.35 + 0.14 * handle + 0.085 * longest)))
    )
    columns = -(-len(keys) // -(-len(keys) // columns))
    lines = sum(sorted((1 + name.count("\n") for name in names), reverse=True)[::columns])
    figure.set_figheight(figure.get_figheight() + LEGEND_LINE_INCHES * (lines - 1))
    place: dict[str, Any] = {"loc": "outside lower center", "frameon": False, "ncols": columns}
    # Matplotlib leaves out labels that begin with "_": the texts are set afterwards.
    drawn = figure.legend(
        keys, map(str, range(len(keys))), handlelength=handle, columnspacing=1.4, **place
    )
    for text, name in zip(drawn.get_texts(), names, strict=True):
        text.set_text(name)


def dot(colour: str, marker: str, label: str, size: float = DOT_POINTS) -> Line2D:
    """Return a point of a legend."""
    return Line2D([], [], ls="", color=colour, marker=marker, ms=size, mew=0, label=label)
