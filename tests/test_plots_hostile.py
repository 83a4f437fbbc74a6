"""Pictures of what nobody would draw: one arm and thirty, long names, ties, tiny numbers."""

import numpy as np
import pytest

from bayesbandit import plots
from bayesbandit.plots.style import look
from bayesbandit_studies.pictures import propensities
from tests.pictures import inside
from tests.test_plots import simulated

LONG = "a name of sixty signs, which is long enough to need two lines {}"
SCALES = 1e-9, 1.0, 1e9
MANY = pytest.param(range(30), marks=pytest.mark.slow)


def test_looks_differ():
    lines = {tuple(map(str, look(i).values())) for i in range(252)}
    points = {tuple(map(str, look(i, line=False).values())) for i in range(63)}
    assert (len(lines), len(points)) == (252, 63)


DRAWN = [plots.regret_curves, propensities, plots.paired_differences]


@pytest.mark.slow
@pytest.mark.parametrize("draw", DRAWN)
@pytest.mark.parametrize("scale", SCALES)
def test_tables_of_any_units(draw, scale):
    table = simulated(2)
    inside(draw(table.assign(regret=scale * table["regret"])))


@pytest.mark.slow
@pytest.mark.parametrize("draw", DRAWN)
def test_tables_of_ties_and_long_names(draw):
    table = simulated(2).assign(regret=0.0)
    table["bandit"] = [LONG.format(name) for name in table["bandit"]]
    table["environment"] = [LONG.format(name) for name in table["environment"]]
    inside(draw(table))


@pytest.mark.slow
def test_propensities_use_their_axes_and_say_where_none_is_known():
    table = simulated(2).assign(propensity=lambda rows: 0.95 + 0.04 * (rows["t"] % 2))
    low, high = inside(propensities(table)).axes[0].get_ylim()
    assert 0.9 < low < 0.95 < 1.0 < high < 1.02
    table.loc[table["environment"] == "env 1", "propensity"] = np.nan
    one, two = inside(propensities(table)).axes
    assert not one.texts
    assert [text.get_text() for text in two.texts] == ["none known"]


@pytest.mark.slow
def test_titles_name_replications_and_horizon():
    table = simulated(1, replications=4)
    title = " ".join(plots.paired_differences(table).get_suptitle().split())
    assert "after 40 rounds" in title
    assert "4 replications" in title
    some = table.query("replication < 2 or bandit != 'LinUCB'")
    assert "over 2 to 4 replications" in plots.regret_curves(some).get_suptitle()
