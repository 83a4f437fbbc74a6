"""Variables that sum to zero, in closed form: Gaussian on the subspace."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import bayesbandit as bb
from bayesbandit.model import RewardModel
from tests.inference import linear
from tests.inference.declared import rows

D, S2 = linear.D, linear.SIGMA**2


@pytest.fixture(scope="module")
def fitted():
    data = rows(n=40, d=D)
    return data, bb.fit(RewardModel(linear.zero_sum, {}), **data)


@pytest.mark.slow
def test_the_posterior_is_the_textbooks_on_the_subspace(fitted):
    data, posterior = fitted
    S = np.zeros((D + 1, D + 1))
    S[:D, :D], S[D, D] = 1.5**2 * (np.eye(D) - 1 / D), 4.0
    m, Z = np.append(np.zeros(D), 1.0), np.column_stack([data["x"], np.ones(40)])
    V = Z @ S @ Z.T + np.diag(S2 / data["weight"])
    gain = S @ Z.T @ np.linalg.inv(V)
    mean, covariance = m + gain @ (data["reward"] - Z @ m), S - gain @ Z @ S
    assert posterior.engine == "exact_gaussian"
    theta = posterior.coefficients["theta"]
    np.testing.assert_allclose(theta[0], mean[:D], atol=1e-10)
    np.testing.assert_allclose(theta[1], covariance[:D, :D], atol=1e-10)
    evidence = multivariate_normal(Z @ m, V).logpdf(data["reward"])
    assert np.isclose(posterior.log_evidence, evidence)


@pytest.mark.slow
def test_draws_sum_to_zero_and_have_a_tree(fitted):
    _, posterior = fitted
    draws = posterior.samples(100, np.random.default_rng(0))["theta"]
    assert draws.shape == (100, D)
    np.testing.assert_allclose(draws.sum(axis=1), 0.0, atol=1e-12)
    tree = posterior.to_datatree(chains=2, draws=20)
    np.testing.assert_allclose(tree["posterior"]["theta"].sum("feature"), 0.0, atol=1e-12)
    x = np.eye(D)
    means = posterior.draw(x, 4000, np.random.default_rng(1))
    sd = posterior.sd(x)
    assert (np.abs(means.mean(axis=0) - posterior.mean(x)) < 4 * sd / np.sqrt(4000)).all()
