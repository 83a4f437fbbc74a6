"""The warning about contexts that are far from 0, and the cases in which there is none."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import bayesbandit as bb


@bb.reward_model(theta=bb.Prior("Normal", mu=0, sigma=1, dims="feature"))
def centred(x, reward, weight, theta):
    mu = (x - 2020.0) @ theta
    pm.Normal("reward", mu, 1 / pm.math.sqrt(weight), observed=reward)
    return mu


def said(call):
    """The warnings of a call, as texts."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [str(one.message) for one in found if one.category is UserWarning]


def rounds_of(made, contexts):
    for x in contexts:
        made.observe(made.choose(x), 1.0)


YEARS = 2020.0 + np.random.default_rng(0).normal(size=(70, 1))
TABLE_OF_YEARS = pd.DataFrame({"year": YEARS[:, 0]})
FAR = {
    "LinTS": partial(bb.LinTS, 3, 1),
    "UCB": partial(bb.LinUCB, 3, 1),
    "λ by cross-validation": partial(bb.LinTS, 3, 1, ridge="cv"),
    "pooled": partial(bb.BLTS, 3, 1, propensity="pooled"),
    "forgetting": partial(bb.LinTS, 3, 1, half_life=50),
    "super": partial(bb.SuperLinUCB, 3, 1, horizon=100),
}


@pytest.mark.parametrize("kind", FAR)
def test_contexts_far_from_0_are_warned_about_once_in_the_first_rounds(kind):
    (text,) = said(lambda: rounds_of(FAR[kind](), YEARS))
    assert "feature 0 has mean 20" in text
    assert "encoder=bb.Encoder.fit(frame)" in text


def test_whole_logs_and_runs_are_looked_at_too():
    arm, reward = np.zeros(70, dtype=int), np.ones((70, 3))
    made = bb.LinTS(3, 1)
    assert len(said(lambda: made.update(YEARS, arm, 1.0 * arm))) == 1
    assert not said(lambda: made.update(YEARS, arm, 1.0 * arm))
    assert len(said(lambda: bb.LinTS(3, 1).play(YEARS, reward))) == 1
    far, near = bb.Encoder.formula("~ year", TABLE_OF_YEARS), bb.Encoder.fit(TABLE_OF_YEARS)
    assert len(said(lambda: bb.LinTS(3, encoder=far).update(TABLE_OF_YEARS, arm, 1.0 * arm))) == 1
    assert not said(lambda: bb.LinTS(3, encoder=near).update(TABLE_OF_YEARS, arm, 1.0 * arm))


FINE = {
    "unpenalised": bb.Ridge(intercept="unpenalised"),
    "hardly penalised": bb.Ridge(ridge=1e-8),
    "centred by the model": centred,
    "declared": bb.load_model("ridge"),
    "no contexts": bb.load_model("beta_bernoulli"),
    "forest": bb.Forest(),
}


@pytest.mark.parametrize("model", FINE.values(), ids=FINE)
def test_far_contexts_are_fine_where_the_model_does_not_shrink_them(model):
    found = said(lambda: rounds_of(bb.Bandit(3, model, bb.Thompson(), n_features=1), YEARS))
    assert not [text for text in found if "far from 0" in text]


def test_a_warning_that_is_an_error_changes_nothing_and_comes_once():
    made = bb.LinTS(3, 1)
    rounds_of(made, YEARS[:32])
    decision, before = made.choose(YEARS[32]), made.history.total
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="far from 0"):
            made.observe(decision, 1.0)
        assert made.history.total == before
        made.observe(decision, 1.0)
    assert made.history.total == before + 1
