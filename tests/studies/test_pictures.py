"""Pictures of the studies and of posteriors: what they show, and what nobody would draw."""

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb
from bayesbandit.evaluation import pairwise
from bayesbandit.plots import style
from bayesbandit_studies import pictures
from bayesbandit_studies.pictures import pairs
from tests.cases import long_but
from tests.pictures import inside
from tests.test_plots import BANDITS, legend, rendered, simulated, spoken
from tests.test_plots_laws import LONG, SCALES

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
    titles = [ax.get_title() for ax in figure.axes]
    assert titles == ["warm start", "rounds 1–10", "rounds 11–29", "rounds 30–85", "rounds 86–250"]
    assert legend(figure) == ["arm a", "arm b", "arm c", "optimal border"]


@pytest.mark.slow
def test_bias_is_symmetric_about_zero() -> None:
    truth = means(GRID) + 3.0
    estimated = np.stack([0.5 * truth, 1.2 * truth])
    figure = rendered(pictures.bias(GRID, estimated, truth, "abc", ["t = 10", "t = 100"], "LinTS"))
    panels = figure.axes
    bars = [bar for ax in panels for bar in ax.child_axes]
    assert len(bars) == 2
    assert [ax.get_title() for ax in panels[:3]] == ["arm a", "arm b", "arm c"]
    assert [ax.get_ylabel() for ax in panels[::3]] == ["t = 10\n$x_1$", "t = 100\n$x_1$"]
    drawn = np.asarray(panels[3].collections[0].get_array())  # second row, arm a
    np.testing.assert_allclose(drawn, (0.2 * truth[:, 0]).reshape(9, 13))
    for row, bar in enumerate(bars):
        (limits,) = {ax.collections[0].get_clim() for ax in panels[3 * row : 3 * row + 3]}
        assert limits[0] == -limits[1] < 0
        shown = [text.get_text() for text in bar.get_yticklabels()]
        assert shown == [f"−{limits[1]:.2g}", "0", f"{limits[1]:.2g}"]


def test_bad_input_of_the_context_pictures() -> None:
    x, arm, t = played(20)
    truth = means(GRID)
    assignment, bias = pictures.assignment, pictures.bias
    for draw, given, said in (
        (assignment, (x[:, :1], arm, t, "abc"), r"wanted x \(n, 2\).* got \(20, 1\)"),
        (assignment, (x, arm[1:], t, "abc"), "wanted x"),
        (assignment, (x, arm, t, "ab"), r"indices 0\.\.1, got \[0 1 2\]"),
        (assignment, (x, arm, t, "abc", 4, None, None, truth), "grid is None"),
        (assignment, (x, arm, t, "abc", [(1, 2), (3, 4)], GRID, truth.argmax(axis=1)[None]),
         "1 regions for 2 windows"),
        (bias, (GRID, truth, truth, "abc", ["a"]), r"wanted \(1, 117, 3\) and \(117, 3\), got"),
        (bias, (GRID[:-1], truth[None, :-1], truth[:-1], "abc", ["a"]), "regular grid"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=said):
            draw(*given)


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


@pytest.mark.slow
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("arms", [["a"], "ab", [LONG.format(i) for i in range(12)]])
def test_maps(arms, scale):
    mean = truth(len(arms), scale)
    inside(pictures.outcomes(GRID, mean, arms))
    inside(pictures.bias(GRID, np.stack([0.9 * mean, 2.0 * mean]), mean, arms, ["a", LONG]))


def test_points_outside_the_grid_are_on_the_map():
    x = np.array([[9.0, -9.0], [0.0, 0.0]])
    figure = inside(pictures.assignment(x, [0, 1], [1, 2], "ab", 1, GRID, truth=truth(2)))
    (left, right), (low, high) = figure.axes[0].get_xlim(), figure.axes[0].get_ylim()
    assert left < -3 < 9 < right
    assert low < -9 < 2 < high


def test_designs_are_named_in_words():
    from bayesbandit.environments import NonLinear, SparseLinear, SyntheticExample

    assert style.words("iris") == "iris"
    for world in (SyntheticExample("mis"), NonLinear(), SparseLinear(sigma=0.2)):
        assert f"σ = {world.sigma:g}" in style.words(world.name)
        assert "-linear-" not in style.words(world.name)


@pytest.mark.slow
def test_pairwise_scatter():
    table = simulated(6)
    figure = rendered(pictures.pairwise_scatter(table))
    assert "after 40 to 90 rounds: 6 environments" in spoken(figure.get_suptitle())
    assert legend(figure) == ["win", "loss", "draw", "p = 0.01", "p ≤ 1e-12"]
    axes = np.array(figure.axes).reshape(3, 3)
    assert [ax.get_title() for ax in axes[0]] == [ax.get_ylabel() for ax in axes[:, 0]]
    assert [ax.get_title() for ax in axes[0]] == list(BANDITS)
    tested = pairwise(table)
    for i, row in enumerate(BANDITS):
        for j, column in enumerate(BANDITS):
            met = tested[(tested["row"] == row) & (tested["column"] == column)]
            words = [text.get_text() for text in axes[i, j].texts]
            won, lost = ((met["outcome"] == outcome).sum() for outcome in ("win", "loss"))
            assert words == ([] if i == j else [f"W {won}", f"L {lost}"])
            points = [np.asarray(dots.get_offsets()) for dots in axes[i, j].collections]
            points = np.concatenate(points) if points else np.empty((0, 2))
            xy = met[["column_regret", "row_regret"]].to_numpy()
            np.testing.assert_allclose(points[np.lexsort(points.T)], xy[np.lexsort(xy.T)])


def test_one_bandit_is_compared_with_none():
    with pytest.raises(ValueError, match="at least two bandits"):
        pictures.pairwise_scatter(simulated(2).query("bandit == 'LinUCB'"))


def test_of_many_bandits_the_best_are_compared_in_pairs(monkeypatch):
    monkeypatch.setattr(pairs, "MAX_PAIRED_BANDITS", 2)
    table = simulated(2, replications=2)
    figure = pictures.pairwise_scatter(table)
    ends = table[table["t"] == table.groupby("environment")["t"].transform("max")]
    rate = (ends["regret"] / ends["t"]).groupby(ends["bandit"]).mean().sort_values()
    assert {ax.get_title() for ax in figure.axes[:2]} == set(rate.index[:2])
    assert len(figure.axes) == 4
    assert "2 of 3 bandits, by regret" in " ".join(figure.get_suptitle().split())


@pytest.mark.slow
@pytest.mark.parametrize("n", long_but([8], [8, 12]))
def test_many_bandits_in_pairs(n):
    """The counts in the corners are beside the points, and the key within its panel."""
    one = simulated(3).query("bandit == 'LinUCB'")
    parts = [one.assign(bandit=LONG.format(i), regret=one["regret"] * (1 + i)) for i in range(n)]
    figure = inside(pictures.pairwise_scatter(pd.concat(parts)))
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
@pytest.mark.parametrize("scale", SCALES)
def test_pairs_of_any_units(scale):
    table = simulated(2)
    figure = inside(pictures.pairwise_scatter(table.assign(regret=scale * table["regret"])))
    ax = figure.axes[1]
    points = np.concatenate([np.asarray(dots.get_offsets()) for dots in ax.collections])
    assert np.ptp(ax.get_xlim()) < 20 * np.ptp(points)


@pytest.mark.slow
@pytest.mark.parametrize("replications", [1, 4])  # of one, no pair is tested
def test_the_title_of_pairs_says_their_number(replications):
    figure = rendered(pictures.pairwise_scatter(simulated(1, replications=replications)))
    title = spoken(figure.get_suptitle())
    assert "after 40 rounds" in title
    assert ("4 replications" in title) == (replications == 4)


@pytest.mark.parametrize("width", [3.4, 7.0])
def test_pairs_have_the_width_that_is_asked_for(width):
    table = simulated(5)
    if width == 3.4:
        with pytest.raises(ValueError, match=r"width must be .* ≥ 3.9 "):
            pictures.pairwise_scatter(table, width=width)
        return
    figure = pictures.pairwise_scatter(table, width=width, title="")
    assert figure.get_figwidth() == width
    assert figure.get_suptitle() == ""


class Known:
    """A posterior of one variable, exact or by draws."""

    encoder = None

    def __init__(self, mean, sd, draws=None):
        from scipy import stats

        exact = stats.norm(np.asarray(mean, float), np.broadcast_to(sd, np.shape(mean)))
        rng = np.random.default_rng(0)
        self.marginals = {"theta": exact} if draws is None else {}
        self.draws = {"theta": exact.rvs((draws or 2, *np.shape(mean)), random_state=rng)}
        self.coefficients = {"theta": (np.asarray(mean, float), None)}

    def quantiles(self, name, p):
        if name in self.marginals:
            return np.stack([self.marginals[name].ppf(one) for one in p])
        return np.quantile(self.draws[name], p, axis=0)


@pytest.mark.slow
def test_a_closed_form_is_drawn_as_it_is():
    figure = inside(
        pictures.densities({"p": Known([0.0, 5.0], [1.0, 0.01])}, truth={"theta": [0, 5]})
    )
    assert [ax.get_title() for ax in figure.axes] == ["theta[0]", "theta[1]"]
    for ax, mean, sd in zip(figure.axes, (0.0, 5.0), (1.0, 0.01), strict=True):
        x, y = ax.lines[0].get_data()
        np.testing.assert_allclose(
            y, np.exp(-(((x - mean) / sd) ** 2) / 2) / sd / np.sqrt(2 * np.pi)
        )
        assert y.max() == pytest.approx(1 / sd / np.sqrt(2 * np.pi), rel=1e-3)
        assert ax.lines[1].get_xdata()[0] == mean
        assert x[0] < mean - 2.5 * sd
        assert x[-1] > mean + 2.5 * sd
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["p", "truth"]


def test_draws_say_that_they_are_draws():
    figure = inside(pictures.densities({"p": Known(0.0, 1.0, 500), "exact": Known(0.0, 1.0)}))
    texts = [t.get_text() for t in figure.legends[0].get_texts()]
    assert texts == ["p (500 draws)", "exact"]
    (ax,) = figure.axes
    x, y = ax.lines[0].get_data()
    assert np.abs(y - np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)).max() < 0.1


@pytest.mark.slow
def test_many_posteriors_with_long_names():
    many = {LONG.format(i): Known(np.arange(10.0), 1.0 + i) for i in range(30)}
    figure = inside(pictures.coefficients(many, truth=np.arange(10.0)))
    inside(pictures.densities(dict(list(many.items())[:9]), title=LONG * 3))
    inside(pictures.shrinkage(dict(list(many.items())[:7]), np.arange(10.0)))
    looks = {
        (line.get_color(), line.get_marker())
        for line in figure.axes[0].lines
        if line.get_marker() != "None"
    }
    assert len(looks) == 30


def test_intervals_are_quantiles():
    posterior = Known([1.0, -2.0], 0.5)
    (ax,) = inside(pictures.coefficients({"p": posterior}, select=[1])).axes
    ends = sorted(line.get_segments()[0][:, 0].tolist() for line in ax.collections[:2])
    low, lower, upper, high = posterior.marginals["theta"].ppf([[0.05], [0.25], [0.75], [0.95]])[
        :, 1
    ]
    np.testing.assert_allclose(ends, [[low, high], [lower, upper]])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["theta[1]"]


def test_shrinkage_has_equal_axes_and_a_diagonal():
    figure = inside(
        pictures.shrinkage({"p": Known([0.5, 1.0], 1.0)}, [1.0, 2.0], {"zero": [True, False]})
    )
    (ax,) = figure.axes
    assert ax.get_xlim() == ax.get_ylim()
    assert ax.lines[-1].get_xdata().tolist() == [1.0]
    assert ax.lines[-1].get_ydata().tolist() == [0.5]


SEVERAL, ONE = Known(np.zeros(30), 1.0), Known(0.0, 1.0)
REFUSED = [
    (pictures.densities, ({"p": SEVERAL},), "at most 24 elements; theta have 30"),
    (pictures.densities, ({},), "needs one at least"),
    (pictures.densities, ({"p": ONE, "q": Known([0.0], 1.0)}, ["theta"]), "different shapes"),
    (pictures.shrinkage, ({}, [0.0, 1.0]), "needs one at least"),
    (pictures.shrinkage, ({"p": SEVERAL}, [0.0, 1.0]),
     r"raw must be \(30,\), as 'theta' of p; got \(2,\)"),
]  # fmt: skip


def test_what_cannot_be_drawn():
    for draw, given, said in REFUSED:
        with pytest.raises(ValueError, match=said):
            draw(*given)
    for select in ([], [30], [-31]):
        with pytest.raises(ValueError, match="select must be positions of the 30 elements"):
            pictures.coefficients({"p": SEVERAL}, select=select)
    with pytest.raises(ValueError, match=r"the truth of 'theta' must be \(30,\); got \(2,\)"):
        pictures.coefficients({"p": SEVERAL}, truth=[0.0, 1.0])


def test_a_notebook_shows_pictures_without_pyplot():
    figure = pictures.densities({"p": Known(0.0, 1.0)})
    assert isinstance(figure, style.Picture)
    assert figure._repr_png_().startswith(b"\x89PNG")


@pytest.mark.slow
def test_what_a_bandit_knows_is_drawn_too():
    bandit = bb.LinTS(2, 2)
    rng = np.random.default_rng(0)
    bandit.play(rng.normal(size=(50, 2)), rng.normal(size=(50, 2)))
    arms = {f"arm {k}": bandit.posterior(k) for k in (0, 1)}
    assert len(inside(pictures.densities(arms)).axes) == 3  # with the intercept
    inside(pictures.coefficients(arms))
