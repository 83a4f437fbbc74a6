"""Rewards that a declaration makes impossible, whatever its graph; engines that cannot start."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

import bayesbandit as bb
from bayesbandit.inference.functions import Functions
from bayesbandit.inference.pymc_model.template import template
from bayesbandit.model import RewardModel
from tests.cases import few, in_gate, slow_but

THETA = bb.Prior("Normal", mu=0, sigma=1, dims="feature")
U5 = bb.Prior("Uniform", lower=0, upper=5)
HALF = bb.Prior("HalfNormal", sigma=1)


def ordinal(x, reward, theta):
    pm.OrderedLogistic("reward", eta=x @ theta, cutpoints=np.array([-1.0, 0, 1]), observed=reward)
    return x @ theta


def learned_levels(x, reward, theta):
    cuts = pm.Normal("cuts", 0, 1, shape=3, transform=pm.distributions.transforms.ordered)
    pm.OrderedLogistic("reward", eta=x @ theta, cutpoints=cuts, observed=reward)
    return x @ theta


def indexed(x, reward, theta):
    p = pm.math.softmax(x[:, :1] * theta, axis=1)
    pm.Potential("fit", pt.log(p[pt.arange(x.shape[0]), reward.astype("int64")]))
    return p[:, 1]


def together(x, reward, theta):
    p = pm.math.sigmoid(x @ theta)
    pm.Potential("fit", pm.logp(pm.Bernoulli.dist(p), reward).sum())
    return p


def censored(x, reward, theta):
    pm.Censored("reward", pm.Normal.dist(x @ theta, 1), lower=-1, upper=None, observed=reward)
    return x @ theta


def truncated(x, reward, theta):
    pm.Truncated("reward", pm.Normal.dist(x @ theta, 1), lower=-1, upper=1, observed=reward)
    return x @ theta


def custom(x, reward, theta):
    mu = pm.math.exp(x @ theta)

    def logp(value, mu):
        return pm.math.switch(value < 1, -np.inf, pm.logp(pm.Poisson.dist(mu), value - 1))

    pm.CustomDist("reward", mu, logp=logp, observed=reward)
    return mu


def below(x, reward, theta):
    """A support that ends where the variable does."""
    pm.Uniform("reward", 0, theta, observed=reward)
    return theta / 2


def scanned(x, reward, theta):
    def step(r, m):
        return pt.switch(r < 0, -np.inf, -((r - m) ** 2))

    mu = x @ theta
    pm.Potential("fit", pytensor.scan(step, sequences=[reward, mu], return_updates=False))
    return mu


def trials(x, reward, theta):
    """As many trials as the context says."""
    p = pm.math.sigmoid(theta)
    pm.Binomial("reward", n=pt.exp(x[:, 0]).astype("int64"), p=p, observed=reward)
    return p


CASES = {  # rewards that are possible, that are not, and examples of possible ones
    "ordinal": (ordinal, THETA, [0, 3], [7, 4, -1, 0.5], "0, 1, 2, 3"),
    "learned levels": (learned_levels, THETA, [0, 3], [4, -1], "0, 1, 2, 3"),
    "indexed": (indexed, THETA, [0, 1], [2, 7], "-1, 0, 0.5, 1, 1.5"),
    "together": (together, THETA, [0, 1], [2], "0, 0.5, 1"),
    "censored": (censored, THETA, [-1, 4], [-1.5], "-1, 0, .*"),
    "truncated": (truncated, THETA, [-1, 1], [1.5], "-1, 0, 0.5, 1"),
    "custom": (custom, THETA, [1, 9], [0], "1, .*"),
    "scanned": (scanned, THETA, [0, 9], [-1], "0, 0.5, .*"),
    "below a bound": (below, U5, [4, 0.1], [5.1, -1], "0, .*"),
    "below no bound": (below, HALF, [1, 0.1], [400, -1], "0, .*"),
}
QUICK = ["ordinal", "indexed", "together", "censored", "below a bound", "below no bound"]


@few("[below no bound]")
@pytest.mark.parametrize("name", slow_but(QUICK, list(CASES)))
@in_gate(7)
def test_what_is_impossible_and_what_is_allowed(name):
    function, prior, possible, impossible, allowed = CASES[name]
    found = possible_rewards(function, prior)
    found.check("m", of(possible))
    for bad in impossible:
        with pytest.raises(
            ValueError,
            match=rf"^m gives a reward of {bad:g} the.*: row 2.*it allows, for example, {allowed}$",
        ):
            found.check("m", of([*possible, bad]))
    found.check("m", of(possible))


@pytest.mark.slow
def test_the_trials_of_a_context_bound_its_rewards():
    found = possible_rewards(trials, bb.Prior("Normal"))
    x = np.log([[3.5, 1.0], [9.5, 1.0]])
    found.check("m", of([3, 9], x))
    with pytest.raises(ValueError, match=r"reward of 4 .*row 0.*allows, for example, 0, 1, 2, 3$"):
        found.check("m", of([4, 9], x))


@pytest.mark.slow
def test_a_level_of_the_context_is_not_blamed_on_the_reward():
    def levels(x, reward, theta):
        mu = theta[x[:, 0].astype("int64")]
        pm.StudentT("reward", nu=3, mu=mu, sigma=1, observed=reward)
        return mu

    found = possible_rewards(levels, THETA)
    with pytest.raises(ValueError, match="the arm or the reward is an index, and has a level"):
        found.check("m", of([0.3, 0.1], np.array([[1.0, 0], [5, 0]])))


def poisson(x, reward, theta):
    mu = pm.math.exp(x @ theta)
    pm.Poisson("reward", mu, observed=reward)
    return mu


@pytest.mark.slow
@pytest.mark.parametrize("sd", [1, 1000])
def test_large_rewards_and_contexts_do_not_overflow_into_a_refusal(sd):
    """Under most draws of a vague prior the mean is 0 or ∞: not the reward's fault."""
    found = possible_rewards(poisson, bb.Prior("Normal", mu=0, sigma=sd, dims="feature"))
    found.check("m", of([5, 1000], np.full((2, 2), 300.0)))


def possible_rewards(function, prior):
    return Functions(template(RewardModel(function, {"theta": prior}), 2, None)).likelihood


def of(reward, x=None):
    n = len(reward)
    x = np.random.default_rng(0).normal(size=(n, 2)) if x is None else x
    return {"x": x, "reward": np.asarray(reward, float), "weight": np.ones(n),
            "arm": np.zeros(n, dtype=int)}  # fmt: skip


@pytest.mark.parametrize(
    "engine", ["laplace", "advi", pytest.param("nuts", marks=pytest.mark.slow)]
)
@few("laplace")
def test_an_engine_that_cannot_start_names_the_rewards(engine, rng):
    """A support moves with θ: a reward of 4 is possible, and not where engines start."""
    model = RewardModel(below, {"theta": U5})
    with pytest.raises(
        ValueError, match=rf"below: {engine}: .*-inf where it starts, by the rewards 4 \(row 1\)"
    ):
        bb.fit(model, rng.normal(size=(3, 2)), [0.1, 4, 0.2], engine=engine)
