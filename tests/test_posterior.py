"""Posteriors: moments against draws, variables, and what ArviZ makes of them."""

import warnings

import arviz as az
import matplotlib
import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from pymc.model.transform.conditioning import remove_value_transforms
from scipy.stats import norm

import bayesbandit as bb
from bayesbandit.declaring.priors import Prior
from bayesbandit.inference.draws import PoorDiagnostics, SampledDraws
from bayesbandit.inference.plan import plan
from bayesbandit.posteriors.fitting import fit
from bayesbandit.posteriors.posterior import Posterior
from tests import declarations as declared
from tests.cases import in_gate, slow_but

matplotlib.use("Agg")

GROUPS = {"posterior", "prior", "prior_predictive", "posterior_predictive", "log_likelihood",
          "log_prior", "sample_stats", "observed_data", "constant_data"}  # fmt: skip
FREQUENT = [declared.known, declared.conjugate, declared.pooled]
MODELS = [*FREQUENT, declared.noncentred, declared.potential, declared.squared]


def fitted(model, **how):
    x, reward, weight = declared.rows()
    arm = {"arm": np.arange(40) % 2} if model.takes_arm else {}
    return fit(model, x, reward, weight, seed=3, **arm, **how), x[:4]


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_mean_rewards_of_samples_are_those_of_the_linear_map(model):
    posterior, x = fitted(model)
    method = posterior.plan.method
    samples = posterior.samples(7, np.random.default_rng(0))
    found = posterior.plan.outcomes.mean_reward(samples, x)
    if model is declared.squared:  # no linear map
        np.testing.assert_allclose(found, (samples["theta"] @ x.T) ** 2)
        return
    theta = np.concatenate([samples[k].reshape(7, -1) for k in method.slices], axis=1)
    A, b = method.linear_map(x)
    np.testing.assert_allclose(found, np.einsum("n...d,sd->sn...", A, theta) + b)


@pytest.mark.slow
def test_deterministic_quantities_are_coefficients():
    centred = declared.known.with_priors(theta=Prior("Normal", mu=1, sigma=3, dims="feature"))
    other, _ = fitted(centred)
    posterior, _ = fitted(declared.noncentred)
    assert list(posterior.coefficients) == ["theta_offset", "theta"]
    pairs = zip(posterior.coefficients["theta"], other.coefficients["theta"], strict=True)
    for found, true in pairs:
        np.testing.assert_allclose(found, true, rtol=1e-9, atol=1e-12)
    names = {"theta_offset", "theta", "mean_reward"}
    assert set(posterior.to_datatree(2, 50)["posterior"]) == names


@pytest.mark.slow
def test_trees_of_other_numbers_of_rows_warn_of_nothing():
    x = np.random.default_rng(0).normal(size=(7, 2))
    with warnings.catch_warnings(action="error"):
        for n in (7, 0, 3):
            fit(declared.known, x[:n], x[:n].sum(axis=1), seed=0).to_datatree()


@pytest.mark.slow
@pytest.mark.parametrize("model", FREQUENT, ids=lambda m: m.name)
def test_the_tree_has_all_groups_and_names(model):
    posterior, _ = fitted(model)
    arms = ["no", "yes"] if model.takes_arm else None
    tree = posterior.to_datatree(2, 300, features=["a", "b", "c"], arms=arms)
    assert isinstance(tree, xr.DataTree)
    assert set(tree.children) == GROUPS
    for group in ("posterior", "prior"):
        assert list(tree[group]["theta"].coords["feature"].values) == ["a", "b", "c"]
        if model.takes_arm:
            assert list(tree[group]["theta"].coords["arm"].values) == ["no", "yes"]
    assert tree["posterior"]["theta"].sizes["chain"] == 2
    assert tree["posterior"]["theta"].sizes["draw"] == 300
    assert tree.attrs["engine"] == tree["posterior"].attrs["engine"] == posterior.engine
    x, reward, weight = declared.rows()
    np.testing.assert_array_equal(tree["observed_data"]["reward"], reward)
    np.testing.assert_array_equal(tree["constant_data"]["weight"], weight)
    np.testing.assert_array_equal(tree["constant_data"]["x"], x)
    assert tree["posterior_predictive"]["reward"].shape == (2, 300, 40)
    again = posterior.to_datatree(chains=2, draws=300)
    np.testing.assert_array_equal(again["prior"]["theta"], tree["prior"]["theta"])
    np.testing.assert_array_equal(
        again["posterior_predictive"]["reward"], tree["posterior_predictive"]["reward"]
    )


@pytest.mark.slow
def test_the_log_likelihood_is_unweighted_and_the_posterior_is_not():
    posterior, _ = fitted(declared.known)
    x, reward, weight = declared.rows()
    tree = posterior.to_datatree(chains=1, draws=100)
    theta = tree["posterior"]["theta"].values[0]
    mean = tree["posterior"]["mean_reward"]
    assert mean.dims == ("chain", "draw", "row")
    np.testing.assert_allclose(mean.values[0], theta @ x.T, rtol=1e-10)
    expected = norm.logpdf(reward, theta @ x.T, declared.SIGMA)
    np.testing.assert_allclose(tree["log_likelihood"]["reward"].values[0], expected, rtol=1e-10)
    spread = tree["posterior_predictive"]["reward"].values[0].std(axis=0)
    assert np.corrcoef(spread, 1 / np.sqrt(weight))[0, 1] > 0.8


@pytest.mark.slow
def test_arviz_works_on_the_tree():
    full, _ = fitted(declared.known)
    narrow = declared.known.with_priors(theta=Prior("Normal", mu=0, sigma=0.1, dims="feature"))
    other, _ = fitted(narrow)
    trees = {"wide": full.to_datatree(), "narrow": other.to_datatree()}
    summary = az.summary(trees["wide"], var_names=["theta"])
    assert list(summary.index) == ["theta[0]", "theta[1]", "theta[2]"]
    assert np.isfinite(az.loo(trees["wide"]).elpd)
    assert next(iter(az.compare(trees).index)) == "wide"
    az.plot_forest(trees["wide"], var_names=["theta"])
    az.plot_ppc_dist(trees["wide"])
    prior = {
        k: az.psense_summary(t, var_names=["theta"], round_to=6)["prior"] for k, t in trees.items()
    }
    assert (prior["narrow"] > 0.05).any()
    assert (prior["wide"] < 0.05).all()


@bb.reward_model(theta=bb.Prior("Normal", mu=0, sigma=100, dims="feature"))
def wide_counts(x, reward, weight, theta):
    """Its prior has means of e^100, from which no count can be drawn."""
    rate = pm.math.exp(x @ theta)
    pm.Poisson("reward", rate, observed=reward)
    return rate


@bb.reward_model(theta=declared.NORMAL)
def by_a_sum(x, reward, weight, theta):
    pm.Potential("balance", -((reward - x @ theta).sum() ** 2))
    return declared.normal_rewards(x @ theta, 1, reward)


LEFT_OUT = [  # a model, what is said, and the groups that are left out
    (
        declared.potential,
        "posterior_predictive: no variable is observed",
        {"prior_predictive", "posterior_predictive"},
    ),
    (
        declared.known.with_priors(theta=Prior("Flat", dims="feature")),
        "prior",
        {"prior", "prior_predictive"},
    ),
    (wide_counts, "prior_predictive: lam value too lar", {"prior_predictive"}),
    (by_a_sum, "log_likelihood: the potential 'balance' is no", {"log_likelihood"}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("model", "said", "groups"), LEFT_OUT)
@in_gate(4)
def test_what_cannot_be_drawn_is_left_out_and_said(model, said, groups):
    x, reward, weight = declared.rows(8)
    counts = model is wide_counts
    engine = "laplace" if counts else "auto"
    posterior = fit(model, x, np.arange(8.0) if counts else reward, weight, engine=engine, seed=0)
    with pytest.warns(UserWarning, match=f"the tree is without {said}"):
        tree = posterior.to_datatree(chains=1, draws=50)
    assert set(tree.children) == GROUPS - groups


def sampled(values, **said):
    rows, draws = declared.data(), SampledDraws({"theta": values}, **said)
    return Posterior(plan(declared.known, 3, engine="laplace"), rows, draws, 0), rows["x"]


@pytest.mark.slow
def test_a_sampled_posterior_is_its_draws():
    values = np.random.default_rng(0).normal(size=(4, 500, 3))
    posterior, x = sampled(values, divergences=0, acceptance=0.9)
    flat = values.reshape(-1, 3)
    np.testing.assert_allclose(posterior.mean(x), (flat @ x.T).mean(axis=0))
    np.testing.assert_allclose(posterior.sd(x), (flat @ x.T).std(axis=0, ddof=1))
    mean, covariance = posterior.coefficients["theta"]
    np.testing.assert_allclose(mean, flat.mean(axis=0))
    np.testing.assert_allclose(covariance, np.cov(flat.T))
    once = posterior.draw(x, 2000, np.random.default_rng(0))
    np.testing.assert_allclose(np.sort(once[:, 0]), np.sort(flat @ x[0]))
    assert posterior.draw(x, 3000, np.random.default_rng(0)).shape == (3000, 40)
    tree = posterior.to_datatree()
    np.testing.assert_array_equal(tree["posterior"]["theta"], values)
    assert tree.attrs["acceptance"] == 0.9
    assert tree.attrs["divergences"] == 0
    assert tree.attrs["rhat"] < 1.01
    assert tree.attrs["ess"] > 400


def test_poor_diagnostics_warn():
    rng = np.random.default_rng(0)
    apart = rng.normal(size=(4, 200, 3)) + np.arange(4)[:, None, None]
    posterior, _ = sampled(apart, divergences=3)
    with pytest.warns(PoorDiagnostics) as found:
        posterior.diagnostics.warn("known by nuts")
    text = str(found[0].message)
    assert text.startswith("known by nuts: R-hat of 'theta' is ")
    assert "the effective sample size of 'theta' is" in text
    assert "3 trajectories diverged" in text


FRAME = pd.DataFrame(declared.rows()[0], columns=["age", "dose", "weight"])


@pytest.mark.parametrize(
    "how", slow_but([{}], [{}, {"engine": "laplace"}]), ids=["exact", "sampled"]
)
def test_columns_are_found_by_name_in_any_order(how):
    """The posterior of a frame, asked about another: names decide where both have them."""
    _, reward, weight = declared.rows()
    posterior = fit(declared.known, FRAME, reward, weight, seed=1, **how)
    other = FRAME[["weight", "age", "dose"]]
    for moment in (posterior.mean, posterior.sd):
        np.testing.assert_array_equal(moment(other), moment(FRAME))
        np.testing.assert_array_equal(moment(FRAME.iloc[3][::-1]), moment(FRAME.iloc[[3]]))
        np.testing.assert_array_equal(moment(FRAME.to_numpy()), moment(FRAME))
    draws = [posterior.draw(x, 7, np.random.default_rng(0)) for x in (other, FRAME)]
    np.testing.assert_array_equal(*draws)
    assert posterior.mean(FRAME.to_numpy()[:, ::-1]) != pytest.approx(posterior.mean(FRAME))
    nameless = fit(declared.known, FRAME.to_numpy(), reward, weight, seed=1, **how)
    np.testing.assert_array_equal(nameless.mean(other), nameless.mean(other.to_numpy()))


@pytest.mark.parametrize(
    ("x", "complaint"),
    [
        (FRAME[["age", "weight"]], "lacks the column 'dose'; the fit was on 'age', 'dose'"),
        (FRAME.assign(height=1.0), "has the unknown column 'height'"),
        (FRAME[["age", "dose", "weight", "age"]], "has the column 'age' more than once"),
        (pd.DataFrame(FRAME.to_numpy()), "lacks the column 'age', 'dose', 'weight'"),
        (FRAME.iloc[0][["age", "dose"]], "lacks the column 'weight'"),
        (FRAME.to_numpy()[:, :2], r"contexts must have shape \(3,\) or \(n, 3\); got \(40, 2\)"),
        (FRAME[["weight", "age", "dose"]].assign(dose="red"), "column 'dose' has 'red'"),
    ],
)
def test_other_columns_than_the_fits_are_refused(x, complaint):
    posterior = fit(declared.known, FRAME, *declared.rows()[1:])
    for ask in (posterior.mean, posterior.sd, lambda x: posterior.draw(x, 2, None)):
        with pytest.raises(ValueError, match=complaint):
            ask(x)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", [*FREQUENT, declared.lasso, declared.noncentred], ids=lambda m: m.name
)
def test_the_log_prior_and_lp_are_those_of_the_declaration(model):
    how = {"draws": 20, "chains": 2} if model is declared.lasso else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PoorDiagnostics)
        posterior, _ = fitted(model, **how)
    tree = posterior.to_datatree(chains=2, draws=20, features=["a", "b", "c"])
    x, reward, weight = declared.rows()
    arm = np.arange(40) % 2 if model.takes_arm else None
    plain = remove_value_transforms(model.build(x, reward, weight, arm))
    terms = plain.compile_fn(plain.logp(plain.free_RVs, sum=False), mode="FAST_COMPILE")
    total = plain.compile_logp(jacobian=False, mode="FAST_COMPILE")
    for draw in ((0, 0), (1, 7)):
        point = {str(plain.rvs_to_values[v].name): tree["posterior"][v.name].values[draw]
                 for v in plain.free_RVs}  # fmt: skip
        for v, value in zip(plain.free_RVs, terms(point), strict=True):
            np.testing.assert_allclose(tree["log_prior"][v.name].values[draw], value, rtol=1e-9)
        lp = tree["sample_stats"]["lp"].values[draw]
        np.testing.assert_allclose(lp, total(point), rtol=1e-9)
    assert tree["sample_stats"]["lp"].dims == ("chain", "draw")


def normal(mu, reward):
    return pm.logp(pm.Normal.dist(mu, 0.5), reward)


WAYS = {
    "observed": lambda mu, reward: pm.Normal("reward", mu, 0.5, observed=reward),
    "custom": lambda mu, reward: pm.CustomDist(
        "reward", mu, logp=lambda value, mu: normal(mu, value), observed=reward
    ),
    "potential": lambda mu, reward: pm.Potential("fit", normal(mu, reward)),
    "two potentials": lambda mu, reward: (
        pm.Potential("one", 0.3 * normal(mu, reward)),
        pm.Potential("other", 0.7 * normal(mu, reward)),
    ),
    "both": lambda mu, reward: (
        pm.Normal("reward", mu, 1.0, observed=reward),
        pm.Potential("rest", normal(mu, reward) - pm.logp(pm.Normal.dist(mu, 1.0), reward)),
    ),
    "a sum": lambda mu, reward: pm.Potential("fit", normal(mu, reward).sum()),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The effect of Potentials", "ignore:the tree is without")
@pytest.mark.parametrize("way", list(WAYS))
def test_the_pointwise_log_likelihood_is_the_same_however_a_model_is_written(way):
    @bb.reward_model(theta=bb.Prior("Normal", mu=0, sigma=1, dims="feature"))
    def written(x, reward, weight, theta):
        WAYS[way](x @ theta, reward)
        return x @ theta

    rng = np.random.default_rng(0)
    x, reward = rng.normal(size=(12, 2)), rng.normal(size=12)
    tree = bb.fit(written, x, reward, seed=0).to_datatree(chains=2, draws=100)
    mu = tree["posterior"]["theta"].values @ x.T
    [found] = tree["log_likelihood"].ds.data_vars.values()
    np.testing.assert_allclose(found.values, norm.logpdf(reward, mu, 0.5), rtol=1e-8)
