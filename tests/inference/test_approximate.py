"""Laplace's approximation is exact where the posterior is Gaussian; both are close elsewhere."""

import numpy as np
import pymc as pm
import pytest
from scipy.special import expit

import bayesbandit as bb
from bayesbandit.inference.plan import plan
from bayesbandit.inference.target import peak
from bayesbandit.model import RewardModel
from tests import declarations as declared
from tests.cases import few


@pytest.mark.parametrize("model", [declared.known, declared.potential])
@few("model1")
def test_laplace_is_exact_for_a_gaussian_whatever_the_rows(model):
    target = plan(model, 3, engine="laplace").method.target
    for rows in (declared.data(40), declared.data(7, seed=1)):
        mean, covariance = declared.ridge(**rows)
        found = target.on(rows).laplace()
        np.testing.assert_allclose(found.mean, mean, rtol=1e-8)
        np.testing.assert_allclose(found.covariance, covariance, rtol=1e-7, atol=1e-10)


def test_laplace_of_a_logistic_regression_is_newtons():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    reward = (rng.uniform(size=60) < expit(x[:, 0])).astype(float)
    target = plan(declared.binary, 2, engine="laplace").method.target
    found = target.on({"x": x, "reward": reward}).laplace()
    p = expit(x @ found.mean)
    np.testing.assert_allclose(x.T @ (reward - p) - found.mean / 4, 0.0, atol=1e-8)
    H = (x.T * p * (1 - p)) @ x + np.eye(2) / 4
    np.testing.assert_allclose(found.covariance, np.linalg.inv(H), rtol=1e-7)


def test_a_posterior_without_a_mode_is_an_error():
    with pytest.raises(RuntimeError, match="laplace: the posterior has no curvature"):
        peak(lambda z: (0.0 * z.sum(), np.zeros_like(z)), np.ones(2))


def centred(x, reward, theta):
    pm.StudentT("reward", nu=3, mu=x @ theta, sigma=1, observed=reward)
    return x @ theta


LEVELS = {"mu": 3, "sigma": bb.Prior("HalfNormal", sigma=1), "dims": "feature"}


@pytest.mark.parametrize(
    ("model", "scales"),
    [
        (RewardModel(centred, {"theta": bb.Prior("Normal", **LEVELS)}), "theta_sigma"),
        (bb.load_model("horseshoe"), "tau2_beta, tau2, lambda2_beta, lambda2"),
    ],
    ids=["centred", "horseshoe"],
)
@few("centred")
def test_a_hierarchy_without_a_mode_is_refused_when_the_bandit_is_made(model, scales, rng):
    """Its density rises without end while its scale falls to 0."""
    said = rf"laplace: there is no mode: .* while {scales} goes to 0\. .*bb\.Sampled\(model\)"
    with pytest.raises(ValueError, match=said):
        bb.Bandit(2, bb.Laplace(model), bb.Thompson(), n_features=2)
    with pytest.raises(ValueError, match=said):
        bb.fit(model, rng.normal(size=(9, 2)), rng.normal(size=9), engine="laplace")


def effects(x, reward, theta, effect):
    pm.StudentT("reward", nu=5, mu=x @ theta + effect, sigma=1.0, observed=reward)
    return x @ theta


def test_a_variable_of_each_row_is_fitted_on_any_number_of_rows(rng):
    """What is compiled for the first rows is none for more."""
    priors = {dim: bb.Prior("Normal", mu=0, sigma=1, dims=dim) for dim in ("feature", "row")}
    given = {"theta": priors["feature"], "effect": priors["row"]}
    x, reward = rng.normal(size=(9, 2)), rng.normal(size=9)
    model = RewardModel(effects, given)
    for n in (5, 9):
        found = bb.fit(model, x[:n], reward[:n], engine="laplace", seed=0).coefficients
        mean = found["effect"][0]
        gap = reward[:n] - x[:n] @ found["theta"][0] - mean
        score = 6 / 5 * gap / (1 + gap**2 / 5)
        np.testing.assert_allclose(score, mean, atol=1e-6)  # at the mode


@pytest.mark.parametrize("kind", [bb.Laplace, bb.Sampled], ids=lambda kind: kind.__name__)
def test_variables_of_each_row_are_refused_by_engines_of_a_fixed_space(kind):
    model = bb.load_model("student_t_mixture")
    made = bb.Laplace(model) if kind is bb.Laplace else bb.Sampled(model, engine="advi")
    with pytest.raises(ValueError, match=f"'q' has a value for each row, and {made.engine} takes"):
        bb.Bandit(2, made, bb.Thompson(), n_features=2)
