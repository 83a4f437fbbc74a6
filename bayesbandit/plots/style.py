"""How all pictures look: colours that the colour-blind tell apart, panels, axes, legends."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

BLUE, VERMILLION, GREY = "#0072B2", "#D55E00", "#8C8C8C"
# The colours of Okabe & Ito (Color Universal Design, 2008) without yellow, too faint on white.
PALETTE = (BLUE, VERMILLION, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)))
MARKERS = "osD^vPX*h"


def panels(n: int, most: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """A figure of n panels in even rows of at most so many, and their axes."""
    rows = -(-n // most)
    columns = -(-n // rows)
    size = (max(width * columns, 5) + 0.3, height * rows + 0.9)
    figure = Figure(figsize=size, layout="constrained")
    return figure, [figure.add_subplot(rows, columns, i + 1) for i in range(n)]


def dress(ax: Axes, title: str, x: str, y: str) -> None:
    ax.set_title(title, fontsize=10)
    place = ax.get_subplotspec()
    ax.set(xlabel=x, ylabel=y if place is None or place.is_first_col() else "")
    ax.spines[["top", "right"]].set_visible(False)
    ax.locator_params("x", nbins=5, steps=[1, 2, 2.5, 5, 10])


def legend(figure: Figure, keys: list[Line2D], handle: float) -> None:
    """One legend below all panels, in as many columns as its longest label allows."""
    inches = 0.35 + 0.14 * handle + 0.085 * max(len(str(key.get_label())) for key in keys)
    columns = max(1, min(len(keys), int(figure.get_figwidth() / inches)))
    place: dict[str, Any] = {"loc": "outside lower center", "frameon": False, "ncols": columns}
    figure.legend(handles=keys, handlelength=handle, columnspacing=1.4, **place)


def dot(colour: str, marker: str, label: str, p: float = 1e-3) -> Line2D:
    size = float(np.sqrt(area(np.array(p))))
    return Line2D([], [], ls="", color=colour, marker=marker, ms=size, mew=0, label=label)


def area(p: np.ndarray) -> np.ndarray:
    """Area of a point of significance p; NaN, no test, is as small as p = 1."""
    return 10 - 6 * np.log10(np.clip(np.nan_to_num(p, nan=1.0), 1e-12, 1))
