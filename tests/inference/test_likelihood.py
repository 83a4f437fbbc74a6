"""Rewards that no variables make likely are told from those that some do; densities add up."""

import re

import numpy as np
import pymc as pm
import pytest
from pymc.model.transform.conditioning import remove_value_transforms

import bayesbandit as bb
from bayesbandit.inference.functions import Functions
from bayesbandit.inference.pymc_model.log_density import LogDensity
from bayesbandit.inference.pymc_model.prior import PriorDraws
from bayesbandit.inference.pymc_model.template import template
from bayesbandit.model import RewardModel
from tests import declarations as declared
from tests.cases import few, slow_but

THETA = bb.Prior("Normal", mu=0, sigma=1, dims="feature")
VAGUE = bb.Prior("Normal", mu=0, sigma=1000, dims="feature")
FLAT = bb.Prior("Flat", dims="feature")


def poisson(x, reward, theta):
    mu = pm.math.exp(x @ theta)
    pm.Poisson("reward", mu, observed=reward)
    return mu


def exponential(x, reward, theta):
    mu = pm.math.exp(x @ theta)
    pm.Exponential("reward", 1 / mu, observed=reward)
    return mu


def logarithm(x, reward, theta):
    pm.Normal("reward", x @ theta, 1, observed=pm.math.log(reward))
    return x @ theta


def bounded(x, reward, theta):
    """A reward that must not exceed its context."""
    excess = pm.math.switch(pm.math.gt(reward, x[:, 0]), -np.inf, 0.0)
    pm.Potential("fit", excess - 0.5 * (reward - x @ theta) ** 2)
    return x @ theta


def about(x, reward, theta):
    """A support that moves with θ."""
    mu = x @ theta
    pm.Uniform("reward", mu - 1, mu + 1, observed=reward)
    return mu


def student(x, reward, theta):
    pm.StudentT("reward", nu=3, mu=x @ theta, sigma=1, observed=reward)
    return x @ theta


def shared(x, reward, arm, theta):
    mu = pm.math.exp((x * theta).sum(axis=-1) + pm.Normal("b", 0, 1, dims="arm")[arm])
    pm.Poisson("reward", mu, observed=reward)
    return mu


def likelihood(function, prior=THETA, d=2):
    model = RewardModel(function, {"theta": prior})
    return Functions(template(model, d, 2 if model.takes_arm else None)).likelihood


def rows(reward, x=None):
    n = len(reward)
    x = np.random.default_rng(0).normal(size=(n, 2)) if x is None else x
    return {"x": x, "reward": np.asarray(reward, float), "weight": np.ones(n),
            "arm": np.zeros(n, dtype=int)}  # fmt: skip


@few("[proper-about-possible7-impossible7]")
@pytest.mark.parametrize(
    ("function", "possible", "impossible"),
    [
        (poisson, [0, 3, 400], [-1, 2.5]),
        (shared, [0, 3, 400], [-1, 2.5]),
        (exponential, [0, 1e-3, 40], [-1e-9]),
        (logarithm, [1e-8, 3], [-1]),
        (declared.binary.function, [0, 1], [0.5, -1, 2]),
        (declared.known.function, [-1e9, 0.3, 1e9], []),
        (student, [-1e9, 0.3, 1e9], []),
        (about, [-0.9, 0.3, 0.9], [-1e9, 1e9]),
    ],
)
@pytest.mark.parametrize(
    "prior",
    slow_but([THETA, FLAT], [THETA, VAGUE, FLAT]),
    ids=["proper", "vague", "flat"],
)
def test_what_is_impossible(function, possible, impossible, prior):
    found = likelihood(function, prior)
    found.check("m", rows(possible))
    for reward in impossible:
        with pytest.raises(
            ValueError, match=f"^m gives a reward of {re.escape(f'{reward:g}')} .*: row 2, the co"
        ):
            found.check("m", rows([1, 1, reward, 1, reward]))
        with pytest.raises(ValueError, match="row 0"):
            found.check("m", rows([reward]))
        found.check("m", rows(possible))
    if function is declared.known.function:
        assert "_points" not in vars(found)  # a polynomial in the reward: nothing to compile


def test_the_context_may_decide():
    found = likelihood(bounded)
    x = np.array([[1.0, 0.0], [3.0, 0.0]])
    found.check("m", rows([0.5, 2.0], x))
    with pytest.raises(ValueError, match=r"reward of 2 .*: row 0"):
        found.check("m", rows([2.0, 2.0], x))
    found.check("m", rows([0.5, 2.0], x))


@pytest.mark.slow
def test_large_rewards_and_contexts_do_not_overflow_into_a_refusal():
    """Under most draws of a vague prior the mean is 0 or ∞: not the reward's fault."""
    for prior in (THETA, VAGUE):
        likelihood(poisson, prior).check("m", rows([5, 1000], np.full((2, 2), 300.0)))


MODELS = [
    *(declared.known, declared.heavy, declared.potential, declared.pooled, declared.noncentred),
    bb.load_model("student_t_mixture"),
]


@few("[potential]")
@pytest.mark.parametrize(
    "model",
    slow_but([declared.heavy, declared.potential, declared.pooled], MODELS),
    ids=lambda m: m.name,
)
def test_the_log_density_is_pymcs(model):
    x, reward, weight = declared.rows(12)
    arm = np.arange(12) % 2 if model.takes_arm else None
    built = model.build(x, reward, weight, arm)
    data = {"x": x, "reward": reward, "weight": weight} | ({} if arm is None else {"arm": arm})
    drawn = pm.draw(built.free_RVs, draws=5, random_seed=1)
    draws = dict(zip([v.name for v in built.free_RVs], drawn, strict=True))
    plain = remove_value_transforms(built)
    function = plain.compile_logp(jacobian=False, mode="FAST_COMPILE")
    expected = [
        function({plain.rvs_to_values[plain[k]].name: v[s] for k, v in draws.items()})
        for s in range(5)
    ]
    found = LogDensity(built).joint(draws, data)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_draws_of_the_prior_follow_from_their_seed():
    """Also the first ones, for which PyMC compiles, and seeds at random."""
    one, other = (PriorDraws(template(declared.known, 3, None)) for _ in range(2))
    np.testing.assert_array_equal(one(5, 1)["theta"], other(5, 1)["theta"])
    assert not np.array_equal(one(5, 1)["theta"], one(5, 2)["theta"])
