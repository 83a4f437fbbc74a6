"""Bandits whose belief is sampled: impossible rewards, draws that mix badly, compilation."""

import logging
import warnings
from types import SimpleNamespace

import numpy as np
import nutpie
import pymc as pm
import pytest

import bayesbandit as bb
from bayesbandit.inference.draws import PoorDiagnostics, SampledDraws, mixed_badly
from bayesbandit.inference.plan import Plan, plan
from bayesbandit.model import RewardModel
from tests.beliefs.by_draws import believed
from tests.cases import few, in_gate
from tests.players import anatomy

POISSON, LOGISTIC = bb.load_model("poisson"), bb.load_model("logistic")


@bb.reward_model(theta=bb.Prior("Normal", mu=0, sigma=1, dims=("arm", "feature")))
def counts(x, reward, weight, arm, theta):
    mu = pm.math.exp((x * theta[arm]).sum(axis=-1))
    pm.Potential("fit", weight * pm.logp(pm.Poisson.dist(mu), reward))
    return mu


@bb.reward_model()
def amounts(x, reward, weight):
    """Amounts whose logarithm is a linear model; arms are ranked by the mean amount."""
    theta = pm.Normal("theta", 0, 1, dims="feature")
    pm.LogNormal("amount", x @ theta, 1 / pm.math.sqrt(weight), observed=reward)
    return pm.math.exp(x @ theta + 0.5)


@bb.reward_model()
def medians(x, reward, weight):
    """The same, ranked by the logarithm: rows are learned one by one."""
    theta = pm.Normal("theta", 0, 1, dims="feature")
    pm.LogNormal("amount", x @ theta, 1 / pm.math.sqrt(weight), observed=reward)
    return x @ theta


@bb.reward_model()
def scaled(x, reward, weight):
    """The same, of an unknown variance."""
    sigma2 = pm.InverseGamma("sigma2", 2, 1)
    theta = pm.Normal("theta", 0, pm.math.sqrt(sigma2), dims="feature")
    pm.Normal("amount", x @ theta, pm.math.sqrt(sigma2 / weight), observed=pm.math.log(reward))
    return x @ theta


@bb.reward_model(theta=bb.Prior("Normal", mu=0, sigma=1, dims="feature"))
def whole_beside(x, reward, weight, theta):
    """The density of .5 is finite, since PyMC casts it to 0."""
    pm.Normal("amount", x @ theta, 1 / pm.math.sqrt(weight), observed=reward)
    pm.DiscreteUniform("count", 0, 10, observed=reward)
    return x @ theta


IMPOSSIBLE = [
    *((LOGISTIC, 0.5), (LOGISTIC, 2), (counts, -1), (POISSON, -1), (POISSON, 2.5), (amounts, 0)),
    *((bb.Laplace(LOGISTIC), 0.5), (bb.Laplace(bb.load_model("probit")), 2.0)),
    (bb.Laplace(POISSON), -1.0),
    (bb.Declared(bb.load_model("beta_bernoulli")), 2.0),
    (bb.Declared(bb.load_model("gamma_poisson")), -1.0),
    # a Gaussian posterior does not mean that every reward is possible
    *((bb.Declared(model), 0) for model in (amounts, medians, scaled)),
    *((bb.Sampled(amounts, engine="gibbs", draws=20), 0), (bb.Declared(whole_beside), 0.5)),
]
ESTIMATED = bb.InversePropensity(propensity="estimated")


def quick(model, **settings):
    if isinstance(model, RewardModel):
        model = bb.Sampled(model, engine="laplace", draws=10)
    return bb.Bandit(2, model, bb.Thompson(), n_features=2, seed=3, **settings)


@pytest.mark.parametrize("balance", [None, ESTIMATED], ids=["unweighted", "estimated"])
@pytest.mark.parametrize(
    ("model", "bad"), IMPOSSIBLE, ids=lambda v: getattr(getattr(v, "declared", v), "name", v)
)
@few("logistic-0.5-unweighted")
@in_gate(8)
@pytest.mark.filterwarnings("ignore::bayesbandit.inference.draws.PoorDiagnostics")
def test_an_impossible_reward_is_refused_and_changes_nothing(model, bad, balance, rng):
    bandit, twin = quick(model, balance=balance), quick(model, balance=balance)
    x = rng.normal(size=(6, 2))
    for b in (bandit, twin):
        for row in x:
            b.observe(b.choose(row), 1.0)
    name = getattr(model, "declared", model).name
    complaint = rf"{name} gives a reward of {bad:g} the likelihood 0.*: row "
    one, batch = bandit.choose(x[0]), bandit.choose(x)
    twin.choose(x[0]), twin.choose(x)
    before = anatomy(bandit)
    with pytest.raises(ValueError, match=complaint + "0"):
        bandit.observe(one, bad)
    with pytest.raises(ValueError, match=complaint + "4"):
        bandit.observe(batch, [1, 1, 1, 1, bad, bad])
    with pytest.raises(ValueError, match=complaint + "2"):
        bandit.update(x[:4], [0, 1, 1, 0], [1, 1, bad, 1])
    assert anatomy(bandit) == before
    for b in (bandit, twin):
        b.observe(b.choose(x[1]), 1.0)
    np.testing.assert_array_equal(bandit.choose(x).probabilities, twin.choose(x).probabilities)


@pytest.mark.parametrize("engine", ["laplace", "nuts"])
@pytest.mark.parametrize(
    ("model", "bad"), [(POISSON, -1), (POISSON, 2.5), (LOGISTIC, 0.5), (amounts, 0)]
)
def test_a_fit_is_refused_before_the_engine_starts(model, bad, engine, monkeypatch, rng):
    monkeypatch.setattr(Plan, "sample", None)
    reward = np.array([1.0, 1.0, bad, 1.0])
    said = rf"{model.name} gives a reward of {bad} .*: row 2"
    complaint = "takes whole numbers; got" if bad % 1 else said
    with pytest.raises(ValueError, match=complaint):
        bb.fit(model, rng.normal(size=(4, 2)), reward, engine=engine)


@bb.reward_model()
def over_the_largest(x, reward):
    theta = pm.Normal("theta", 0, 3, dims="feature")
    p = pm.math.sigmoid((x / abs(x).max(axis=0)) @ theta - 0.5 * x[:, 0] ** 2)
    pm.Bernoulli("r", p, observed=reward)
    return p


def test_a_likelihood_that_takes_the_largest_of_its_rows_says_which_rewards_it_allows():
    """No broken number is allowed, and a maximum of no rows does not exist."""
    x = np.full((3, 2), 1000.0)
    with pytest.raises(ValueError, match=r"a reward of 1 the likelihood 0.*, for example, 0$"):
        bb.fit(over_the_largest, x, np.array([0.0, 1.0, 0.0]))


def autocorrelated(rho, rng, size=400):
    draws, noise = np.empty((size, 3)), rng.normal(size=(size, 3))
    draws[0] = noise[0]
    for i in range(1, size):
        draws[i] = rho * draws[i - 1] + np.sqrt(1 - rho**2) * noise[i]
    return draws


@pytest.mark.slow
def test_one_chain_is_judged_by_its_own_halves(rng):
    """An AR(1) of ρ has S(1 − ρ)/(1 + ρ) effective draws: few of .99, enough of .5."""
    poor = [mixed_badly(autocorrelated(0.99, rng)) for _ in range(50)]
    good = [mixed_badly(autocorrelated(0.5, rng)) for _ in range(50)]
    assert sum(p is not None for p in poor) >= 45
    assert not any(good)
    assert mixed_badly(np.ones((400, 2))) is None  # what does not vary
    assert mixed_badly(rng.normal(size=(20, 2)) + np.arange(20)[:, None]) is None  # too few to say
    step = rng.normal(size=(400, 2)) + 5 * (np.arange(400) > 200)[:, None]
    assert "mean reward" in mixed_badly(step)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rho", "divergences", "complaint"),
    [(0.999, None, "the effective sample size of a mean reward is"),
     (0.0, 40, "40 of 400 trajectories diverged"), (0.5, 1, None)],
)  # fmt: skip
def test_a_bandit_watches_its_draws_and_warns_once(rho, divergences, complaint, monkeypatch, rng):
    def sample(self, data, draws, chains, seed, tune=None, start=None):
        theta = autocorrelated(rho, np.random.default_rng(seed), draws)
        values = {"theta": theta[None], "sigma2": np.ones((1, draws))}
        return SampledDraws(values, state=None, divergences=divergences)

    monkeypatch.setattr(Plan, "sample", sample)
    belief = believed(bb.load_model("laplace").with_priors(intercept=0), 2)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for _ in range(70):  # rounds of each arm, with all draws renewed as they are due
            x = rng.normal(size=(2, 3))
            belief.update(x, np.arange(2), x[:, 0])
            belief.current(0), belief.current(1)
    found = [str(w.message) for w in found if w.category is PoorDiagnostics]
    if complaint is None:
        assert not found
        return
    assert len(found) == 1
    assert found[0].startswith("laplace by gibbs, arm number 0, 16 rounds: " + complaint)
    assert "draws=1600" in found[0]


@pytest.mark.slow
def test_the_sampler_compiles_when_the_bandit_is_made(monkeypatch, caplog, capsys):
    """Stubs stand for what nutpie makes of a model, and its trial run fails."""
    made, stub = [], SimpleNamespace(n_dim=3, shared_var_keys=())
    stub.with_data = lambda **_: stub

    def refused(*_, **__):
        raise ValueError("these rows mean nothing")

    monkeypatch.setattr(plan(POISSON, 3).method, "_compiled", {})
    monkeypatch.setattr(nutpie, "compile_pymc_model", lambda *_, **__: made.append(1) or stub)
    monkeypatch.setattr(nutpie, "sample", refused)
    with caplog.at_level(logging.INFO, logger="bayesbandit"):
        bandit = bb.Bandit(2, POISSON, bb.Thompson(), n_features=3)
    assert made == [1]
    assert "compiling poisson for the no-U-turn sampler, once" in caplog.text
    bandit.choose(np.ones(3))
    bandit.copy().choose(np.ones(3))
    bb.Bandit(5, POISSON, bb.Thompson(), n_features=3)
    assert made == [1]
    assert capsys.readouterr().err == ""
