"""Pictures of what nobody would draw: one arm and thirty, long names, ties, tiny numbers."""

import numpy as np
import pandas as pd
import pytest

from bayesbandit import plots
from bayesbandit.plots.style import look
from tests.cases import long_but
from tests.pictures import inside
from tests.test_plots import simulated

LONG = "a name of sixty signs, which is long enough to need two lines {}"
SCALES = 1e-9, 1.0, 1e9
MANY = pytest.param(range(30), marks=pytest.mark.slow)


def test_looks_differ():
    lines = {tuple(map(str, look(i).values())) for i in range(252)}
    points = {tuple(map(str, look(i, line=False).values())) for i in range(63)}
    assert (len(lines), len(points)) == (252, 63)


DRAWN = [
    plots.regret_curves, plots.propensities, plots.pairwise_scatter,
    plots.paired_differences,
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("draw", DRAWN)
@pytest.mark.parametrize("scale", SCALES)
def test_tables_of_any_units(draw, scale):
    table = simulated(2)
    figure = inside(draw(table.assign(regret=scale * table["regret"])))
    if draw is plots.pairwise_scatter:
        ax = figure.axes[1]
        points = np.concatenate([np.asarray(dots.get_offsets()) for dots in ax.collections])
        assert np.ptp(ax.get_xlim()) < 20 * np.ptp(points)


@pytest.mark.slow
@pytest.mark.parametrize("draw", DRAWN)
def test_tables_of_ties_and_long_names(draw):
    table = simulated(2).assign(regret=0.0)
    table["bandit"] = [LONG.format(name) for name in table["bandit"]]
    table["environment"] = [LONG.format(name) for name in table["environment"]]
    inside(draw(table))


@pytest.mark.slow
@pytest.mark.parametrize("n", long_but([8], [8, 12]))
def test_many_bandits_in_pairs(n):
    """The counts in the corners are beside the points, and the key within its panel."""
    one = simulated(3).query("bandit == 'UCB'")
    parts = [one.assign(bandit=LONG.format(i), regret=one["regret"] * (1 + i)) for i in range(n)]
    figure = inside(plots.pairwise_scatter(pd.concat(parts)))
    key = figure.axes[0].get_legend().get_window_extent()
    panel = figure.axes[0].get_window_extent()
    assert panel.x0 < key.x0 < key.x1 < panel.x1
    assert panel.y0 < key.y0 < key.y1 < panel.y1
    for ax in (figure.axes[n - 1], figure.axes[n * (n - 1)]):  # of the best and the worst
        counts = [text.get_window_extent() for text in ax.texts]
        for dots in ax.collections:
            for x, y in ax.transData.transform(np.asarray(dots.get_offsets())):
                assert not any(box.contains(x, y) for box in counts)


@pytest.mark.slow
def test_propensities_use_their_axes_and_say_where_none_is_known():
    table = simulated(2).assign(propensity=lambda rows: 0.95 + 0.04 * (rows["t"] % 2))
    low, high = inside(plots.propensities(table)).axes[0].get_ylim()
    assert 0.9 < low < 0.95 < 1.0 < high < 1.02
    table.loc[table["environment"] == "env 1", "propensity"] = np.nan
    one, two = inside(plots.propensities(table)).axes
    assert not one.texts
    assert [text.get_text() for text in two.texts] == ["none known"]


@pytest.mark.slow
def test_titles_name_replications_and_horizon():
    table = simulated(1, replications=4)
    for draw in (plots.paired_differences, plots.pairwise_scatter):
        title = " ".join(draw(table).get_suptitle().split())
        assert "after 40 rounds" in title
        assert "4 replications" in title
    some = table.query("replication < 2 or bandit != 'UCB'")
    assert "over 2 to 4 replications" in plots.regret_curves(some).get_suptitle()
