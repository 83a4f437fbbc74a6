"""Pictures of the studies: what they show, and what nobody would draw."""

import numpy as np
import pandas as pd
import pytest

from bayesbandit_studies import pictures
from tests.pictures import inside
from tests.test_plots import legend, rendered, simulated, spoken
from tests.test_plots_hostile import LONG, SCALES

GRID = np.stack(np.meshgrid(np.linspace(-3, 3, 13), np.linspace(-2, 2, 9)), axis=-1).reshape(-1, 2)


def means(x: np.ndarray) -> np.ndarray:
    """The paper's three arms (section 3.1)."""
    q = ((x + 1) ** 2).sum(axis=1) / 2
    return np.stack([q, np.ones(len(x)), 2 - q], axis=1)


def played(n: int = 300) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    return rng.normal(size=(n, 2)), rng.integers(0, 3, n), np.arange(1, n + 1) - 50


def truth(arms, scale=1.0):
    at = np.random.default_rng(1).normal(size=(arms, 2))
    return -scale * ((GRID[:, None] - at) ** 2).sum(axis=-1)


@pytest.mark.slow
def test_optimal_share_needs_test_contexts() -> None:
    some = pd.concat([simulated(2), simulated(3, tested=False).query("environment == 'env 2'")])
    assert [ax.get_title() for ax in pictures.optimal_share(some).axes] == ["env 0", "env 1"]
    with pytest.raises(ValueError, match=r"none of \['env 0'\] has test contexts"):
        pictures.optimal_share(simulated(1, tested=False))


@pytest.mark.slow
def test_assignment() -> None:
    x, arm, t = played()
    regions = np.tile(means(GRID).argmax(axis=1), (5, 1))
    figure = rendered(pictures.assignment(x, arm, t, "abc", 4, GRID, regions, means(GRID), "BLTS"))
    assert figure.get_suptitle() == "BLTS"
    titles = [ax.get_title() for ax in figure.axes]
    assert titles == ["warm start", "rounds 1–10", "rounds 11–29", "rounds 30–85", "rounds 86–250"]
    assert {ax.get_xlabel() for ax in figure.axes} == {"$x_0$"}
    assert figure.axes[0].get_ylabel() == "$x_1$"
    assert legend(figure) == ["arm a", "arm b", "arm c", "optimal border"]


@pytest.mark.slow
def test_every_round_is_in_one_window() -> None:
    x, arm, t = played()
    dots = [
        len(np.asarray(dots.get_offsets()))
        for ax in pictures.assignment(x, arm, t, [0, 1, 2]).axes
        for dots in ax.collections
    ]
    assert sum(dots) == len(x)
    (panel,) = pictures.assignment(x, arm, t, [0, 1, 2], windows=[(1, 20)]).axes
    assert sum(len(np.asarray(dots.get_offsets())) for dots in panel.collections) == 20
    assert len(pictures.assignment(x, arm, t + 50, [0, 1, 2], windows=1).axes) == 1
    assert len(pictures.assignment(x[:2], arm[:2], np.array([1, 2]), [0, 1, 2]).axes) == 1
    rendered(pictures.assignment(x[:9], arm[:9], t[:9], [0, 1, 2]))  # nothing but a warm start


@pytest.mark.slow
def test_bias_is_symmetric_about_zero() -> None:
    truth = means(GRID) + 3.0
    estimated = np.stack([0.5 * truth, 1.2 * truth])
    figure = rendered(pictures.bias(GRID, estimated, truth, "abc", ["t = 10", "t = 100"], "LinTS"))
    panels = figure.axes
    bars = [bar for ax in panels for bar in ax.child_axes]
    assert len(bars) == 2
    assert spoken(figure.get_suptitle()).startswith("LinTS: estimate − truth")
    assert [ax.get_title() for ax in panels[:3]] == ["arm a", "arm b", "arm c"]
    assert [ax.get_ylabel() for ax in panels[::3]] == ["t = 10\n$x_1$", "t = 100\n$x_1$"]
    drawn = np.asarray(panels[3].collections[0].get_array())  # second row, arm a
    np.testing.assert_allclose(drawn, (0.2 * truth[:, 0]).reshape(9, 13))
    for row, bar in enumerate(bars):
        (limits,) = {ax.collections[0].get_clim() for ax in panels[3 * row : 3 * row + 3]}
        assert limits[0] == -limits[1] < 0
        shown = [text.get_text() for text in bar.get_yticklabels()]
        assert shown == [f"−{limits[1]:.2g}", "0", f"{limits[1]:.2g}"]


@pytest.mark.slow
def test_biases_have_a_scale_for_each_row() -> None:
    truth = means(GRID)
    estimated = np.stack([truth + 0.1, truth + 5.0])
    figure = rendered(pictures.bias(GRID, estimated, truth, "abc", ["small", "large"]))
    ends = [ax.collections[0].get_clim()[1] for ax in figure.axes[:6]]
    np.testing.assert_allclose(ends, [0.1] * 3 + [5.0] * 3)
    none = rendered(pictures.bias(GRID, truth[None], truth, "abc", ["exact"]))
    assert none.axes[0].collections[0].get_clim() == (-1.0, 1.0)


def test_a_grid_in_any_order_gives_the_same_picture() -> None:
    truth = means(GRID)
    order = np.random.default_rng(0).permutation(len(GRID))
    drawn = [
        pictures.bias(GRID[rows], 0.5 * truth[None, rows], truth[rows], "abc", ["a"])
        for rows in (np.arange(len(GRID)), order)
    ]
    one, two = (np.asarray(f.axes[0].collections[0].get_array()) for f in drawn)
    np.testing.assert_array_equal(one, two)


def test_bad_input_of_the_context_pictures() -> None:
    x, arm, t = played(20)
    truth = means(GRID)
    with pytest.raises(ValueError, match=r"wanted x \(n, 2\).* got \(20, 1\)"):
        pictures.assignment(x[:, :1], arm, t, "abc")
    with pytest.raises(ValueError, match=r"wanted x"):
        pictures.assignment(x, arm[1:], t, "abc")
    with pytest.raises(ValueError, match=r"indices 0\.\.1, got \[0 1 2\]"):
        pictures.assignment(x, arm, t, "ab")
    with pytest.raises(ValueError, match="grid is None"):
        pictures.assignment(x, arm, t, "abc", truth=truth)
    with pytest.raises(ValueError, match="1 regions for 2 windows"):
        pictures.assignment(x, arm, t, "abc", [(1, 2), (3, 4)], GRID, truth.argmax(axis=1)[None])
    with pytest.raises(ValueError, match=r"wanted \(1, 117, 3\) and \(117, 3\), got"):
        pictures.bias(GRID, truth, truth, "abc", ["a"])
    with pytest.raises(ValueError, match="regular grid"):
        pictures.bias(GRID[:-1], truth[None, :-1], truth[:-1], "abc", ["a"])


@pytest.mark.slow
def test_learning_curves_tell_their_number_share_a_scale_and_show_what_should_be() -> None:
    rows = [
        {"p": p, "m": "a", "t": t, "y": y * (i + 1)}
        for p, y in (("one", 0.1), ("two", 0.3)) for t in (1, 2) for i in range(4)
    ]  # fmt: skip
    table = pd.DataFrame(rows)
    figure = pictures.learning_curves(
        table, "t", "y", "m", "p", "t", "y", "Y", alike=True, nominal=0.95
    )
    rendered(figure)
    assert figure.get_suptitle() == "Y: mean ± SE over 4 replications"
    assert legend(figure) == ["a", "nominal, 0.95"]
    assert len({ax.get_ylim() for ax in figure.axes}) == 1
    assert figure.axes[0].get_ylim()[1] > 0.95
    once = pictures.learning_curves(table[::4], "t", "y", "m", "p", "t", "y", "Y")
    assert once.get_suptitle() == "Y"


def test_interval_rows_leave_nothing_out() -> None:
    """Each row has its interval or, left of the panel's beginning, an arrowhead."""
    table = pd.DataFrame({
        "method": ["a", "b", "a", "b"], "world": ["p", "p", "q", "q"],
        "value": [0.9, 0.1, 0.95, 0.94], "low": [0.85, 0.0, 0.9, np.nan],
        "high": [0.95, 0.2, 1.0, np.nan],
    })  # fmt: skip
    figure = pictures.interval_rows(
        table, "method", "value", "world", "v", "Values", nominal=0.95, least=0.8
    )
    first, second = rendered(figure).axes
    assert first.get_xlim()[0] == 0.8
    arrows = [line for line in first.lines if line.get_marker() == "<"]
    assert [list(line.get_xdata()) for line in arrows] == [[0.8]]
    assert not [x for line in second.lines if line.get_marker() == "<" for x in line.get_xdata()]
    assert [label.get_text() for label in first.get_yticklabels()] == ["a", "b"]
    with pytest.raises(ValueError, match="lacks"):
        pictures.interval_rows(table.drop(columns="low"), "method", "value", "world", "v", "V")


def test_learning_curves_claim_no_more_rows_than_there_are() -> None:
    table = pd.DataFrame({"t": [1, 1, 1, 2, 2], "y": [1.0, 2, 3, 4, np.nan], "m": "a", "p": "one"})
    title = pictures.learning_curves(table, "t", "y", "m", "p", "t", "y", "Y").get_suptitle()
    assert title == "Y: mean ± SE over 1 to 3 replications"


def test_windows_and_truths_that_cannot_be_drawn_are_named() -> None:
    x, arm, t = np.random.default_rng(0).normal(size=(9, 2)), np.arange(9) % 2, np.arange(9)
    grid = np.stack(np.meshgrid([0, 1, 2], [0, 1, 2]), -1).reshape(-1, 2)
    assert len(pictures.assignment(x, arm, t + 1, ["a", "b"], np.int64(1)).axes) == 1
    for windows, said in ((-1, "windows must be an integer ≥ 1; got -1"), ([], "got none")):
        with pytest.raises(ValueError, match=said):
            pictures.assignment(x, arm, t, ["a", "b"], windows)
    with pytest.raises(ValueError, match=r"truth must be \(9, 2\); got \(9, 3\)"):
        pictures.assignment(x, arm, t, ["a", "b"], grid=grid, truth=np.zeros((9, 3)))


@pytest.mark.slow
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("arms", [["a"], "ab", [LONG.format(i) for i in range(12)]])
def test_maps(arms, scale):
    mean = truth(len(arms), scale)
    inside(pictures.outcomes(GRID, mean, arms))
    inside(pictures.bias(GRID, np.stack([0.9 * mean, 2.0 * mean]), mean, arms, ["a", LONG]))


@pytest.mark.slow
def test_outcomes_that_are_all_alike_have_one_colour():
    figure = inside(pictures.outcomes(GRID, np.zeros((len(GRID), 3)), "abc"))
    assert {ax.collections[0].get_clim() for ax in figure.axes[:3]} == {(-1.0, 1.0)}


@pytest.mark.slow
def test_biases_of_many_arms_are_a_row_an_arm():
    mean = truth(8)
    figure = inside(pictures.bias(GRID, mean[None] + 1.0, mean, range(8), ["LinTS"]))
    assert figure.axes[0].get_title() == "LinTS"
    assert [ax.get_ylabel() for ax in figure.axes[:8]] == [f"arm {k}\n$x_1$" for k in range(8)]


def test_points_outside_the_grid_are_on_the_map():
    x = np.array([[9.0, -9.0], [0.0, 0.0]])
    figure = inside(pictures.assignment(x, [0, 1], [1, 2], "ab", 1, GRID, truth=truth(2)))
    (left, right), (low, high) = figure.axes[0].get_xlim(), figure.axes[0].get_ylim()
    assert left < -3 < 9 < right
    assert low < -9 < 2 < high


def test_circles_are_round_where_units_are_alike():
    rng = np.random.default_rng(0)
    for wide, alike in ((1.5, True), (1e9, False)):
        x = rng.uniform(size=(99, 2)) * [wide, 1.0]
        (ax,) = pictures.assignment(x, np.zeros(99, int), np.ones(99), "a", [(1, 1)]).axes
        (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
        assert ((right - left) == pytest.approx(high - low)) == alike
        assert left < x[:, 0].min()
        assert x[:, 1].max() < high < 2.0


def test_arms_that_share_a_colour_differ_in_shade():
    picked = np.arange(len(GRID)) % 14
    figure = pictures.assignment(
        np.zeros((1, 2)), [0], [1], range(14), 1, GRID, regions=picked[None]
    )
    colours = figure.axes[0].collections[0].get_array().reshape(-1, 4)
    assert len(np.unique(colours, axis=0)) == 14


def test_what_should_be_is_on_the_axes():
    rows = {"p": "one", "m": "a", "t": [1, 2], "y": [0.2, 0.3]}
    figure = pictures.learning_curves(
        pd.DataFrame(rows), "t", "y", "m", "p", "t", "y", "Y", nominal=0.95
    )
    assert inside(figure).axes[0].get_ylim()[1] > 0.95


@pytest.mark.slow
@pytest.mark.parametrize("scale", SCALES)
def test_shares_of_any_units(scale):
    table = simulated(2)
    inside(pictures.optimal_share(table.assign(regret=scale * table["regret"])))
