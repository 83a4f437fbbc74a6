"""What a log says of policies: values, differences, sample sizes, and its own probabilities."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bayesbandit.checks import Array, shown
from bayesbandit.ope import Evaluation
from bayesbandit.plots.differences import LOOKS, bars, compare
from bayesbandit.plots.style import (
    BLUE,
    GREY,
    Given,
    dot,
    dress,
    finish,
    label_rows,
    panels,
    plain,
    rows,
    ruled,
)

PANEL_INCHES = 5.5  # inches of a single panel


def policy_values(
    result: Evaluation,
    *,
    ax: Given = None,
    title: str | None = None,
    width: float | None = None,
) -> Figure:
    """Draw estimated values with their intervals, a row for each policy.

    A policy whose interval is refused is grey, without an interval.
    """
    _check(result, "policy_values")
    value, low, high = result.table[["estimate", "low", "high"]].to_numpy(np.float64).T
    panel, down = _rows(result.table.index, ax, width)
    has_interval = ~np.isnan(low)
    bars(panel, down, value, low, high, BLUE, "o")
    panel.plot(value[~has_interval], -down[~has_interval], "D", color=GREY, ms=5)
    dress(panel, "", "mean reward a round", "", inches=PANEL_INCHES)
    ruled(panel, "x")
    default = f"What policies would have earned: {100 * result.level:g}% intervals"
    keys = [dot(BLUE, "o", "estimate and interval"), dot(GREY, "D", "interval refused")]
    return finish([panel], title, default, keys[: 1 + int(not has_interval.all())], handle=1)


def policy_contrasts(
    result: Evaluation,
    against: str | int,
    *,
    ax: Given = None,
    title: str | None = None,
    width: float | None = None,
) -> Figure:
    """Draw how much more each policy earns than one of them, by paired scores.

    Thick lines are intervals for one difference. Thin lines hold for all differences at once.
    """
    _check(result, "policy_contrasts")
    table = result.contrasts(against)
    if table.empty:
        raise ValueError(f"no policy to compare with {against!r}: no other one has an estimate")
    panel, down = _rows(table["one"], ax, width)
    columns = ["difference", "low", "high", "low_all", "high_all"]
    value, low, high, low_all, high_all = table[columns].to_numpy(np.float64).T
    compare(panel, down, value, low, high, (low_all > 0) | (high_all < 0), better=1)
    panel.hlines(-down, low_all, high_all, color="black", lw=0.8, zorder=1)
    refused = np.isnan(low)
    panel.plot(value[refused], -down[refused], "x", color=GREY, ms=5)
    dress(panel, "", plain(f"mean reward a round above that of {against}"), "", inches=PANEL_INCHES)
    ruled(panel, "x")
    default = f"Paired differences: {100 * result.level:g}% intervals, thin: all at once"
    keys = [dot(colour, marker, f"{what} {against}") for colour, marker, what in LOOKS.values()]
    return finish([panel], title, default, keys, handle=1)


def _check(value: object, picture: str) -> None:
    if not isinstance(value, Evaluation):
        raise TypeError(f"{picture} takes bb.ope.evaluate(…); got {shown(value)}")


def _rows(names: pd.Index | pd.Series, ax: Given, width: float | None) -> tuple[Axes, Array]:
    """Return one panel with a row for each name, and how far down each row is."""
    labels, down, lines = rows(names)
    _, (panel,) = panels(1, 1, PANEL_INCHES, 0.9 + 0.2 * lines, ax, width)
    label_rows([panel], labels, down, lines)
    return panel, down
