"""A bandit in production, by its log: how much it decides, what it chooses, and what that earns."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bayesbandit.plots.style import BLUE, dress, finish, look, panels, ruled

WIDTH, HEIGHT = 3.65, 2.9  # inches: a telephone's page is as wide
FEW_DATES = 3  # at most so many have a tick each
DAYS_BESIDE = 1.0  # days before the first and after the last of few dates
MAX_NAME_LENGTH = 32  # characters of an arm's name


def daily(values: pd.DataFrame, label: str, title: str, top: float | None = None) -> Figure:
    """Draw a line for each column of `values` by day.

    label: that of the vertical axis, which begins at 0. top: where it ends.
    """
    panel = _panel()
    _dated(panel, label, values.index)
    keys = []
    for i, name in enumerate(values.columns):
        panel.plot(values.index, values[name], ms=4, lw=1.6, **look(i))
        keys.append(Line2D([], [], label=_short(name), ms=4, **look(i)))
    panel.set_ylim(0, top)
    return finish([panel], None, title, keys, handle=3)


def weekly_values(values: pd.DataFrame) -> Figure:
    """Draw the mean reward of a decision by week, with its interval. values: `week`, `value`, `low`
    and `high`."""
    panel = _panel()
    _dated(panel, "reward a decision", values["week"])
    panel.vlines(values["week"], values["low"], values["high"], color=BLUE, lw=1.6)
    panel.plot(values["week"], values["value"], "o", color=BLUE, ms=5)
    return finish([panel], None, "Mean reward by week of the decision, with 95% intervals")


def _short(arm: object) -> str:
    name = str(arm)
    return name if len(name) <= MAX_NAME_LENGTH else f"{name[: MAX_NAME_LENGTH - 1]}…"


def _panel() -> Axes:
    """Return a panel as wide as a telephone's page."""
    figure, (panel,) = panels(1, 1, WIDTH, HEIGHT)
    figure.set_figwidth(WIDTH)
    return panel


def _dated(ax: Axes, label: str, dates: Iterable[pd.Timestamp]) -> None:
    """Dress an axis of dates. Few have a tick each, and one has no more than its days beside it."""
    dress(ax, "", "", label)
    ruled(ax)
    days = pd.DatetimeIndex([*dates])
    if 0 < len(days) <= FEW_DATES:
        at = date2num(days.to_numpy())  # in days
        ax.set_xticks(at, [f"{date:%Y-%m-%d}" for date in days])
        ax.set_xlim(at.min() - DAYS_BESIDE, at.max() + DAYS_BESIDE)
        return
    locator = AutoDateLocator(minticks=2, maxticks=5)
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    ax.xaxis.get_offset_text().set(ha="right")
