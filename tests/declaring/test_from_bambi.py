"""A bambi model is the reward model of its formula: same density, also at rows that are new."""

import pickle

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from pymc.model.transform.conditioning import remove_value_transforms

import bayesbandit as bb
from bayesbandit.model import RewardModel
from tests.cases import few

bambi = pytest.importorskip("bambi")

N, QUICK = 90, {"mode": "FAST_COMPILE"}


def table(seed=0, n=N):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 10, n),
            "income": rng.exponential(size=n),
            "county": rng.choice(list("abcd"), n),
            "arm": rng.choice(["none", "mail", "call"], n),
        }
    )
    mu = 0.02 * (frame["age"] - 40) + 0.4 * frame["income"] - 0.5 * (frame["arm"] == "mail")
    frame["reward"] = mu + rng.normal(size=n)
    frame["bought"] = (rng.random(n) < 1 / (1 + np.exp(-mu))).astype(int)
    frame["visits"] = rng.poisson(np.exp(mu.clip(-2, 2)))
    frame["amount"] = rng.gamma(2.0, np.exp(mu.clip(-2, 2)) / 2)
    return frame


FORMULAS = [  # and an engine
    ("reward ~ age * income + (1|arm)", "gaussian", "gibbs"),
    ("reward ~ age + income", "gaussian", "gibbs"),
    ("reward ~ 1 + (1|arm)", "gaussian", "gibbs"),
    ("bought ~ age * income + county + (1|arm)", "bernoulli", "gibbs"),
    ("reward ~ scale(age):arm + (1|arm) + (income|county)", "gaussian", "gibbs"),
    ("reward ~ 0 + arm + np.log(income) + offset(age)", "t", "nuts"),
    ("visits ~ income + (income|arm)", "poisson", "nuts"),
    ("visits ~ income + arm", "negativebinomial", "nuts"),
    ("amount ~ income + (1|arm:county)", "gamma", "nuts"),
]


def contexts(model, frame):
    return np.zeros((len(frame), 0)) if model.encoder is None else model.encoder.transform(frame)


def arms(model, frame):
    return None if model.arms is None else [model.arms.index(arm) for arm in frame["arm"]]


def K(model):
    return None if model.arms is None else len(model.arms)


@pytest.mark.parametrize(("formula", "family", "engine"), FORMULAS)
@few("county + (1|arm)", "offset(age)")
def test_density_and_mean_are_those_of_bambi(formula, family, engine):
    """At a draw of the prior: on the data, and where bambi predicts rows that are new.

    bambi predicts from intercepts that are not centred.
    """
    frame, new = table(), table(1, 40)
    for centred in (True, False):
        theirs = bambi.Model(formula, frame, family=family, center_predictors=centred)
        theirs.build()
        known = theirs.backend.model
        prior = pm.sample_prior_predictive(1, model=known, random_seed=2)["prior"].dataset
        values = {v.name: prior[v.name].to_numpy()[0, 0] for v in known.free_RVs}
        model = RewardModel.from_bambi(theirs)
        ours = built(model, frame, frame[formula.split(" ~ ")[0]])
        renamed = {k if k in ours.named_vars else f"{k} of the model": v for k, v in values.items()}
        assert log_density(ours, renamed) == pytest.approx(log_density(known, values), rel=1e-9)
    predicted = theirs.predict(
        xr.DataTree.from_dict({"posterior": prior}), data=new, inplace=False, kind="response_params"
    )
    expected = predicted["posterior"][theirs.family.likelihood.parent].to_numpy()[0, 0]
    elsewhere = built(model, new, np.zeros(len(new)))
    mean = elsewhere.compile_fn(
        elsewhere["mean_reward"], inputs=elsewhere.free_RVs, on_unused_input="ignore", **QUICK
    )(renamed)
    np.testing.assert_allclose(mean, expected, rtol=1e-8)
    d = contexts(model, frame).shape[1]
    assert model.explain(d, K(model)).startswith(f"from_bambi: {engine}")


def built(model, frame, reward):
    return model.build(
        contexts(model, frame), np.asarray(reward, float), arm=arms(model, frame), n_arms=K(model)
    )


def log_density(model, values):
    plain = remove_value_transforms(model)
    return float(plain.compile_logp(**QUICK)(values))


def test_a_bandit_of_a_formula_plays_and_is_pickled():
    frame = table()
    model = RewardModel.from_bambi("bought ~ age + (1|arm)", "bernoulli", data=frame, weighted=True)
    bandit = bb.Bandit(
        list(model.arms), bb.Sampled(model, draws=50), bb.Thompson(), encoder=model.encoder, seed=0,
        balance=bb.InversePropensity(),
    )  # fmt: skip
    for _, row in frame.head(12).iterrows():
        bandit.observe(bandit.choose(row), row["bought"])
    p = bandit.probabilities(frame.head(3))
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    again = pickle.loads(pickle.dumps(model))
    assert again.arms == model.arms == ("call", "mail", "none")
    assert again.encoder == model.encoder


def test_arms_stand_in_the_order_that_is_given():
    frame, order = table(), ("none", "call", "mail")
    one, other = (
        RewardModel.from_bambi("reward ~ arm", data=frame, arms=given) for given in (None, order)
    )
    assert other.arms == order
    with pytest.raises(
        ValueError, match=r"arms must be \['none', 'call', 'mail'\], in the model's"
    ):
        bb.Bandit(["call", "mail", "none"], other, bb.Thompson(), n_features=0)
    assert log_density(built(one, frame, frame["reward"]), POINT) == pytest.approx(
        log_density(built(other, frame, frame["reward"]), POINT)
    )


POINT = {"Intercept": 0.3, "arm of the model": np.array([0.5, -0.5]), "sigma": 1.2}


@pytest.mark.parametrize(
    ("formula", "settings", "message"),
    [
        ("reward ~ age", {"data": None}, "a formula needs data="),
        ("reward ~ age", {"family": "vonmises"}, "family must be one of .*'bernoulli'.*'vonmises'"),
        ("reward ~ age", {"arms": ["mail"]}, "no term names the column 'arm'"),
        ("reward ~ arm", {"arms": ["mail", "letter"]}, "arms must be values of 'arm'.*'letter'"),
        ("reward ~ arm", {"arms": ["mail", "mail"]}, "different names; got 'mail' more than once"),
        ("reward ~ hsgp(age, m=5, c=1.5)", {}, "a hsgp term is no design of rows"),
        ("truncated(reward, -9, 9) ~ age", {}, "must be a column of the data.*'truncated"),
        (
            "reward ~ np.log(age)",
            {"encoder": bb.Encoder.formula("~ age", table())},
            r"np\.log\(age\): not linear in the features age; give an encoder",
        ),
        ("reward ~ income + (1|arm) + (1|copy)", {}, "are equal in all rows of the data"),
    ],
)
def test_what_cannot_be_handed_over_is_said(formula, settings, message):
    frame = table().assign(copy=lambda t: t["arm"].map({"call": "a", "mail": "b", "none": "c"}))
    with pytest.raises((ValueError, TypeError), match=message):
        RewardModel.from_bambi(formula, **{"data": frame} | settings)
