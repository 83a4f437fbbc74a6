"""Bootstrap LASSO and ridge: solutions as scikit-learn has them, replicates as they are defined."""

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet, Lasso, LassoCV, Ridge

from bayesbandit.systems.bootstrap import replicates
from bayesbandit.systems.bootstrap.belief import Bootstrap
from tests.cases import moments_of


def rows(n=120, d=8, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)) * np.geomspace(0.1, 10, d)
    reward = x[:, 0] * 4 - x[:, 1] + 3.0 + 0.5 * rng.normal(size=n)
    return x, reward, rng.uniform(0.2, 3.0, size=n)


def test_a_path_is_its_solutions_one_by_one():
    x, reward, weight = rows()
    made = replicates.standardised(x, reward, weight)
    counts = np.random.default_rng(1).multinomial(120, np.full(120, 1 / 120), size=4)
    G, q, _ = replicates.moments(made, counts * weight)
    lams = replicates.penalties(q[0], 120, 12, "lasso")
    whole = replicates.along(G, q, lams, "lasso")
    for i, lam in enumerate(lams):
        alone = replicates.along(G, q, lams[[i]], "lasso")[:, 0]
        np.testing.assert_allclose(whole[:, i], alone, atol=2e-6)
        for b in range(4):
            fit = Lasso(alpha=lam, tol=1e-12, max_iter=100_000)
            fit.fit(made.columns[:, :-1], made.columns[:, -1], sample_weight=counts[b] * weight)
            np.testing.assert_allclose(whole[b, i], fit.coef_, atol=1e-5)


def test_ridge_is_scikit_learns():
    x, reward, weight = rows()
    made = replicates.standardised(x, reward, weight)
    G, q, _ = replicates.moments(made, weight[None])
    for lam in (0.01, 1.0):
        theta = replicates.along(G, q, np.array([lam]), "ridge")[0, 0]
        fit = Ridge(alpha=lam * weight.sum()).fit(
            made.columns[:, :-1], made.columns[:, -1], sample_weight=weight
        )
        np.testing.assert_allclose(theta, fit.coef_, atol=1e-9)
    near = ElasticNet(alpha=1.0, l1_ratio=1e-6, tol=1e-12).fit(
        made.columns[:, :-1], made.columns[:, -1], sample_weight=weight
    )
    np.testing.assert_allclose(theta, near.coef_, atol=1e-4)


def test_the_penalty_is_that_of_scikit_learns_cross_validation():
    x, reward, _ = rows()
    made = replicates.standardised(x, reward, np.ones(120))
    q = replicates.moments(made, np.ones((1, 120)))[1][0]
    lams = replicates.penalties(q, 120, 15, "lasso")
    folds = [(np.flatnonzero(np.arange(120) % 5 != f), np.flatnonzero(np.arange(120) % 5 == f))
             for f in range(5)]  # fmt: skip
    fit = LassoCV(alphas=lams, cv=folds, tol=1e-10, max_iter=100_000).fit(
        made.columns[:, :-1], made.columns[:, -1]
    )
    assert replicates.chosen(made, lams, 5, "lasso") == pytest.approx(fit.alpha_)


@pytest.mark.parametrize("penalty", ["lasso", "ridge"])
def test_a_path_ends_earlier_where_replicates_have_fewer_rows_than_columns(penalty):
    """As `lambda.min.ratio` has it in glmnet: at a hundredth, and not at a thousandth."""
    q = np.linspace(-1.0, 0.5, 20)
    short, long = (replicates.penalties(q, n, 7, penalty) for n in (31, 32))
    assert short[0] == pytest.approx(long[0])
    assert short[-1] == pytest.approx(0.01)
    assert long[-1] == pytest.approx(0.001)


def learned(n=60, **settings):
    belief = Bootstrap(**settings).belief(2, 3, seed=np.random.SeedSequence(4))
    rng = np.random.default_rng(2)
    x, arm = rng.normal(size=(n, 3)), np.arange(n) % 2
    reward = np.where(arm == 0, x[:, 0], -x[:, 1]) + 0.1 * rng.normal(size=n)
    belief.update(x, arm, reward)
    return belief, x, arm, reward


def test_replicates_are_fits_of_rows_that_are_drawn_again():
    belief, x, arm, reward = learned(lam=0.05, replicates=20)
    mine, rng = arm == 0, belief.rng(0)
    counts = rng.multinomial(30, np.full(30, 1 / 30), size=20)
    made = replicates.standardised(x[mine], reward[mine], np.ones(30))
    for b in (0, 7, 19):
        copies = np.repeat(np.arange(30), counts[b])
        fit = Lasso(alpha=0.05, tol=1e-12).fit(made.columns[copies, :-1], made.columns[copies, -1])
        wanted = made.shift[-1] + made.width[-1] * fit.predict(
            (x - made.shift[:-1]) / made.width[:-1]
        )
        np.testing.assert_allclose(belief.values(x)[:, 0, b], wanted, atol=1e-5)


@pytest.mark.parametrize("penalty", ["lasso", "ridge"])
@pytest.mark.parametrize("degree", [1, 2])
def test_they_are_near_the_truth_and_spread_as_an_estimate_does(penalty, degree):
    belief, x, *_ = learned(400, penalty=penalty, degree=degree)
    mean, sd = moments_of(belief, x[:50])
    truth = np.stack([x[:50, 0], -x[:50, 1]], axis=1)
    assert np.abs(mean - truth).max() < 0.15
    assert 0.1 < (np.abs(mean - truth) / sd).mean() < 3
