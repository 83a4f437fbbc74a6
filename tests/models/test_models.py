"""Every file of models/, found by glob, passes the same suite."""

import ast
import inspect
import warnings
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pymc as pm
import pytest

import bayesbandit as bb
from bayesbandit.inference.nuts import Nuts
from tests.cases import few, in_gate, slow_but

ENGINES = {
    "bayesian_lasso": "gibbs",
    "beta_bernoulli": "conjugate",
    "censored_time": "nuts",
    "gamma_poisson": "conjugate",
    "heteroscedastic": "nuts",
    "hierarchical_logistic": "gibbs",
    "hierarchical_ridge": "exact_gaussian",
    "horseshoe": "gibbs",
    "laplace": "gibbs",
    "logistic": "gibbs",
    "ordinal": "nuts",
    "poisson": "nuts",
    "probit": "gibbs",
    "revenue": "nuts",
    "ridge": "normal_inverse_gamma",
    "ridge_known_noise": "exact_gaussian",
    "student_t": "gibbs",
    "student_t_mixture": "gibbs",
}
FILES = sorted((Path(__file__).parents[2] / "models").glob("*.py"))
N, D, K = 6, 3, 2
QUICK = {"mode": "FAST_COMPILE"}


UNLIKE = [f for f in FILES if f.stem in ("hierarchical_ridge", "horseshoe", "logistic", "ridge")]


@pytest.fixture(params=slow_but(UNLIKE, FILES), ids=lambda path: path.stem)
def model(request):
    return bb.load_model(request.param)


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def file(request):
    return request.param


def rows(rng, n=N):
    """Contexts, rewards of 0 and 1 (which every model takes), weights, arms."""
    x = rng.normal(size=(n, D))
    reward = rng.integers(0, 2, n).astype(float)
    return x, reward, rng.integers(1, 4, n).astype(float), rng.integers(0, K, n)


def build(model, x, reward, weight=None, arm=None):
    arms = {"arm": arm, "n_arms": K} if model.takes_arm else {}
    return model.build(x, reward, weight, **arms)


def point(built, rng):
    """A random point near the initial one, so that no term vanishes there."""
    return {k: v + 0.3 * rng.normal(size=v.shape) for k, v in built.initial_point().items()}


def log_density(built):
    return built.compile_logp(**QUICK)


def mean_reward(built, at):
    """Mean rewards (n,) at a point."""
    outputs = built.replace_rvs_by_values([built["mean_reward"]])
    settings = {"inputs": built.value_vars, "on_unused_input": "ignore"} | QUICK
    return built.compile_fn(outputs, **settings)(at)[0]


def set_rows(built, x, reward, weight, arm):
    new = {"x": x, "observed_reward": reward, "weight": weight, "arm_index": arm}
    pm.set_data({k: v for k, v in new.items() if k in built}, model=built)


def test_files_are_short_and_titled():
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        assert text.count("\n") <= 60, path.stem
        title = ast.get_docstring(ast.parse(text)).partition("\n")[0]
        assert title
        assert bb.list_models()[path.stem] == title
        assert bb.load_model(path).name == path.stem


@few("hierarchical")
@in_gate(len(FILES))
def test_builds_with_a_finite_density_at_any_number_of_rows(model, rng):
    x, reward, weight, arm = rows(rng)
    built = build(model, x, reward, weight, arm)
    assert set(built.named_vars_to_dims["mean_reward"]) == {"row"}
    assert built.coords["feature"] == tuple(range(D))
    assert built.coords["row"] is None
    assert ("arm" in built.coords) == model.takes_arm
    logp = log_density(built)
    assert np.isfinite(logp(built.initial_point()))
    for n in (1, N + 5):
        set_rows(built, *rows(rng, n))
        assert np.isfinite(logp(built.initial_point()))


@few("[ridge]")
def test_prior_predictive_and_mean_reward_have_a_value_for_each_row(model, rng):
    x, reward, _, arm = rows(rng)
    built = build(model, x, reward, arm=arm)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tree = pm.sample_prior_predictive(
            20,
            model=built,
            random_seed=1,
            compile_kwargs=QUICK,
            var_names=["mean_reward", "reward"],
        )
    mean, drawn = tree["prior"]["mean_reward"], tree["prior_predictive"]["reward"]
    assert mean.dims == drawn.dims == ("chain", "draw", "row")
    assert mean.shape == drawn.shape == (1, 20, N)
    assert np.isfinite(mean).all()
    assert len(np.unique(drawn)) > 1


@few("logistic")
def test_known_noise_whole_weights_are_repeated_rows(model, rng):
    """With σ fixed, log densities with weights and with repeated rows differ by a constant."""
    fixed = {name: 0.7 for name in ("sigma", "sigma2") if name in model.priors}
    model = model.with_priors(**fixed)
    x, reward, weight, arm = rows(rng)
    built = build(model, x, reward, weight, arm)
    if {"q", "gamma"} & {v.name for v in built.free_RVs} or "nu" in model.priors:
        pytest.skip("the noise is not known")
    points = [point(built, rng) for _ in range(3)]
    logp = log_density(built)
    weighted = np.array([logp(p) for p in points])
    again = weight.astype(int)
    set_rows(built, *(np.repeat(a, again, axis=0) for a in (x, reward, np.ones(N), arm)))
    repeated = np.array([logp(p) for p in points])
    np.testing.assert_allclose(np.diff(weighted - repeated), 0, atol=1e-10)
    assert abs(np.diff(weighted)).min() > 1e-3


@pytest.mark.parametrize("d", [1, D])
def test_the_engine_is_the_quickest_that_is_known(model, d):
    from bayesbandit.inference.plan import plan

    assert set(ENGINES) == set(bb.list_models())
    assert plan(model, d, K if model.takes_arm else None).engine == ENGINES[model.name]


RATES = np.array([0.05, 0.10, 0.20])


def rates_learned(declared, engine):
    """Mean rewards (K,) that a bandit predicts from 300 rewards of each arm, at `RATES`, and the
    best arm. The context is one feature that tells nothing."""
    arm = np.repeat(np.arange(3), 300)
    reward = np.concatenate([np.arange(300) < 300 * rate for rate in RATES]).astype(float)
    if "nu" in declared.priors:  # to a Student-t likelihood rare rewards of 1 are outliers
        reward = RATES[arm] + np.random.default_rng(6).permutation(np.resize([-0.3, 0.3], arm.size))
    x = np.random.default_rng(5).permutation(np.resize([-1.0, 1.0], arm.size))[:, None]
    bandit = bb.Bandit(3, bb.Declared(declared, engine=engine), bb.Thompson(), n_features=1, seed=0)
    bandit.update(x, arm, reward)
    mean = bandit.belief.predict(np.array([[-1.0], [1.0]])).mean.mean(axis=0)
    return mean, bandit.greedy([[-1.0], [1.0]])


MODES = "logistic", "probit", "poisson"


@few("[auto-logistic]", "[auto-ridge]", "auto-ridge_known", "[laplace-logistic]")
@pytest.mark.parametrize(
    ("engine", "name"), [*(("auto", f.stem) for f in FILES), *(("laplace", m) for m in MODES)]
)
@in_gate(6)
def test_ranks_arms_that_differ_by_a_constant_beside_an_idle_feature(engine, name):
    """Up to the prior: one row of each of five ratings adds .03 to a mean rating."""
    mean, best = rates_learned(bb.load_model(name), engine)
    np.testing.assert_allclose(mean, RATES, atol=0.035 if engine == "auto" else 0.02)
    assert (best == 2).all()


@few("[logistic]", "[ridge]")
def test_an_intercept_of_0_is_none_and_changes_no_engine(file):
    model = bb.load_model(file)
    settings = {"n_arms": 2} if model.takes_arm else {}
    arguments = inspect.signature(model.function).parameters
    if not (names := [name for name in arguments if name.startswith("intercept")]):
        assert model.name in ("beta_bernoulli", "gamma_poisson", "ordinal")
        return
    without = model.with_priors(**dict.fromkeys(names, 0.0))
    engine = model.explain(2, **settings).partition("\n")[0]
    assert without.explain(2, **settings).partition("\n")[0] == engine
    x = np.zeros((1, 2))
    built = build(without, x, [1.0], arm=np.zeros(1, dtype=int))
    assert not [v for v in built.free_RVs if v.name.startswith("intercept")]


@pytest.mark.parametrize("name", ["ridge", "ridge_known_noise"])
def test_an_intercept_leaves_a_closed_form_its_compiled_rounds(name):
    bandit = bb.Bandit(2, bb.load_model(name), bb.Thompson(), n_features=2)
    assert bandit.kernel is not None
    assert bandit.deciding is not None


def test_horseshoe_scales_are_half_cauchy(rng):
    """sqrt(λ²) has the quartiles tan(π/8), 1 and tan(3π/8); standard errors below .012."""
    built = bb.load_model("horseshoe").build(*rows(rng)[:2])
    lambda2 = pm.draw(built["lambda2"], 2000, random_seed=3, **QUICK).ravel()
    below = [(np.sqrt(lambda2) < np.tan(q * np.pi / 2)).mean() for q in (0.25, 0.5, 0.75)]
    np.testing.assert_allclose(below, [0.25, 0.5, 0.75], atol=0.03)


def test_student_t_is_the_mixture_over_q(rng):
    """∫ N(r; μ, σ²/(q w)) Gamma(q; ν/2, ν/2) dq is the Student-t density, one row."""
    from scipy.integrate import quad

    x, reward, weight, _ = (a[:1] for a in rows(rng))
    at = {"theta": rng.normal(size=D), "intercept": 0.3, "sigma2_log__": np.log(0.7)}
    direct = bb.load_model("student_t").build(x, reward, weight)
    mixed = bb.load_model("student_t_mixture").build(x, reward, weight)
    logp = mixed.compile_logp([mixed["q"], mixed["reward"]], jacobian=False, **QUICK)
    density = quad(lambda q: np.exp(logp({**at, "q_log__": np.log([q])})), 0, np.inf, limit=20)[0]
    want = direct.compile_logp([direct["reward"]], **QUICK)(at)
    np.testing.assert_allclose(np.log(density), want, atol=1e-5)


def test_logistic_takes_0_and_1_only_and_stays_finite_far_out():
    model, x = bb.load_model("logistic"), [[1.0, 0, 0], [-1, 0, 0]]
    built = model.build(x, [1, 2])
    assert log_density(built)(built.initial_point()) == -np.inf
    with pytest.raises(ValueError, match=r"whole numbers; got a reward of 0\.5"):
        model.build(x, [1, 0.5])
    built = model.build(x, [1, 0])
    logp = built.compile_logp([built["reward"]], **QUICK)
    for theta, expected in ((900.0, 0), (-900.0, -1800)):
        assert logp({"theta": np.array([theta, 0, 0]), "intercept": 0.0}) == expected


@pytest.mark.slow
def test_ordinal_is_an_ordered_logit(rng):
    """The log density is that of PyMC's `OrderedLogistic`, finite far out, and −∞ of no level."""
    x, theta, share = rng.normal(size=(15, D)), 3 * rng.normal(size=D), rng.dirichlet(np.ones(5))
    reward, weight = np.arange(15) % 5.0, rng.uniform(0.5, 2, 15)
    built = bb.load_model("ordinal").build(x, reward, weight)
    at = {
        "theta": theta,
        "share_simplex__": built.rvs_to_transforms[built["share"]].forward(share).eval(),
    }
    logp = built.compile_logp([built["reward"]], sum=False, **QUICK)
    cuts = np.log(np.cumsum(share)[:-1] / np.cumsum(share[::-1])[-2::-1])
    theirs = pm.logp(pm.OrderedLogistic.dist(eta=x @ theta, cutpoints=cuts), reward).eval()
    np.testing.assert_allclose(logp(at)[0], weight * theirs, rtol=1e-9)
    mean = mean_reward(built, at)
    p = pm.OrderedLogistic.compute_p(x @ theta, cuts).eval()
    np.testing.assert_allclose(mean, p @ np.arange(5.0), rtol=1e-12)
    for bad in (-1.0, 5.0):
        set_rows(built, x, np.full(15, bad), weight, None)
        assert (logp(at)[0] == -np.inf).all()
    set_rows(built, x, reward, weight, None)
    assert np.isfinite(logp(at | {"theta": 300 * theta})[0]).all()


@pytest.mark.slow
def test_revenue_and_censored_times_are_densities():
    """What is sold and what is not, times and those at the limit, integrate to 1, with the means
    that the models return."""
    from scipy.integrate import quad

    revenue = {"beta": [0.9], "theta": [0.5], "sigma_log__": np.log(0.6)}
    revenue |= {"intercept_sold": -0.5, "intercept_amount": -0.2}
    cases = {  # a point, the reward that has a mass of its own, and the largest one
        "revenue": (revenue, 0.0, 60.0),
        "censored_time": ({"theta": [1.2], "intercept": 0.5}, 10.0, 10.0),
    }
    for name, (at, atom, end) in cases.items():
        built = bb.load_model(name).build(np.ones((1, 1)), [1.0])
        logp = built.compile_logp([built["reward"]], **QUICK)
        at = {k: np.array(v) for k, v in at.items()}

        def density(reward, built=built, logp=logp, at=at):
            pm.set_data({"observed_reward": [reward]}, model=built)
            return float(np.exp(logp(at)))

        total, first = (
            quad(lambda r, k=k: r**k * density(r), 1e-12, end - 1e-12, limit=40, epsabs=1e-6)[0]
            for k in (0, 1)
        )
        mean = mean_reward(built, at)
        np.testing.assert_allclose(total + density(atom), 1.0, atol=1e-4)
        np.testing.assert_allclose(first + atom * density(atom), mean, rtol=1e-3)
        assert density(-1.0) == 0.0
    assert density(11.0) == 0.0


def test_the_mean_of_a_censored_time_is_its_limit_where_times_are_long():
    built = bb.load_model("censored_time").build([[1.0], [400.0]], [1.0, 1.0])
    theta = np.array([-3.0, -1.0, 0.0, 1.0, 3.0])
    points = [{"theta": np.array([at]), "intercept": np.array(0.0)} for at in theta]
    found = np.array([mean_reward(built, point) for point in points])
    m = np.exp(theta)  # of the exponential
    np.testing.assert_allclose(found[:, 0], m * (1 - np.exp(-10 / m)), rtol=1e-12)
    np.testing.assert_allclose(found[:, 1], [0, 0, 1 - np.exp(-10), 10, 10], atol=1e-12)


class ByNuts(Exception):
    """NUTS would compile."""


@few("hierarchical")
@in_gate(len(FILES))
def test_fit_uses_the_engine_that_explain_names_or_says_why_not(model, rng, monkeypatch):
    x, reward, _, arm = rows(rng, 30)
    n_arms = {"n_arms": K} if model.takes_arm else {}
    arms = n_arms | ({"arm": arm} if model.takes_arm else {})
    named = model.explain(D, **n_arms).splitlines()[0].split(": ")[1]
    monkeypatch.setattr(Nuts, "sample", Mock(side_effect=ByNuts))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            engine = bb.fit(model, x, reward, **arms, draws=50, chains=1, seed=0).engine
        except ByNuts:
            engine = "nuts"
    told = [str(w.message) for w in seen if "the engine that `explain` names" in str(w.message)]
    assert (engine != named) == bool(told)
