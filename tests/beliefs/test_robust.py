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


@pytest.mark.slow
def test_covers_where_the_posterior_does_not():
    """A correct model, exact propensities: a weighted posterior's 95 % intervals are too short."""
    runs, covered = 200, {False: 0.0, True: 0.0}
    for seed in range(runs):
        bandit = bb.BLTS(ARMS, D, clip=0.1, min_probability=0.02, ridge=0.01, seed=seed)
        known = played(bandit, 2000, seed).posterior("a")
        truth = np.column_stack([POINTS, np.ones(3)]) @ THETA[0]
        for robust in covered:
            one = known.robust() if robust else known
            near = np.abs(one.mean(POINTS) - truth) <= 1.96 * one.sd(POINTS)
            covered[robust] += near.mean() / runs
    assert covered[False] < 0.8
    assert covered[True] > 0.9
