"""The Bayesian workflow: predictions, checks, comparisons and explanations in one line each."""

import re
import warnings
from unittest.mock import Mock

import numpy as np
import pytest

import bayesbandit as bb
from bayesbandit.inference.nuts import Nuts
from tests import declarations as declared
from tests.inference.linear import centred_contexts, named_dimensions

NORMAL = bb.Prior("Normal", mu=0, sigma=1, dims="feature")


@bb.reward_model(theta=NORMAL)
def linear(x, reward, theta):
    return declared.normal_rewards(x @ theta, 0.5, reward, "r")


@bb.reward_model(theta=bb.Prior("Normal", mu=0, sigma=1, dims="arm"))
def of_arms(x, reward, arm, theta):
    return declared.normal_rewards(theta[arm] + x[:, 0], 0.5, reward, "r")


NAMED, OF_MEANS = map(bb.reward_model(), (named_dimensions, centred_contexts))


def world(n=40, d=2):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, d))
    return x, x @ np.array([1.0, -0.5]) + 0.5 * rng.normal(size=n)


def test_prior_predictive_has_the_prior_s_moments():
    """Of a reward: variance |x|² + ¼."""
    x = np.array([[1.0, 2.0], [0.0, 0.0]])
    tree = linear.prior_predictive(x, draws=4000, seed=0)
    rewards = tree["prior_predictive"]["r"].to_numpy()[0]
    assert tree["prior"]["theta"].shape == (1, 4000, 2)
    assert tree["prior"]["mean_reward"].shape == (1, 4000, 2)
    np.testing.assert_allclose(rewards.mean(axis=0), 0.0, atol=4 * np.sqrt(5.25 / 4000))
    np.testing.assert_allclose(rewards.var(axis=0), [5.25, 0.25], rtol=0.12)


@pytest.mark.parametrize("model", [linear, declared.binary])
def test_a_mean_reward_passes_its_check(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = model.check(world()[0])
    assert list(table.columns) == ["difference", "se", "z"]


@pytest.mark.slow
def test_the_rewards_of_a_declaration_that_names_its_dimensions_are_checked():
    """They are those that it observes."""
    assert (NAMED.check(world()[0])["z"].abs() < 5).all()


def test_another_mean_is_found():
    with pytest.warns(UserWarning, match="returns another mean than its rewards have"):
        assert (declared.squared.check(world()[0])["z"].abs() > 5).any()


@pytest.mark.slow
def test_predictions_of_rewards_are_wider_by_the_noise():
    x, reward = world()
    posterior = bb.fit(linear, x, reward, seed=0)
    new = np.array([[1.0, 1.0], [3.0, -2.0], [0.0, 0.0]])
    mean, response = (posterior.predict(new, kind, 4000) for kind in ("mean", "response"))
    assert mean.shape == response.shape == (4000, 3)
    np.testing.assert_allclose(mean.mean(axis=0), posterior.mean(new), atol=0.02)
    np.testing.assert_allclose(response.mean(axis=0), posterior.mean(new), atol=0.05)
    np.testing.assert_allclose(response.var(axis=0), posterior.sd(new) ** 2 + 0.25, rtol=0.12)
    np.testing.assert_array_equal(response, posterior.predict(new, "response", 4000))
    with pytest.raises(ValueError, match="kind must be one of 'mean', 'response'; got 'median'"):
        posterior.predict(new, "median")


def test_predictions_over_arms_have_all_arms():
    x, reward = world(d=2)
    posterior = bb.fit(of_arms, x[:, :1], reward, arm=np.arange(40) % 3, n_arms=3, seed=0)
    response = posterior.predict(x[:5, :1], "response", 2000)
    assert response.shape == (2000, 5, 3)
    expected = posterior.mean(x[:5, :1])
    np.testing.assert_allclose(response.mean(axis=0), expected, atol=5 * 0.6 / np.sqrt(2000))


def test_summary_and_explain():
    posterior = bb.fit(linear, *world(), seed=0)
    table = posterior.summary(round_to=10).astype(float)
    mean, covariance = posterior.coefficients["theta"]
    np.testing.assert_allclose(table["mean"], mean, atol=0.02)
    np.testing.assert_allclose(table["sd"], np.sqrt(np.diag(covariance)), rtol=0.1)
    assert posterior.explain() == linear.explain(2)


@pytest.mark.slow
def test_models_are_compared_by_what_they_predict():
    x, reward = world()
    best = bb.fit(linear, x, reward, seed=0)
    table = bb.compare_models(
        {"wide": linear.with_priors(theta=bb.Prior("Normal", mu=3, sigma=0.1)), "true": best},
        x, reward, seed=0,
    )  # fmt: skip
    assert list(table.index) == ["true", "wide"]
    # numbers are not rounded: the difference is that of the two
    gap = table["elpd"]["true"] - table["elpd"]["wide"]
    assert gap == pytest.approx(abs(table["elpd_diff"]["wide"]), rel=1e-9)
    for rows in ((x[:9], reward[:9]), (x, reward[::-1])):
        with pytest.raises(ValueError, match="wide: a posterior of other rows"):
            bb.compare_models({"wide": best}, *rows)
    with pytest.raises(ValueError, match="again: a posterior of other rows"):
        bb.compare_models({"true": best, "again": bb.fit(linear, x[::-1], reward)}, x, reward)


@pytest.mark.parametrize(
    ("models", "said"),
    [
        ({}, "models must be a dict of models or posteriors; got {}"),
        ([linear], "models must be a dict of models or posteriors; got"),
        ({"a": 3}, "a must be a RewardModel or a Posterior; got 3"),
    ],
)
def test_what_is_no_table_of_models(models, said):
    with pytest.raises(TypeError, match=said):
        bb.compare_models(models, *world())


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (linear, "a bandit plays it: each reward updates the posterior, in closed form"),
        (declared.binary, "a bandit plays it: each reward weights the posterior draws"),
        (OF_MEANS, "no bandit plays it: .*depends on other rows"),
    ],
)
def test_explain_says_how_a_bandit_learns(model, told):
    text = model.explain(2, bandit=True)
    assert text.startswith(model.explain(2))
    assert re.search(told, text)


def test_a_prior_has_no_observations_and_needs_contexts():
    x, _ = world()
    tree = linear.prior_predictive(x, draws=2)
    assert "observed_data" not in tree.children
    assert set(tree["constant_data"].data_vars) == {"x", "weight"}
    np.testing.assert_array_equal(tree["constant_data"]["x"], x)
    with pytest.raises(ValueError, match=r"linear: x must be contexts \(n, d\).*got None"):
        linear.check(None)
    with pytest.raises(ValueError, match="does not take `arm`; n_arms must be None"):
        linear.prior_predictive(x, n_arms=2)


def test_rewards_by_a_potential_cannot_be_drawn():
    x, reward = world()
    with pytest.raises(ValueError, match=r"potential: rewards can be drawn where .*'fit'"):
        declared.potential.prior_predictive(x)
    with pytest.raises(ValueError, match="potential: rewards can be drawn where"):
        bb.fit(declared.potential, x, reward, seed=0).predict(x, "response")


@pytest.mark.parametrize("progress", [True, False])
def test_progress_is_shown_by_nuts(monkeypatch, progress):
    """Where it would draw; nothing is compiled here."""
    import nutpie

    asked = []

    def sample(*_, progress_bar, **settings):
        asked.append(progress_bar)
        raise KeyboardInterrupt

    monkeypatch.setattr(nutpie, "sample", sample)
    monkeypatch.setattr(Nuts, "_with", Mock())
    x, reward = world()
    with pytest.raises(KeyboardInterrupt):
        bb.fit(declared.binary, x, reward > 0, engine="nuts", seed=0, progress=progress)
    assert asked == [progress]
