"""Bandits with declared models: what they choose, with which propensity, and what they learn."""

import numpy as np
import pytest
from pytensor.compile.maker import FunctionMaker

import bayesbandit as bb
from bayesbandit.model import RewardModel
from tests import declarations as declared
from tests.bandit.kinds import D, agree, bandit_of, probe
from tests.cases import few
from tests.inference import linear
from tests.players import world


@pytest.mark.slow
def test_arms_with_an_improper_posterior_are_new():
    """σ known, an intercept and D coefficients that are flat: D + 1 rounds of each arm."""
    reward = np.random.default_rng(0).normal(size=(12, 2))
    x = np.repeat(np.vstack([np.eye(D), np.zeros((3, D))]), 2, axis=0)
    model = RewardModel(linear.improper, {})
    bandit = bb.Bandit(2, bb.Sampled(model, refit_every=1), bb.Thompson(), n_features=D)
    for t in range(12):
        expected = t >= 2 * (D + 1)
        decision = bandit.choose(probe())
        assert (abs(decision.probabilities - 0.5) > 1e-9).any() == expected, (
            "one of two new: a half each"
        )
        if t < 2:
            with pytest.raises(ValueError, match="not proper"):
                bandit.posterior(1)
        bandit.update(x[t], t % 2, reward[t, t % 2])
    assert bandit.posterior(1).mean(probe()).shape == (4,)


@few("[decision-affine]")
@pytest.mark.parametrize("kind", ["affine", "affine, unknown noise", "joint"])
@pytest.mark.parametrize(
    "balance",
    [
        pytest.param(None, marks=pytest.mark.slow),
        bb.InversePropensity(clip=0.2),
        pytest.param(
            bb.InversePropensity(propensity="estimated", refit_every=1), marks=pytest.mark.slow
        ),
        bb.InversePropensity(propensity="estimated", refit_every=0.5),
    ],
    ids=["unweighted", "decision", "estimated", "estimated now and then"],
)
def test_what_was_played_is_what_fit_finds_in_the_history(kind, balance, rng):
    """With the weights of the history, which the balance gave."""
    x, reward = world(rng, 40)
    bandit = bandit_of(kind, balance=balance, arms=3)
    bandit.play(x, reward)
    agree(bandit)
    weight, p = bandit.history.weight, bandit.history.propensity
    if balance is None:
        np.testing.assert_array_equal(weight, 1.0)
    elif balance.propensity == "decision":
        np.testing.assert_array_equal(weight, 1 / np.maximum(0.2, p))
    else:
        assert np.abs(weight - 1 / np.maximum(0.1, p)).max() > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"draws": 20}, {"engine": "laplace"}])
def test_a_second_bandit_of_a_declaration_compiles_nothing(settings, monkeypatch, rng):
    model = declared.lasso if "draws" in settings else bb.load_model("logistic")
    x, reward = rng.normal(size=(12, D)), 1.0 * (rng.random(12) < 0.5)

    def live():
        bandit = declared.bandit(2, model, bb.Thompson(), n_features=D, **settings)
        bandit.update(x, [0, 1] * 6, reward)
        return bandit.choose(x).arm.tolist()

    first = live()
    monkeypatch.setattr(FunctionMaker, "__init__", None)
    assert live() == first
