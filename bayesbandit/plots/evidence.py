"""What a log says of policies: values, differences, sample sizes, and its own probabilities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bayesbandit.checks import shown
from bayesbandit.ope import Evaluation
from bayesbandit.plots.curves import MANY
from bayesbandit.plots.differences import LOOKS, bars, compare
from bayesbandit.plots.style import (
    BLUE,
    GREY,
    Given,
    dot,
    dress,
    finish,
    label_rows,
    look,
    panels,
    plain,
    rows,
    ruled,
)

PANEL_INCHES = 5.5  # inches of a single panel
LINE_POINTS = 500  # of a line


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
    _check(result, Evaluation, "policy_values takes bb.ope.evaluate(…)")
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
    _check(result, Evaluation, "policy_contrasts takes bb.ope.evaluate(…)")
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


def value_sequences(
    result: Evaluation,
    *,
    ax: Given = None,
    title: str | None = None,
    width: float | None = None,
) -> Figure:
    """Draw the confidence sequence of each policy's value by round, a panel for each policy.

    A sequence holds at all rounds at once.
    """
    _check(result, Evaluation, "value_sequences takes bb.ope.evaluate(…)")
    table = result.sequence
    policies = [name for name in result.policies if (table["policy"] == name).any()]
    if not (names := policies[:MANY]):
        raise ValueError("no policy has a sequence yet: asymptotic ones begin with round 120")
    _, axes = panels(len(names), 4, 3.1, 2.6, ax, width)
    for panel, name in zip(axes, names, strict=True):
        sequence = table[table["policy"] == name]
        sequence = sequence.iloc[
            np.unique(np.linspace(0, len(sequence) - 1, LINE_POINTS).astype(int))
        ]
        style = look(0)
        panel.fill_between(
            sequence["round"], sequence["low"], sequence["high"], color=style["color"], alpha=0.25
        )
        if (estimate := result.estimates[name]) is not None:
            panel.axhline(estimate.value, color=GREY, lw=1.0)
        dress(panel, str(name), "round", "mean reward a round")
        ruled(panel)
    _close(axes, table[table["policy"].isin(names)])
    limit = "" if len(names) == len(policies) else f", the first {MANY} of {len(policies)} policies"
    what = f"Confidence sequences, valid at all rounds at once: {100 * result.level:g}%"
    default = f"{what}{limit}"
    keys = [
        Line2D([], [], lw=6, alpha=0.25, color=BLUE, label="sequence"),
        Line2D([], [], color=GREY, label="estimate at the end"),
    ]
    return finish(axes, title, default, keys, handle=2)


def _check(value: object, kind: type, needs: str) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{needs}; got {shown(value)}")


def _close(axes: Sequence[Axes], table: pd.DataFrame) -> None:
    """Give panels one scale, which shows the later four fifths of all sequences; the first
    intervals may be very wide."""
    late = table[table["round"] >= table["round"].max() / 5]
    low, high = late["low"].min(), late["high"].max()
    if np.isfinite([low, high]).all() and low < high:
        room = 0.1 * (high - low)
        for ax in axes:
            ax.set_ylim(low - room, high + room)


def _rows(names: pd.Index | pd.Series, ax: Given, width: float | None) -> tuple[Axes, np.ndarray]:
    """Return one panel with a row for each name, and how far down each row is."""
    labels, down, lines = rows(names)
    _, (panel,) = panels(1, 1, PANEL_INCHES, 0.9 + 0.2 * lines, ax, width)
    label_rows([panel], labels, down, lines)
    return panel, down
