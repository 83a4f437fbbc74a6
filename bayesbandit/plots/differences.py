"""Paired differences between bandits, with intervals."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import stdtrit

from bayesbandit.checks import Array, one_of
from bayesbandit.evaluation import check, differences, ranking
from bayesbandit.plots.curves import horizon, replications
from bayesbandit.plots.style import (
    BLUE,
    GREY,
    VERMILLION,
    Given,
    dot,
    dress,
    finish,
    label_rows,
    panels,
    plain,
    rows,
    ruled,
    words,
)

CONFIDENCE_LEVEL = 0.95
PANEL_INCHES = 3.1  # inches of a panel
LOOKS = {
    1: (BLUE, "o", "better than"),
    -1: (VERMILLION, "^", "worse than"),
    0: (GREY, "D", "not told apart from"),
}


def paired_differences(
    table: pd.DataFrame,
    reference: str | None = None,
    *,
    ax: Given = None,
    title: str | None = None,
    width: float | None = None,
) -> Figure:
    """Draw each bandit's regret at the end above a reference's: mean and 95 % interval over
    replications.

    Intervals are Student's t for paired differences, and are not adjusted for their number. There
    is a panel for each environment. At least two replications are needed.

    reference: a bandit's name; None: the bandit with the least normalised regret over the
    environments.
    """
    bandits = pd.unique(check(table)["bandit"]).tolist()
    reference = str(ranking(table)["bandit"].iloc[0]) if reference is None else reference
    one_of(reference, "the reference", bandits)
    others = [name for name in bandits if name != reference]
    gaps = differences(table, [(name, reference) for name in others])
    if gaps.empty:
        raise ValueError("no pair of bandits met in two replications or more")
    names = pd.unique(gaps["environment"]).tolist()
    labels, down, lines = rows(others)
    _, axes = panels(len(names), 4, PANEL_INCHES, 0.9 + 0.2 * lines, ax, width)
    for panel, name in zip(axes, names, strict=True):
        panel_gaps = gaps[gaps["environment"] == name].set_index("one").reindex(others)
        mean, se, n = (
            panel_gaps[c].to_numpy(np.float64) for c in ("difference", "se", "replications")
        )
        reach = se * stdtrit(n - 1, 0.5 + CONFIDENCE_LEVEL / 2)
        compare(panel, down, mean, mean - reach, mean + reach, np.abs(mean) > reach, -1)
        dress(
            panel, words(name), plain(f"regret above that of {reference}"), "", inches=PANEL_INCHES
        )
        ruled(panel, "x")
    label_rows(axes, labels, down, lines)
    over = f"mean and {CONFIDENCE_LEVEL:.0%} interval over {replications(gaps['replications'])}"
    default = f"Paired differences of regret {horizon(table)}: {over}"
    keys = [dot(colour, marker, f"{name} {reference}") for colour, marker, name in LOOKS.values()]
    return finish(axes, title, default, keys, handle=1)


def compare(
    ax: Axes, down: Array, value: Array, low: Array, high: Array,
    sure: Array, better: int,
) -> None:  # fmt: skip
    """Draw differences with their intervals in rows, and a line at 0.

    (n,) each; down: how far down rows are. sure: whether a difference is told apart from 0. better:
    its sign where the row is better, 1 or −1. Rows with NaN are not drawn.
    """
    sign = np.where(np.isnan(low), np.nan, better * np.sign(value) * sure)
    for which, (colour, marker, _) in LOOKS.items():
        in_group = sign == which
        bars(ax, down[in_group], value[in_group], low[in_group], high[in_group], colour, marker)
    ax.axvline(0.0, color="black", lw=0.9, zorder=1)


def bars(
    ax: Axes, down: Array, value: Array, low: Array, high: Array, colour: str,
    marker: str,
) -> None:  # fmt: skip
    """Draw values with their intervals in rows, (n,) each."""
    reach = [value - low, high - value]
    ax.errorbar(value, -down, xerr=reach, fmt=marker, color=colour, ms=5, lw=1.8)
