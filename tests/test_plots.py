"""The pictures say what they show: titles, units, legends, and they render."""

from __future__ import annotations

import io
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_rgb
from scipy import stats

from bayesbandit import plots
from bayesbandit.evaluation import SCHEMA, ranking
from bayesbandit.plots import style
from tests.pictures import inside

BANDITS = ("LinTS", "BLTS", "LinUCB")


def propensities(*table, **settings):
    """The studies' picture; its tests are skipped where they are not installed."""
    return pytest.importorskip("bayesbandit_studies.pictures").propensities(*table, **settings)


def simulated(environments, tested=True, replications=3):
    """Classification runs of three bandits over horizons that differ between environments."""
    rng = np.random.default_rng(0)
    runs = []
    for e in range(environments):
        horizon = 40 + 10 * e
        t = np.linspace(horizon / 10, horizon, 10).astype(int)
        for b, bandit in enumerate(BANDITS):
            for replication in range(replications):
                regret = np.cumsum(rng.random(horizon) < 0.15 * (1 + b))[t - 1].astype(float)
                run = pd.DataFrame({"environment": f"env {e}", "bandit": bandit, "t": t})
                run["replication"], run["regret"], run["reward"] = replication, regret, t - regret
                run["value"] = 0.9 if tested else np.nan
                run["optimal"] = tested & (t > 5 * (b + replication))
                runs.append(run.assign(propensity=0.8, agreement=run["value"]))
    return pd.concat(runs, ignore_index=True)[list(SCHEMA)].astype(SCHEMA)


def rendered(figure):
    """The figure, after it has proved to draw as a PNG of some content."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=40)
    assert file.getvalue().startswith(b"\x89PNG")
    assert len(file.getvalue()) > 2000
    return figure


def spoken(text):
    """On one line."""
    return " ".join(text.split())


def legend(figure):
    found = figure.legends + [ax.get_legend() for ax in figure.axes if ax.get_legend()]
    return [text.get_text() for box in found for text in box.get_texts()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "label"),
    [
        (plots.regret_curves, "cumulative regret (units of reward)"),
        (propensities, "propensity of chosen arm"),
    ],
)
def test_curves_over_rounds(draw, label):
    figure = rendered(draw(simulated(5)))
    assert "mean ± SE over 3 replications" in figure.get_suptitle()
    assert [ax.get_title() for ax in figure.axes] == [f"env {e}" for e in range(5)]
    assert spoken(figure.axes[0].get_ylabel()) == label
    assert {ax.get_xlabel() for ax in figure.axes} == {"round t"}
    assert legend(figure) == list(BANDITS)
    assert all(len(ax.lines) == len(ax.collections) == 3 for ax in figure.axes)
    for ax in figure.axes:
        assert len({line.get_color() for line in ax.lines}) == 3
        assert len({line.get_marker() for line in ax.lines}) == 3


def test_the_curve_is_the_mean_regret():
    table = simulated(1)
    line = plots.regret_curves(table).axes[0].lines[2]
    mean = table[table["bandit"] == "LinUCB"].groupby("t")["regret"].mean()
    np.testing.assert_array_equal(line.get_xdata(), mean.index)
    np.testing.assert_allclose(line.get_ydata(), mean)


def test_propensities_are_means_over_rounds():
    """Twentieths of the rounds, whatever the checkpoints: windows count by their rounds."""
    table = simulated(2)
    rng = np.random.default_rng(4)
    table["propensity"] = rng.random(len(table))
    fine = propensities(table).axes[1].lines[0]  # ten checkpoints: each a window of its own
    run = table[(table["environment"] == "env 1") & (table["bandit"] == "LinTS")]
    mean = run.groupby("t")["propensity"].mean()
    np.testing.assert_array_equal(fine.get_xdata(), mean.index)
    np.testing.assert_allclose(fine.get_ydata(), mean)

    t = np.concatenate([np.arange(1, 101), [1000, 2000]])  # a hundred checkpoints in one twentieth
    one = (
        table[:1]
        .loc[[0] * len(t)]
        .assign(t=t, reward=0.0, regret=0.0, propensity=rng.random(len(t)))
    )
    line = propensities(one).axes[0].lines[0]
    np.testing.assert_array_equal(line.get_xdata(), [100, 1000, 2000])
    expected = [one["propensity"][:100].mean(), *one["propensity"][100:]]
    np.testing.assert_allclose(line.get_ydata(), expected)


@pytest.mark.slow
def test_propensities_use_their_axes_and_say_where_none_is_known():
    table = simulated(2).assign(propensity=lambda rows: 0.95 + 0.04 * (rows["t"] % 2))
    low, high = inside(propensities(table)).axes[0].get_ylim()
    assert 0.9 < low < 0.95 < 1.0 < high < 1.02
    table.loc[table["environment"] == "env 1", "propensity"] = np.nan
    one, two = inside(propensities(table)).axes
    assert not one.texts
    assert [text.get_text() for text in two.texts] == ["none known"]


def test_shares_have_one_scale():
    table = simulated(2)
    table.loc[table["environment"] == "env 0", "propensity"] = 0.3
    assert {ax.get_ylim()[0] for ax in propensities(table).axes} == {0.0}


@pytest.mark.slow
def test_a_single_checkpoint_is_a_visible_point():
    last = simulated(2).groupby(["environment", "bandit", "replication"]).last().reset_index()
    lines = rendered(plots.regret_curves(last)).axes[0].lines
    assert all(line.get_markevery() == 1 for line in lines)


def test_many_environments_have_no_panels():
    one = simulated(1)
    many = pd.concat(one.assign(environment=f"env {i}") for i in range(13))
    with pytest.raises(ValueError, match="at most 12 environments have panels; got 13"):
        plots.regret_curves(many)


def test_one_replication_claims_no_error():
    title = plots.regret_curves(simulated(2, replications=1)).get_suptitle()
    assert title == "Cumulative regret, one replication"


@pytest.mark.slow
def test_paired_differences_are_intervals_of_students_t():
    table = simulated(2, replications=5)
    figure = rendered(plots.paired_differences(table, "LinTS"))
    assert [ax.get_title() for ax in figure.axes] == ["env 0", "env 1"]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["BLTS", "LinUCB"]
    ends = table[table["t"] == table.groupby("environment")["t"].transform("max")]
    wide = ends[ends["environment"] == "env 1"].pivot(index="replication", columns="bandit")
    gap = wide["regret"]["LinUCB"] - wide["regret"]["LinTS"]
    low, high = stats.t.interval(0.95, 4, gap.mean(), gap.sem())
    bars = [bar for box in figure.axes[1].containers for bar in box.lines[2]]
    drawn = [segment for bar in bars for segment in bar.get_segments()]
    (mine,) = (ends for ends in drawn if ends[0][1] == -1.5)  # in the middle of the second line
    np.testing.assert_allclose(mine[:, 0], [low, high])
    assert legend(figure)[1] == "worse than LinTS"
    by_default = plots.paired_differences(table).axes[0].get_xlabel()
    assert by_default == f"regret above that of {ranking(table)['bandit'].iloc[0]}"


def test_differences_need_pairs_and_a_reference_that_played():
    with pytest.raises(ValueError, match="must be one of 'LinTS', 'BLTS', 'LinUCB'; got 'TS'"):
        plots.paired_differences(simulated(1), "TS")
    with pytest.raises(ValueError, match="no pair of bandits met in two replications"):
        plots.paired_differences(simulated(1, replications=1))


# Linear RGB as a dichromat sees it: Machado, Oliveira & Fernandes (2009), table 1, severity 1.
DICHROMATS = {
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
}


@pytest.mark.parametrize("matrix", DICHROMATS.values(), ids=DICHROMATS)
def test_colours_survive_colour_blindness(matrix):
    """Every two colours stay apart, and a win from a loss by a wide margin (distance in sRGB)."""

    def seen(colour):
        return np.clip(np.array(matrix) @ np.array(to_rgb(colour)) ** 2.2, 0, 1) ** (1 / 2.2)

    def nearest(colours):
        return min(float(np.linalg.norm(seen(a) - seen(b))) for a, b in combinations(colours, 2))

    assert nearest(style.PALETTE) > 0.15
    assert nearest([style.BLUE, style.VERMILLION, style.GREY]) > 0.25
    assert nearest([style.BLUE, style.VERMILLION]) > 0.7
    assert nearest(["#D62728", "#2CA02C"]) < 0.4  # the usual red and green, for scale


@pytest.mark.slow
def test_no_global_state():
    before, opened = dict(pyplot.rcParams), pyplot.get_fignums()
    figure = rendered(plots.regret_curves(simulated(2)))
    assert pyplot.get_fignums() == opened
    assert figure.canvas.manager is None
    assert dict(pyplot.rcParams) == before


@pytest.mark.slow
def test_a_legend_of_many_lines_leaves_the_panels_their_room():
    one = simulated(1)
    ucb = one[one["bandit"] == "LinUCB"]
    many = pd.concat([ucb.assign(bandit=f"bandit {i} " + "x" * 50) for i in range(30)])
    heights = []
    for table in (one, many):
        figure = plots.regret_curves(table)
        rendered(figure)
        heights.append(figure.axes[0].get_window_extent().height)
    assert heights[1] > 0.8 * heights[0]


def test_a_bandit_has_one_look_in_all_pictures():
    """Whoever stands beside it, known to the toolkit or not; and no two of a picture are alike."""
    one, other = style.looks(["BLTS", "mine", "LinTS"]), style.looks(["a", "BLTS", "b", "mine"])
    assert one["BLTS"] == other["BLTS"] == style.look(2)
    assert one["mine"] == other["mine"]
    left = style.LOOKS - len({*style.KNOWN.values()})
    many = style.looks([f"bandit {i}" for i in range(left)])
    assert len({tuple(map(str, look.values())) for look in many.values()}) == left


def test_looks_differ():
    lines = {tuple(map(str, style.look(i).values())) for i in range(252)}
    points = {tuple(map(str, style.look(i, line=False).values())) for i in range(63)}
    assert (len(lines), len(points)) == (252, 63)
