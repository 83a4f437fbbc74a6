"""Pictures of what a log says show every policy, arm and interval."""

import numpy as np
import pytest

from bayesbandit import plots
from bayesbandit.ope import Log, evaluate
from bayesbandit.plots.style import BLUE, VERMILLION
from tests.test_plots import rendered


def uniform(n=600, seed=0, d=2):
    arms = ["a", "b", "c"]
    rng = np.random.default_rng(seed)
    x, k = rng.normal(size=(n, d)), rng.integers(3, size=n)
    reward = np.where(k == 0, x[:, 0], np.where(k == 1, -x[:, 0], 0.2)) + rng.normal(size=n)
    return Log(x, np.array(arms)[k], reward, np.full((n, 3), 1 / 3), arms=arms)


def names(figure):
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]


@pytest.mark.slow
@pytest.mark.parametrize(("level", "said"), [(0.95, "95%"), (0.975, "97.5%")])
def test_each_policy_has_a_row_and_the_title_says_the_level(level, said):
    log = uniform()
    policies = {"logged": None, "arm $0": "a", "few": np.eye(3)[np.arange(len(log)) % 3]}
    result = evaluate(log, policies, level=level, sequence="asymptotic")
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
    log = Log(None, arm, arm + rng.normal(size=600), np.full((600, 2), 0.5))
    result = evaluate(log, {"low": 0, "high": 1})
    for against, colour in (("low", BLUE), ("high", VERMILLION)):
        [ax] = plots.policy_contrasts(result, against).axes
        [point] = [line for line in ax.lines if len(line.get_xdata()) == 1]
        assert point.get_color() == colour


def test_a_refused_interval_is_a_grey_point():
    log = uniform()
    result = evaluate(log, {"a": "a", "b": "b"}, estimator="dm")
    figure = rendered(plots.policy_values(result))
    assert len(figure.legends[0].get_texts()) == 2
    np.testing.assert_allclose(figure.axes[0].lines[-1].get_xdata(), result.table["estimate"])


def test_what_cannot_be_drawn_is_said():
    log = uniform()
    short = evaluate(log[:100], ["a"], sequence="asymptotic")
    with pytest.raises(ValueError, match="no other one has an estimate"):
        plots.policy_contrasts(short, "a")
