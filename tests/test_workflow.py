"""The Bayesian workflow: predictions, checks, comparisons and explanations in one line each."""

import re
import warnings
from unittest.mock import Mock

import numpy as np
import pymc as pm
import pytest

import bayesbandit as bb
from bayesbandit.inference.nuts import Nuts

NORMAL = bb.Prior("Normal", mu=0, sigma=1, dims="feature")


@bb.reward_model(theta=NORMAL)
def linear(x, reward, theta):
    mu = x @ theta
    pm.Normal("r", mu, 0.5, observed=reward)
    return mu


@bb.reward_model(theta=NORMAL)
def clicks(x, reward, theta):
    p = pm.math.sigmoid(x @ theta)
    pm.Bernoulli("r", p, observed=reward)
    return p


@bb.reward_model(theta=NORMAL)
def logits(x, reward, theta):
    eta = x @ theta
    pm.Bernoulli("r", logit_p=eta, observed=reward)
    return eta


@bb.reward_model(theta=NORMAL)
def shifted(x, reward, theta):
    mu = x @ theta
    pm.Normal("r", mu, 1.0, observed=reward)
    return mu + 1.0


@bb.reward_model(theta=bb.Prior("Normal", mu=0, sigma=1, dims="arm"))
def of_arms(x, reward, arm, theta):
    mu = theta[arm] + x[:, 0]
    pm.Normal("r", mu, 0.5, observed=reward)
    return mu


@bb.reward_model(theta=NORMAL)
def by_potential(x, reward, weight, theta):
    mu = x @ theta
    pm.Potential("r", -0.5 * weight * (reward - mu) ** 2)
    return mu


@bb.reward_model(theta=NORMAL)
def of_means(x, reward, theta):
    mu = (x - x.mean(axis=0)) @ theta
    pm.Normal("r", mu, 1.0, observed=reward)
    return mu


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


@pytest.mark.parametrize("model", [linear, clicks])
def test_a_mean_reward_passes_its_check(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = model.check(world()[0])
    assert list(table.columns) == ["difference", "se", "z"]


@pytest.mark.parametrize("model", [logits, shifted])
def test_another_mean_is_found(model):
    with pytest.warns(UserWarning, match="returns another mean than its rewards have"):
        assert (model.check(world()[0])["z"].abs() > 5).any()


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
        (clicks, "a bandit plays it: each reward weights the posterior draws"),
        (of_means, "no bandit plays it: .*depends on other rows"),
    ],
)
def test_explain_says_how_a_bandit_learns(model, told):
    text = model.explain(2, bandit=True)
    assert text.startswith(model.explain(2))
    assert re.search(told, text)


def test_a_prior_has_no_observations_and_needs_contexts():
    x, _ = world()
    assert "observed_data" not in linear.prior_predictive(x, draws=2).children
    with pytest.raises(ValueError, match=r"linear: x must be contexts \(n, d\).*got None"):
        linear.check(None)
    with pytest.raises(ValueError, match="does not take `arm`; n_arms must be None"):
        linear.prior_predictive(x, n_arms=2)


def test_rewards_by_a_potential_cannot_be_drawn():
    x, reward = world()
    with pytest.raises(ValueError, match=r"by_potential: rewards can be drawn where .*'r'"):
        by_potential.prior_predictive(x)
    with pytest.raises(ValueError, match="by_potential: rewards can be drawn where"):
        bb.fit(by_potential, x, reward, seed=0).predict(x, "response")


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
        bb.fit(clicks, x, reward > 0, engine="nuts", seed=0, progress=progress)
    assert asked == [progress]
