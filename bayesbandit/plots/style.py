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
from matplotlib.text import Text

from bayesbandit.checks import Array, number, shown

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
LEAST_WIDTH, MOST_WIDTH = 1.5, 60.0  # inches of a picture
LETTER_POINTS = 10.0  # of letters
DOT_POINTS = 5.3  # of a point in a legend
SMALL_LETTERS = 0.8  # letters of a picture whose width is asked for: 8 points, as in journals
NARROWEST_PANEL = 0.75  # of a panel, as a part of its own width
BESIDE_INCHES = 1.0  # of labels beside a panel, in a picture whose width is asked for

Given = Axes | Sequence[Axes] | np.ndarray | None  # axes to draw on


class Picture(Figure):
    """A figure that notebooks show, without pyplot and its global state.

    letters: the size of its letters, as a part of 10 points.
    """

    letters = 1.0

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


def picture(
    width: float, height: float, across: float | None, least: float = LEAST_WIDTH
) -> Picture:
    """Return an empty picture.

    width, height: inches that suit it. across: the inches that are asked for, `least` or more, or
    None; the letters are then small.
    """
    if across is None:
        return Picture(figsize=(width, height), layout="constrained")
    figure = Picture(figsize=(asked(across, least), height), layout="constrained")
    figure.letters = SMALL_LETTERS
    return figure


def asked(width: float, least: float = LEAST_WIDTH) -> float:
    """Return the width of a picture, in inches; raise ValueError if it cannot be one."""
    return number(width, "width", least=least, most=MOST_WIDTH)


def panels(
    n: int,
    most: int,
    width: float,
    height: float,
    ax: Given = None,
    across: float | None = None,
) -> tuple[Figure, list[Axes]]:
    """Return a figure with n panels, at most `most` in a row, and the panels' axes.

    width, height: inches of a panel. ax: axes to draw on, n of them, in place of a new figure.
    across: inches of the figure, which then has small letters, and as many panels in a row as can
    be read; None: as wide as its panels.
    """
    if ax is not None:
        return _given(ax, n, across)
    if across is not None:
        most = max(1, min(most, int(asked(across) / (NARROWEST_PANEL * width))))
    rows = -(-n // most)
    columns = -(-n // rows)
    down = (height * rows + 0.9) * (1.0 if across is None else SMALL_LETTERS)
    figure = picture(max(width * columns, 5) + 0.3, down, across)
    return figure, [figure.add_subplot(rows, columns, i + 1) for i in range(n)]


def _given(
    ax: Axes | Sequence[Axes] | Array, n: int, across: float | None
) -> tuple[Figure, list[Axes]]:
    """Return the figure of n axes of the caller, and the axes."""
    axes = list(np.ravel(np.asarray(ax, dtype=object)))
    if len(axes) != n or not all(isinstance(one, Axes) for one in axes):
        raise ValueError(f"ax must be {n} axes, one for each panel; got {len(axes)}: {shown(ax)}")
    if across is not None:
        raise ValueError(f"width is that of a new figure, and ax has one; got width={across!r}")
    return figure_of(axes[0]), axes


def figure_of(ax: Axes) -> Figure:
    """Return the whole figure of an axes; raise ValueError if it was removed from it."""
    figure = ax.get_figure(root=True)
    if figure is None:
        raise ValueError(f"{shown(ax)} was removed from its figure")
    return figure


def letters(figure: Figure | None) -> float:
    """Return the size of a figure's letters, as a part of 10 points."""
    return figure.letters if isinstance(figure, Picture) else 1.0


def rows(names: Iterable[object]) -> tuple[list[str], Array, int]:
    """Return names as labels of rows, how far down each row is (n,), in lines of text, and the
    lines in all."""
    labels = [plain(name, BESIDE) for name in names]
    lines = np.array([1 + label.count("\n") for label in labels])
    return labels, np.cumsum(lines) - lines / 2, int(lines.sum())


def label_rows(axes: Sequence[Axes], labels: Sequence[str], down: Array, end: float) -> None:
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
        size = letters(figure)
        longest = max(len(line) for label in labels for line in label.split("\n"))
        if size == 1.0:
            figure.set_figwidth(figure.get_figwidth() + LETTER * longest)
        more: dict[int, int] = {}
        for ax in axes:
            row = 0 if (place := ax.get_subplotspec()) is None else place.rowspan.start
            lines = ax.get_title().count("\n") + ax.get_xlabel().count("\n")
            more[row] = max(more.get(row, 0), lines)
        figure.set_figheight(figure.get_figheight() + 0.17 * size * sum(more.values()))


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
    if figure.letters != 1.0:
        for text in figure.findobj(Text):
            if isinstance(text, Text):
                text.set_fontsize(figure.letters * float(text.get_fontsize()))
        for ax in figure.axes:
            ax.tick_params(labelsize=figure.letters * LETTER_POINTS)
    return figure


def entitle(figure: Figure, text: str) -> None:
    """Put a title over all panels, on as many lines as it needs."""
    figure.suptitle(fill(text, int(LETTERS_PER_INCH * figure.get_figwidth() / letters(figure))))


def dress(ax: Axes, title: str, x: str, y: str, inches: float | None = None) -> None:
    """Give a panel its title, axis labels and ticks.

    Only the first panel in a row has the label y. Labels have as many lines as they need. inches:
    the panel's width, if labels beside it take a part of its share of the figure.
    """
    place = ax.get_subplotspec()
    figure = ax.get_figure(root=True)
    size = letters(figure)
    labelled = inches is not None
    if inches is None or size < 1.0:
        inches = 6.0 if figure is None else figure.get_figwidth()
        inches /= 1 if place is None else place.get_gridspec().ncols
        inches -= BESIDE_INCHES * labelled
        inches /= size
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
    across = figure.get_figwidth() / letters(figure)
    columns = max(1, min(len(keys), int(across / (0.35 + 0.14 * handle + 0.085 * longest))))
    columns = -(-len(keys) // -(-len(keys) // columns))
    lines = sum(sorted((1 + name.count("\n") for name in names), reverse=True)[::columns])
    figure.set_figheight(
        figure.get_figheight() + LEGEND_LINE_INCHES * letters(figure) * (lines - 1)
    )
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
