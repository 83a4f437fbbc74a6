"""The sandwich covariance of a balanced bandit's coefficients."""

import numpy as np
import pytest

import bayesbandit as bb

ARMS, D = ("a", "b"), 2
THETA = np.array([[1.0, -0.5, 0.2], [0.3, 0.8, 0.0]])  # the constant last
POINTS = np.array([[0.0, 0.0], [1.5, -1.0], [-1.5, 1.0]])


def played(bandit, n, seed, noise=1.0):
    """A bandit after n rounds in which the linear model is right."""
    rng = np.random.default_rng(seed)
    for x in rng.normal(size=(n, D)):
        decision = bandit.choose(x)
        k = bandit.arms.index(decision.arm)
        bandit.observe(decision, float(np.r_[x, 1.0] @ THETA[k] + noise * rng.normal()))
    return bandit


@pytest.mark.slow  # to load statsmodels
@pytest.mark.parametrize(
    "balance", [bb.Unweighted(), bb.InversePropensity(), bb.InversePropensity(normalize=True)]
)
@pytest.mark.parametrize("intercept", [True, "unpenalised", False])
def test_is_the_covariance_of_weighted_least_squares(balance, intercept):
    api = pytest.importorskip("statsmodels.api")
    model = bb.Ridge(ridge=1e-9, intercept=intercept, variance="nig")
    bandit = bb.Bandit(ARMS, model, bb.Thompson(), balance, n_features=D, seed=0)
    played(bandit, 200, 1)
    robust, log = bandit.posterior("a").robust(), bandit.history
    mine = log.arm == "a"
    z = np.column_stack([log.x, np.ones(len(log.x))])[mine, : D + bool(intercept)]
    fit = api.WLS(log.reward[mine], z, log.weight[mine]).fit(cov_type="HC0")
    mean, covariance = robust.coefficients["theta"]
    np.testing.assert_allclose(mean, fit.params, rtol=1e-6)
    np.testing.assert_allclose(covariance, fit.cov_params(), rtol=1e-6, atol=1e-9)
    assert robust.engine == "sandwich"
    np.testing.assert_allclose(robust.sd(POINTS), bandit.posterior("a").robust().sd(POINTS))


def test_says_what_is_missing():
    with pytest.raises(ValueError, match="there are none"):
        bb.LinTS(ARMS, D, seed=0).posterior("a").robust()
    short = played(bb.LinTS(ARMS, D, seed=0, history=20), 60, 2)
    with pytest.raises(ValueError, match="history=None"):
        short.posterior("a").robust()
