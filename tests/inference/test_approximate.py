"""Laplace's approximation is exact where the posterior is Gaussian; both are close elsewhere."""

import numpy as np
import pytest
from scipy.special import expit

from bayesbandit.inference import approximate
from bayesbandit.inference.plan import plan
from bayesbandit.inference.target import peak
from tests import declarations as declared
from tests.cases import few


def data(n=40, seed=0):
    x, reward, weight = declared.rows(n, seed=seed)
    return {"x": x, "reward": reward, "weight": weight}


@pytest.mark.parametrize("model", [declared.known, declared.potential])
@few("model1")
def test_laplace_is_exact_for_a_gaussian_whatever_the_rows(model):
    target = plan(model, 3, engine="laplace").method.target
    for rows in (data(40), data(7, seed=1)):
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


@pytest.mark.slow
def test_laplace_draws_positive_variables_and_repeats_itself():
    engine = plan(declared.heavy, 3, engine="laplace").method
    a, b = (engine.sample(data(), draws=50, chains=2, seed=s) for s in (1, 1))
    assert a.values["scale"].shape == (2, 50)
    assert a.values["theta"].shape == (2, 50, 3)
    assert (a.values["scale"] > 0).all()
    np.testing.assert_array_equal(a.values["theta"], b.values["theta"])
    assert a.diagnostics.ess["theta"] == 100
    assert not np.array_equal(
        a.values["theta"], engine.sample(data(), 50, 2, seed=2).values["theta"]
    )


def test_a_posterior_without_a_mode_is_an_error():
    with pytest.raises(RuntimeError, match="laplace: the posterior has no curvature"):
        peak(lambda z: (0.0 * z.sum(), np.zeros_like(z)), np.ones(2))


@pytest.mark.slow
def test_advi_is_close_for_a_gaussian(monkeypatch):
    """In a third of the steps that it takes otherwise."""
    monkeypatch.setattr(approximate, "ADVI_STEPS", 10_000)
    rows = data(200)
    mean, covariance = declared.ridge(**rows)
    engine = plan(declared.known, 3, engine="advi").method
    found = engine.sample(rows, draws=1000, chains=4, seed=0).values["theta"]
    sd = np.sqrt(1 / np.diag(np.linalg.inv(covariance)))  # of the mean field
    assert (np.abs(found.mean(axis=(0, 1)) - mean) < 0.3 * sd).all()
    np.testing.assert_allclose(found.std(axis=(0, 1)), sd, rtol=0.2)
