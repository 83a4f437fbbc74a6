"""The linear belief against scikit-learn, the textbook and quadrature, and its sandwich."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

import bayesbandit as bb
from bayesbandit import Ridge
from tests import oracle
from tests.cases import few, moments_of, slow_but
from tests.players import pickled

VARIANCES = ["empirical_bayes", "rss/n", "rss", "nig", 0.3]
INTERCEPTS = [True, "unpenalised", False]
seeds = st.integers(0, 2**32 - 1)
close = {"rtol": 1e-8, "atol": 1e-8}


def data(seed, n, d=3, K=1):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)) + 0.5
    r = 2.0 + x @ rng.normal(size=d) + rng.normal(size=n)
    return x, rng.integers(0, K, n), r, rng.uniform(0.1, 6.0, n)


def learned(model, x, arm, r, w=None, K=1, normalize=False):
    belief = model.belief(K, x.shape[1], normalize)
    belief.update(x, arm, r, w)
    return belief


def only(model, x, r, w=None, **settings):
    """The posterior of a single arm."""
    return learned(model, x, np.zeros(len(r), int), r, w, **settings).posterior(0)


@few("[0.3-True]")
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("variance", VARIANCES)
@given(seed=seeds, n=st.integers(5, 40), lam=st.sampled_from([0.01, 1.0, 30.0]))
def test_equals_scikit_learn(variance, intercept, seed, n, lam):
    x, _, r, w = data(seed, n)
    posterior = only(Ridge(lam, variance, intercept, prior=(0.7, 2.0)), x, r, w)
    theta = oracle.sklearn_ridge(x, r, w, lam, intercept)
    B = oracle.precision(x, w, lam, intercept)
    sigma2, df = oracle.noise(x, r, w, lam, variance, intercept, prior=(0.7, 2.0))
    np.testing.assert_allclose(posterior.location, theta, **close)
    np.testing.assert_allclose(posterior.spread, sigma2 * np.linalg.inv(B), **close)
    assert posterior.df == df
    assert posterior.engine == ("normal_inverse_gamma" if variance == "nig" else "exact_gaussian")
    probe = data(seed + 1, 4)[0]
    mean, scale = oracle.moments(oracle.design(probe, intercept), theta, posterior.spread)
    np.testing.assert_allclose(posterior.mean(probe), mean, **close)
    sd = scale if df == np.inf else stats.t(df, 0, scale).std()
    np.testing.assert_allclose(posterior.sd(probe), sd, **close)
    covariance = posterior.coefficients["theta"][1]
    np.testing.assert_allclose(
        covariance, posterior.spread * (1.0 if df == np.inf else df / (df - 2)), **close
    )


@pytest.mark.parametrize("w", [None, 2.5])
def test_normal_inverse_gamma_by_numerical_integration(w):
    """θ's marginal density ∝ ∫ N(r; xθ, σ²/w) N(θ; 0, σ²/λ) IG(σ²; a, b) dσ², on a grid of θ."""
    a, b, lam = 1.5, 0.8, 2.0
    x, r = np.array([[0.5], [-1.0], [2.0]]), np.array([1.0, 0.3, 1.7])
    weight = np.full(3, 1.0 if w is None else w)
    posterior = only(Ridge(lam, "nig", False, prior=(a, b)), x, r, None if w is None else weight)
    belief = stats.t(posterior.df, posterior.location[0], np.sqrt(posterior.spread[0, 0]))

    def joint(sigma2, theta):
        likelihood = stats.norm.pdf(r, x[:, 0] * theta, np.sqrt(sigma2 / weight)).prod()
        prior = stats.norm.pdf(theta, 0, np.sqrt(sigma2 / lam))
        return likelihood * prior * stats.invgamma.pdf(sigma2, a, scale=b)

    theta = np.array([-0.4, 0.2, 0.7, 1.1, 2.0])
    marginal = [integrate.quad(joint, 0, np.inf, args=(t,), epsabs=1e-13)[0] for t in theta]
    ratio = np.array(marginal) / belief.pdf(theta)
    np.testing.assert_allclose(ratio / ratio[0], 1.0, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("normalize", slow_but([True], [False, True]))
@given(seed=seeds, n=st.integers(1, 30), folds=st.integers(2, 5))
@few("True-unp")
def test_cross_validation_equals_scikit_learn_fold_by_fold(intercept, normalize, seed, n, folds):
    """Two arms, each with folds of its own."""
    grid = (0.05, 1.0, 20.0)
    x, arm, r, w = data(seed, n, d=2, K=2)
    model = Ridge("cv", intercept=intercept, grid=grid, folds=folds)
    belief = learned(model, x, arm, r, w, 2, normalize)
    for k in range(2):
        mine = arm == k
        if mine.any():
            scaled = w[mine] / (w[mine].mean() if normalize else 1.0)
            lam = oracle.cross_validated(x[mine], r[mine], scaled, grid, folds, intercept)
            assert belief.lam[k] == lam
            theta = oracle.sklearn_ridge(x[mine], r[mine], scaled, lam, intercept)
            np.testing.assert_allclose(belief.posterior(k).location, theta, **close)


def test_before_any_data():
    """An unseen arm has variance x'x σ²/λ: the precision's inverse, not the precision."""
    x = np.array([[1.0, 2.0], [0.0, 0.0]])
    known = Ridge(4.0, 0.5, intercept=False).belief(2, 2)
    mean, sd = moments_of(known, x)
    np.testing.assert_array_equal(mean, np.zeros((2, 2)))
    np.testing.assert_allclose(sd, np.sqrt(0.5 * np.array([[5.0, 5.0], [0.0, 0.0]]) / 4.0), **close)
    np.testing.assert_allclose(known.posterior(0).sd(x), sd[:, 0], **close)
    for model in (Ridge(), Ridge(variance="rss"), Ridge(variance=1.0, intercept="unpenalised")):
        belief = model.belief(1, 2)
        np.testing.assert_array_equal(moments_of(belief, x)[1], np.inf)
        posterior = belief.posterior(0)
        np.testing.assert_array_equal(posterior.sd(x), np.inf)
        np.testing.assert_array_equal(posterior.mean(x), 0.0)
        with pytest.raises(ValueError, match="not proper before"):
            posterior.draw(x, 1, np.random.default_rng(0))
    nig = Ridge(2.0, "nig", False, prior=(3.0, 6.0)).belief(1, 2)
    np.testing.assert_allclose(
        moments_of(nig, x[:1])[1], stats.t(6, 0, np.sqrt(2 * 5 / 2)).std(), **close
    )


def test_a_posterior_of_two_degrees_of_freedom_has_infinite_variances_and_no_nan():
    x = np.eye(2)  # so that the coefficients are independent
    for n in range(3):
        posterior = only(Ridge(2.0, "nig", False, prior=(0.5, 1.0)), x[:n], np.ones(n))
        covariance = posterior.coefficients["theta"][1]
        assert posterior.df == 1.0 + n
        expected = 3.0 if n == 2 else np.inf  # df / (df − 2) at three
        np.testing.assert_allclose(covariance, np.diag(expected * np.diag(posterior.spread)))


@pytest.mark.parametrize("variance", ["rss/n", "nig"])
def test_draws_follow_the_posterior(variance, rng):
    x, _, r, w = data(4, 9)
    posterior = only(Ridge(variance=variance), x, r, w)
    probe = x[:2]
    draws = posterior.draw(probe, 20_000, rng)
    assert draws.shape == (20_000, 2)
    belief = stats.norm if variance == "rss/n" else stats.t(posterior.df)
    mean, scale = oracle.moments(oracle.design(probe), posterior.location, posterior.spread)
    for i in range(2):
        z = (draws[:, i] - mean[i]) / scale[i]
        assert stats.kstest(z, belief.cdf).pvalue > 0.01
    np.testing.assert_allclose(draws.std(axis=0), posterior.sd(probe), rtol=0.05)
    theta = oracle.design(probe)
    expected = theta @ posterior.coefficients["theta"][1] @ theta.T
    np.testing.assert_allclose(np.cov(draws.T), expected, rtol=0.08)  # one draw spans all contexts


def test_arms_begin_a_cache_line_however_they_came_to_be(tmp_path):
    """A kernel takes longer where they do not."""
    for K in (2, 3, 4, 5, 7, 10, 14, 29):
        made = bb.LinTS(K, 3)
        made.save(tmp_path / "b")
        grown = made.copy()
        grown.add_arm("more")
        grown.remove_arm(0)
        others = made, made.copy(), pickled(made), bb.Bandit.load(tmp_path / "b"), grown
        for belief in (made.belief.fork(), *(bandit.belief for bandit in others)):
            assert belief.arms.ctypes.data % 64 == 0


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
