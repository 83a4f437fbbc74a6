"""`fit`: what it takes, what it refuses, and that it is right where the answer is known,
in double precision whatever `pytensor.config.floatX` is."""

import pickle

import numpy as np
import pandas as pd
import pytensor
import pytest
from scipy import stats

import bayesbandit as bb
from bayesbandit.inference import plan
from bayesbandit.posteriors.fitting import fit
from bayesbandit.runtime.pytensor_lock import COMPILE
from tests import declarations as declared


@pytest.mark.slow
def test_without_rows_the_posterior_is_the_prior():
    posterior = fit(declared.known, np.zeros((0, 2)), [])
    mean, covariance = posterior.coefficients["theta"]
    np.testing.assert_allclose(mean, 0.0)
    np.testing.assert_allclose(covariance, 4.0 * np.eye(2), rtol=1e-12)
    variance, sd = fit(declared.conjugate, np.zeros((0, 2)), []).coefficients["variance"]
    assert variance == pytest.approx(1.0)  # of InverseGamma(3, 2)
    assert sd == pytest.approx(1.0)


@pytest.mark.slow
def test_moments_of_laplaces_approximation_do_not_depend_on_draws():
    """Of a model that is no generalised linear one, with a scale that is learned."""
    x, reward, weight = declared.rows()
    one, other = (
        fit(declared.heavy, x, reward, weight, engine="laplace", draws=d, seed=d)
        for d in (100, 150)
    )
    np.testing.assert_array_equal(one.mean(x), other.mean(x))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(one)).mean(x), one.mean(x))
    normal = one.plan.method.target.on(one.rows).laplace()
    assert one.plan.outcomes.names == ("scale", "theta")
    theta, scale = one.coefficients["theta"], one.coefficients["scale"]
    np.testing.assert_allclose(theta[0], normal.mean[1:], rtol=1e-9)
    np.testing.assert_allclose(theta[1], normal.covariance[1:, 1:], rtol=1e-9)
    m, v = normal.mean[0], normal.covariance[0, 0]  # of the logarithm
    np.testing.assert_allclose(scale[0], np.exp(m + v / 2), rtol=1e-3)
    np.testing.assert_allclose(scale[1], scale[0] * np.sqrt(np.expm1(v)), rtol=0.02)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"weight": -np.ones(40)}, "weights must be > 0"),
        ({"n_arms": 2}, "does not take `arm`; n_arms must be None"),
        ({"engine": "fast"}, "engine must be one of"),
        ({"draws": 0}, "draws must be an integer ≥ 4"),
        ({"chains": 0}, "chains must be an integer ≥ 1"),
        ({"seed": -1}, "seed must be an integer ≥ 0"),
        ({"seed": 0.5}, "seed must be an integer ≥ 0"),
        ({"tune": -1}, "tune must be an integer ≥ 0; got -1"),
        ({"cores": 0}, "cores must be an integer ≥ 1; got 0"),
        ({"target_accept": 1.0}, "target_accept must be a finite number > 0 and < 1; got 1.0"),
        ({"tune": 5}, "tune is a knob of 'gibbs' and 'nuts'; the engine of known is 'exact_gau"),
        ({"cores": 2, "engine": "laplace"}, "cores is a knob of 'nuts'.* known is 'laplace'"),
        ({"tune": 0, "engine": "nuts"}, "tune, of 'nuts', must be an integer ≥ 1; got 0"),
    ],
)
def test_what_is_wrong_is_said_at_the_door(change, complaint):
    x, reward, weight = declared.rows()
    with pytest.raises(ValueError, match=complaint):
        fit(declared.known, **{"x": x, "reward": reward, "weight": weight} | change)


CONTEXTS = declared.rows()[0]


@pytest.mark.parametrize(
    ("x", "complaint"),
    [
        (
            pd.DataFrame(CONTEXTS, columns=["age", "dose", "size"]).assign(dose="red"),
            "'dose' has 'red'",
        ),
        (
            pd.DataFrame(CONTEXTS).assign(day=pd.Timestamp("2020-01-01")),
            "column 'day' has Timestamp",
        ),
        (
            pd.DataFrame(CONTEXTS).assign(n=pd.array([1, None] * 20, dtype="Int64")),
            "column 'n' has <NA>",
        ),
        (np.c_[CONTEXTS.astype(object), ["a"] * 40], "column 3 has 'a'"),
        (np.c_[CONTEXTS, ["a"] * 40], "column 3 has 'a'"),
        (CONTEXTS.astype(str), "column 0 has '0.12573"),
        ([[0.3, "1"]] * 40, "column 1 has '1'"),
    ],
)
def test_what_is_no_number_is_named_with_its_column(x, complaint):
    with pytest.raises(ValueError, match=f"contexts must be numbers: .*{complaint}"):
        fit(declared.known, x, declared.rows()[1])


def test_only_a_reward_model_is_fitted():
    with pytest.raises(TypeError, match="must be a RewardModel"):
        fit(declared.known.function, np.ones((2, 2)), np.ones(2))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bayesbandit.inference.draws.PoorDiagnostics")
def test_sweeps_before_the_draws_are_thrown_away():
    """With one seed, 10 sweeps before 20 draws are the first 10 of 30."""
    rows = declared.rows()
    late = fit(declared.lasso, *rows, seed=1, draws=20, chains=1, tune=10)
    early = fit(declared.lasso, *rows, seed=1, draws=30, chains=1, tune=0)
    np.testing.assert_array_equal(late.known.values["theta"], early.known.values["theta"][:, 10:])


def fitted(model, floatx, monkeypatch, **how):
    """Mean, sd, coefficients and log likelihood by plans made from scratch."""
    x, reward, weight = declared.rows()
    arm = {"arm": np.arange(40) % 2} if model.takes_arm else {}
    monkeypatch.setattr(plan, "_built", {})
    with pytensor.config.change_flags(floatX=floatx):
        posterior = bb.fit(model, x, reward, weight, seed=1, draws=20, chains=2, **arm, **how)
        coefficients = [np.concatenate([np.ravel(v) for v in m])
                        for m in posterior.coefficients.values()]  # fmt: skip
        tree = posterior.to_datatree(2, 20)
        groups = [v.values for k in ("prior", "log_likelihood") if k in tree.children
                  for v in tree[k].data_vars.values()]  # fmt: skip
        found = [posterior.mean(x), posterior.sd(x), *coefficients, *groups]
    assert pytensor.config.floatX == "float64"
    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("model", "how"),
    [
        (declared.known, {}),
        (declared.lasso, {}),
        (declared.heavy, {}),
        (declared.known, {"engine": "laplace"}),
    ],
    ids=lambda v: getattr(v, "name", v),
)
def test_a_fit_is_bit_for_bit_that_of_double_precision(model, how, monkeypatch):
    double = fitted(model, "float64", monkeypatch, **how)
    single = fitted(model, "float32", monkeypatch, **how)
    for a, b in zip(double, single, strict=True):
        assert b.dtype == np.float64
        np.testing.assert_array_equal(a, b)


def test_the_setting_comes_back_also_after_an_error():
    with pytensor.config.change_flags(floatX="float32"):
        with COMPILE, COMPILE:
            assert pytensor.config.floatX == "float64"
        with pytest.raises(ZeroDivisionError), COMPILE:
            raise ZeroDivisionError
        assert pytensor.config.floatX == "float32"


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
    for p in ([0.0], [1.0], [np.nan], [[0.5]], []):
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
