"""Marginal distributions in closed form, and quantiles of all posteriors."""

import numpy as np
import pytest
from scipy import stats

import bayesbandit as bb

RNG = np.random.default_rng(5)
X = RNG.normal(size=(30, 2))
REWARDS = {"real": X @ [1.0, -0.5] + RNG.normal(size=30), "binary": 1.0 * (RNG.random(30) < 0.3)}


def by_sd():
    """A precision that scales both the rewards' noise and the prior."""
    import pymc as pm

    @bb.reward_model(tau=bb.Prior("Gamma", alpha=2, beta=1))
    def precise(x, reward, weight, tau):
        theta = pm.Normal("theta", 0, 1 / pm.math.sqrt(tau), dims="feature")
        mu = x @ theta
        pm.Normal("reward", mu, 1 / pm.math.sqrt(tau * weight), observed=reward, dims="row")
        return mu

    return precise


MODELS = {
    "ridge_known_noise": lambda: bb.load_model("ridge_known_noise"),
    "ridge": lambda: bb.load_model("ridge"),
    "by precision": by_sd,
    "beta_bernoulli": lambda: bb.load_model("beta_bernoulli"),
    "gamma_poisson": lambda: bb.load_model("gamma_poisson"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_marginal_is_what_is_drawn(name):
    """Its moments are those of `coefficients`; draws have its distribution (Kolmogorov–Smirnov)."""
    kind = "binary" if name in ("beta_bernoulli", "gamma_poisson") else "real"
    fit = bb.fit(MODELS[name](), X, REWARDS[kind], seed=1)
    draws = fit.samples(4000, np.random.default_rng(0))
    assert set(fit.marginals) == set(draws)
    for variable, marginal in fit.marginals.items():
        mean, spread = fit.coefficients[variable]
        np.testing.assert_allclose(marginal.mean(), mean, rtol=1e-9)
        sd = np.sqrt(np.diag(spread)) if np.ndim(mean) else spread
        np.testing.assert_allclose(marginal.std(), sd, rtol=1e-7)
        p = np.asarray(marginal.cdf(draws[variable])).reshape(4000, -1)
        assert all(stats.kstest(column, "uniform").pvalue > 1e-4 for column in p.T)
        found = fit.quantiles(variable, [0.1, 0.5])
        assert found.shape == (2, *np.shape(mean))
        np.testing.assert_allclose(marginal.cdf(found[1]), 0.5)


@pytest.mark.slow
def test_of_draws_there_are_quantiles_of_all_and_no_marginals():
    model = bb.load_model("laplace")
    fit = bb.fit(model, X, REWARDS["real"], seed=1, draws=400, chains=2)
    assert fit.marginals == {}
    assert fit.draws["theta"].shape == (800, 2)
    found = fit.quantiles("theta", [0.25, 0.75])
    np.testing.assert_array_equal(found, np.quantile(fit.draws["theta"], [0.25, 0.75], axis=0))
    with pytest.raises(ValueError, match=r"no variable 'beta'; there are .*theta"):
        fit.quantiles("beta", [0.5])
    for p in ([0.0], [1.0], [np.nan], [[0.5]]):
        with pytest.raises(ValueError, match="probabilities"):
            fit.quantiles("theta", p)


@pytest.mark.parametrize("variance", [1.0, "nig"])
def test_what_a_bandit_knows_of_an_arm(variance):
    bandit = bb.LinTS(2, 2, variance=variance)
    bandit.update(X, np.arange(30) % 2, REWARDS["real"])
    known = bandit.posterior(0)
    marginal, (mean, covariance) = known.marginals["theta"], known.coefficients["theta"]
    np.testing.assert_allclose(marginal.mean(), mean)
    np.testing.assert_allclose(marginal.var(), np.diag(covariance))
    np.testing.assert_allclose(known.quantiles("theta", [0.5])[0], mean)
    with pytest.raises(ValueError, match="no variable 'sigma'; there is theta"):
        known.quantiles("sigma", [0.5])
