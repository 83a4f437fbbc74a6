"""Rewards that no variables make likely are told from those that some do; densities add up."""

import numpy as np
import pymc as pm
import pytest
from pymc.model.transform.conditioning import remove_value_transforms

import bayesbandit as bb
from bayesbandit.inference.functions import Functions
from bayesbandit.inference.graph_analysis.density import read
from bayesbandit.inference.pymc_model.log_density import LogDensity
from bayesbandit.inference.pymc_model.prior import PriorDraws
from bayesbandit.inference.pymc_model.template import template
from bayesbandit.model import RewardModel
from tests import declarations as declared
from tests.cases import few, slow_but

THETA = bb.Prior("Normal", mu=0, sigma=1, dims="feature")
VAGUE = bb.Prior("Normal", mu=0, sigma=1000, dims="feature")


def poisson(x, reward, theta):
    mu = pm.math.exp(x @ theta)
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
    found = LogDensity(read(built)).joint(draws, data)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_draws_of_the_prior_follow_from_their_seed():
    """Also the first ones, for which PyMC compiles, and seeds at random."""
    one, other = (PriorDraws(template(declared.known, 3, None)) for _ in range(2))
    np.testing.assert_array_equal(one(5, 1)["theta"], other(5, 1)["theta"])
    assert not np.array_equal(one(5, 1)["theta"], one(5, 2)["theta"])
