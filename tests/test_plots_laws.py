"""Laws of every picture: it fits a column, a page and the caller's axes, whatever is drawn."""

import warnings
from functools import cache, partial

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

import bayesbandit as bb
from bayesbandit import plots
from bayesbandit.cli.output import png
from bayesbandit.plots.style import BLUE, VERMILLION
from bayesbandit_studies.pictures import pairwise_scatter, propensities
from tests.cases import in_gate
from tests.pictures import inside
from tests.test_plots import BANDITS, legend, rendered, simulated

COLUMN, PAGE = 3.4, 7.0  # inches of journals
SMALLEST = 5.5  # points of a letter
ARMS = ["mail", "phone", "a long name of an arm"]


@cache
def played():
    rng = np.random.default_rng(0)
    bandit = bb.BLTS(ARMS, 2, min_probability=0.05, seed=0)
    for x in rng.normal(size=(300, 2)):
        decision = bandit.choose(x)
        bandit.observe(decision, float(x[0] > 0) * (decision.arm == "mail") + rng.normal())
    return bandit


@cache
def log():
    return bb.ope.Log.of(played().history)


@cache
def evaluated():
    return bb.ope.evaluate(log(), {arm: arm for arm in ARMS}, sequence="asymptotic")


PICTURES = {
    "regret_curves": lambda: partial(plots.regret_curves, simulated(5)),
    "paired_differences": lambda: partial(plots.paired_differences, simulated(5)),
    "propensities": lambda: partial(propensities, simulated(5)),
    "policy_values": lambda: partial(plots.policy_values, evaluated()),
    "policy_contrasts": lambda: partial(plots.policy_contrasts, evaluated(), "mail"),
}


def test_every_picture_is_here():
    of_studies = {"propensities"}
    ours = {name for name in plots.__all__ if callable(getattr(plots, name))}
    assert set(PICTURES) == ours | of_studies


def words(figure):
    """What is written in a figure, once it is drawn."""
    figure.draw_without_rendering()
    texts = [text for text in figure.findobj(Text) if isinstance(text, Text)]
    return [text for text in texts if text.get_visible() and text.get_text().strip()]


@pytest.mark.parametrize("width", [COLUMN, PAGE])
@pytest.mark.parametrize("name", PICTURES)
def test_it_has_the_width_that_is_asked_for(name, width):
    draw = PICTURES[name]()
    figure = draw(width=width, title="Seen in a journal")
    assert figure.get_figwidth() == width
    written = words(figure)
    assert all(float(text.get_fontsize()) >= SMALLEST for text in written)
    assert any(text.get_text() == "Seen in a journal" for text in written)
    box = figure.get_tightbbox()  # in inches
    assert box.x0 > -0.05
    assert box.x1 < width + 0.05


@pytest.mark.parametrize("name", PICTURES)
def test_a_title_may_be_left_out(name):
    figure = PICTURES[name]()(title="")
    assert figure.get_suptitle() == ""


@pytest.mark.parametrize("name", PICTURES)
def test_it_draws_on_axes_of_the_caller(name):
    draw = PICTURES[name]()
    n = len(draw().axes)
    mine = Figure(figsize=(12, 9))
    axes = mine.subplots(1, n + 1)
    assert draw(ax=axes[:n] if n > 1 else axes[0], title="mine") is mine
    assert (mine.get_figwidth(), mine.get_figheight()) == (12, 9)
    assert all(ax.has_data() for ax in axes[:n])
    assert not axes[n].has_data()
    assert any(text.get_text() == "mine" for text in words(mine))
    with pytest.raises(ValueError, match=rf"ax must be {n} axes, one for each panel"):
        draw(ax=axes)
    with pytest.raises(ValueError, match=r"width is that of a new figure"):
        draw(ax=axes[:n], width=COLUMN)


@pytest.mark.parametrize("width", [0, -1, np.nan, np.inf, "7", 1e9])
def test_widths_are_checked(width):
    with pytest.raises(ValueError, match="width must be a finite number"):
        plots.regret_curves(simulated(1), width=width)


@pytest.mark.parametrize("name", PICTURES)
def test_what_is_no_such_table_is_a_sentence(name):
    draw = PICTURES[name]()
    others = (None, 3, "table", played().history, evaluated(), pd.DataFrame({"a": [1.0]}))
    for other in (one for one in others if type(one) is not type(draw.args[0])):
        with pytest.raises((TypeError, ValueError), match=r"takes|needed|needs"):
            draw.func(other, *draw.args[1:], **draw.keywords)


OF_TABLES = [plots.regret_curves, propensities, plots.paired_differences, pairwise_scatter]
LONG = "a name of sixty signs, which is long enough to need two lines {}"
SCALES = 1e-9, 1.0, 1e9
ODD = ["$\\frac{", "a $x$ and $y$", "_hidden", "tab\tand\nline", "  ", "x" * 80]
ODD += ["long name " * 8, "λ"]


@pytest.mark.slow
@pytest.mark.parametrize("draw", OF_TABLES)
def test_names_of_any_kind_are_drawn_as_they_are(draw):
    """No mathematics, no label that is left out, nothing outside the picture."""
    table = simulated(2)
    for name in ODD[len(BANDITS) :]:
        table = pd.concat([table, table[table["bandit"] == "LinUCB"].assign(bandit=name)])
    table = table.replace({"bandit": dict(zip(BANDITS, ODD, strict=False))})
    table["environment"] = table["environment"].replace({"env 0": "$e_{", "env 1": "e " * 40})
    with warnings.catch_warnings(action="error"):
        figure = rendered(
            draw(table.drop_duplicates(["environment", "bandit", "replication", "t"]))
        )
    if draw in (plots.regret_curves, propensities):
        found = [" ".join(text.split()).replace("\\$", "$") for text in legend(figure)]
        wanted = [" ".join(name.split()) or repr(name) for name in ODD]
        assert [name.replace(" ", "") for name in found] == [n.replace(" ", "") for n in wanted]
        box = figure.legends[0].get_window_extent()
        assert box.x0 >= 0
        assert box.x1 <= figure.bbox.width


@pytest.mark.slow
@pytest.mark.parametrize("draw", OF_TABLES)
@pytest.mark.parametrize("scale", [0.0, *SCALES])
@in_gate(6)
def test_tables_of_any_units_of_ties_and_of_long_names(draw, scale):
    table = simulated(2)
    table["regret"] *= scale
    table["bandit"] = [LONG.format(name) for name in table["bandit"]]
    table["environment"] = [LONG.format(name) for name in table["environment"]]
    inside(draw(table))


def test_letters_that_no_font_has_are_boxes_and_no_warnings():
    figure = Figure()
    figure.text(0.5, 0.5, "日本")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert png(figure).startswith(b"\x89PNG")


def names(figure):
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]


@pytest.mark.slow
@pytest.mark.parametrize(("level", "said"), [(0.95, "95%"), (0.975, "97.5%")])
def test_each_policy_has_a_row_and_the_title_says_the_level(level, said):
    policies = {"logged": None, "arm $0": "mail", "few": np.eye(3)[np.arange(len(log())) % 3]}
    result = bb.ope.evaluate(log(), policies, level=level, sequence="asymptotic")
    values = rendered(plots.policy_values(result))
    assert names(values) == ["logged", r"arm \$0", "few"]
    assert said in values.get_suptitle()
    differences = rendered(plots.policy_contrasts(result, "logged"))
    assert names(differences) == [r"arm \$0", "few"]
    assert said in differences.get_suptitle()
    assert "above that of logged" in differences.axes[0].get_xlabel()


def test_a_better_policy_is_blue_and_a_worse_one_is_not():
    rng = np.random.default_rng(0)
    arm = rng.integers(2, size=600)
    told = bb.ope.Log(None, arm, arm + rng.normal(size=600), np.full((600, 2), 0.5))
    result = bb.ope.evaluate(told, {"low": 0, "high": 1})
    for against, colour in (("low", BLUE), ("high", VERMILLION)):
        [ax] = plots.policy_contrasts(result, against).axes
        [point] = [line for line in ax.lines if len(line.get_xdata()) == 1]
        assert point.get_color() == colour


def test_a_refused_interval_is_a_grey_point():
    result = bb.ope.evaluate(log(), ["mail", "phone"], estimator="dm")
    figure = rendered(plots.policy_values(result))
    assert len(figure.legends[0].get_texts()) == 2
    np.testing.assert_allclose(figure.axes[0].lines[-1].get_xdata(), result.table["estimate"])


def test_a_contrast_needs_another_policy():
    short = bb.ope.evaluate(log()[:100], ["mail"], sequence="asymptotic")
    with pytest.raises(ValueError, match="no other one has an estimate"):
        plots.policy_contrasts(short, "mail")
