"""Warnings about contexts that do not suit a model, and the cases in which there are none."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import bayesbandit as bb
from tests import declarations

LOGISTIC = bb.load_model("logistic")
TABLE = pd.DataFrame(
    {
        "age": np.linspace(20.0, 65.0, 60),
        "news": [True, False] * 30,
        "plan": [*"abc"] * 20,
    }
)
FIT, FORMULA = bb.Encoder.fit, bb.Encoder.formula
TS = bb.Thompson()


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


def bandit(model, **settings):
    return bb.Bandit(3, model, TS, **settings)


def rounds_of(made, contexts):
    for x in contexts:
        made.observe(made.choose(x), 1.0)


# ---- a model without a constant -----------------------------------------------------------------


def test_an_encoder_and_a_model_without_a_constant_are_warned_about_once():
    without = LOGISTIC.with_priors(intercept=0)
    encoder, row = FIT(TABLE[["age", "news"]]), {"age": 30.0, "news": True}
    text, *more = said(lambda: rounds_of(bandit(without, encoder=encoder), [row] * 40))
    assert not more
    assert text.startswith("logistic has no constant: where all features are 0")
    assert "constant=True" in text
    assert "with_priors(intercept=" in text
    (text,) = said(lambda: bandit(without, encoder=FORMULA("~ age", TABLE)))
    assert "a formula with '1 +'" in text


@pytest.mark.parametrize(
    "encoder",
    [
        FIT(TABLE[["age", "news"]], constant=True),
        FORMULA("~ 1 + age", TABLE),
        FIT(TABLE),  # three levels of plan, with a feature each
        FORMULA("~ 0 + plan + age", TABLE),
    ],
    ids=["fitted", "formula", "levels", "levels by formula"],
)
def test_an_encoder_with_a_constant_serves_a_model_without_one(encoder):
    without = LOGISTIC.with_priors(intercept=0)
    made = []
    assert not said(lambda: made.append(bandit(without, encoder=encoder)))
    x = encoder.transform(TABLE[list(encoder.columns)])
    left = np.linalg.lstsq(x, np.ones(len(x)), rcond=None)[0]
    np.testing.assert_allclose(x @ left, 1.0)


def test_contexts_without_a_constant_are_warned_about_where_a_model_has_none(rng):
    x = rng.normal(size=(80, 2))
    (text,) = said(lambda: rounds_of(bandit(declarations.known, n_features=2), x))
    assert "known has no constant" in text
    assert "column of ones" in text
    for constant in (np.ones(80), 3.0 - x[:, 0]):  # by itself, or as a sum
        with_one = np.column_stack([x[:, 0], constant])
        assert not said(lambda z=with_one: rounds_of(bandit(declarations.known, n_features=2), z))
    assert not said(lambda: rounds_of(bandit(bb.Ridge(intercept=False), n_features=2), x))


# ---- contexts far from 0 ------------------------------------------------------------------------

YEARS = 2020.0 + np.random.default_rng(0).normal(size=(70, 1))
FAR = {
    "LinTS": partial(bb.LinTS, 3, 1),
    "UCB": partial(bb.LinUCB, 3, 1),
    "λ by cross-validation": partial(bb.LinTS, 3, 1, ridge="cv"),
    "pooled": partial(bb.BLTS, 3, 1, propensity="pooled"),
    "forgetting": partial(bb.LinTS, 3, 1, half_life=50),
    "a closed form": partial(bandit, bb.load_model("ridge"), n_features=1),
    "draws": partial(bandit, LOGISTIC, n_features=1),
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
    assert len(said(lambda: bb.LinTS(3, encoder=FORMULA("~ year", years())).update(
        years(), arm, 1.0 * arm
    ))) == 1  # fmt: skip
    assert not said(lambda: bb.LinTS(3, encoder=FIT(years())).update(years(), arm, 1.0 * arm))


def years():
    return pd.DataFrame({"year": YEARS[:, 0]})


@pytest.mark.parametrize(
    "model",
    [
        bb.Ridge(intercept="unpenalised"),
        bb.Ridge(ridge=1e-8),
        centred,
        bb.load_model("beta_bernoulli"),
        bb.Forest(),
    ],
    ids=["unpenalised", "hardly penalised", "centred by the model", "no contexts", "forest"],
)
def test_far_contexts_are_fine_where_the_model_does_not_shrink_them(model):
    assert not [text for text in said(lambda: rounds_of(bandit(model, n_features=1), YEARS))
                if "far from 0" in text]  # fmt: skip


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
