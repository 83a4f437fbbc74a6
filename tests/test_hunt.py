"""A handful of the hunt for wrong answers (`python -m tests.hunt`), and that it can find any."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bayesbandit as bb
from tests.hunt.case import Case
from tests.hunt.draft import Choices, seeded
from tests.hunt.exact import Wrong
from tests.hunt.grammar import declaration
from tests.hunt.judge import judge, judged
from tests.hunt.known import KNOWN
from tests.hunt.sampled import judge as judge_draws
from tests.hunt.truth import Truth


def names(cases: list[Case]) -> list[str]:
    return [f"{i}-{case.kind}" for i, case in enumerate(cases)]


@pytest.mark.slow
@pytest.mark.parametrize("case", KNOWN, ids=names(KNOWN))
def test_a_known_declaration_is_answered_rightly_or_refused(case):
    assert not [str(v) for v in judged(case, nuts=True) if v.bad], f"\n{case}"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_a_drawn_declaration_is_answered_rightly_or_refused(seed):
    case = declaration(seeded(seed))
    assert not [str(v) for v in judged(case) if v.bad], f"\n{case}"


@st.composite
def cases(draw):
    return declaration(Choices(lambda bound: draw(st.integers(0, bound - 1))))


@pytest.mark.slow
@pytest.mark.long
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(cases())
def test_drawn_declarations_are_answered_rightly_or_refused(case):
    assert not [str(v) for v in judged(case) if v.bad], f"\n{case}"


# ---- the hunt itself: a judge that condemns nothing proves nothing -------------------------------

KNOWN_NOISE = """
@bb.reward_model(theta=P("Normal", mu=0, sigma=1, dims="feature"))
def declared(x, reward, weight, theta):
    mu = x @ theta
    pm.Normal("r", mu, 1 / pt.sqrt(weight), observed=reward)
    return mu
"""
CONJUGATE = """
@bb.reward_model(s2=P("InverseGamma", alpha=2, beta=2))
def declared(x, reward, weight, s2):
    theta = pm.Normal("theta", 0, pt.sqrt(s2), dims="feature")
    mu = x @ theta
    pm.Normal("r", mu, pt.sqrt(s2 / weight), observed=reward)
    return mu
"""
LASSO = """
@bb.reward_model(s2=P("InverseGamma", alpha=2, beta=2))
def declared(x, reward, weight, s2):
    theta = pm.Laplace("theta", 0, 1, dims="feature")
    mu = x @ theta
    pm.Normal("r", mu, pt.sqrt(s2 / weight), observed=reward)
    return mu
"""
ROWS = """
rng = np.random.default_rng(3)
x = rng.normal(size=(40, 2))
reward = x @ [1.0, -2.0] + rng.normal(size=40)
weight = rng.uniform(0.5, 2.0, 40)
"""


def answered(source, **other):
    """The truth of a case, and the posterior of the same rows but for some changed ones."""
    scene = Case(source, ROWS).run()
    rows = scene.rows | other
    posterior = bb.fit(scene.model, rows["x"], rows["reward"], rows["weight"], seed=0, chains=2)
    return Truth(scene.model, scene.rows), posterior


@pytest.mark.slow
@pytest.mark.parametrize("source", [KNOWN_NOISE, CONJUGATE, LASSO])
def test_the_judge_lets_the_posterior_pass(source):
    truth, posterior = answered(source)
    judge(truth, posterior, np.random.default_rng(0))


@pytest.mark.slow
@pytest.mark.parametrize("source", [KNOWN_NOISE, CONJUGATE])
def test_the_judge_condemns_a_closed_form_of_slightly_other_weights(source):
    weight = Case(source, ROWS).run().rows["weight"]
    truth, posterior = answered(source, weight=weight * 1.02)
    with pytest.raises(Wrong):
        judge(truth, posterior, np.random.default_rng(0))


@pytest.mark.slow
def test_a_step_of_metropolis_condemns_draws_of_another_spread():
    truth, posterior = answered(KNOWN_NOISE)
    rng = np.random.default_rng(0)
    draws = posterior.samples(2000, rng)
    theta = truth.unconstrained(draws).reshape(2, 1000, -1)
    judge_draws(truth, theta, rng)
    for factor in (0.8, 1.25):
        with pytest.raises(Wrong):
            judge_draws(truth, theta.mean() + factor * (theta - theta.mean(axis=(0, 1))), rng)


@pytest.mark.slow
def test_a_change_around_the_declaration_is_judged_by_the_new_value():
    source = KNOWN_NOISE.replace("1 / pt", "sigma / pt")
    case = Case(f"sigma = 1.0\n{source}", ROWS, change="sigma = 9.0")
    assert [v.what for v in judged(case)] == ["fit", "changed"]


def test_choices_repeat():
    assert str(declaration(seeded(5))) == str(declaration(seeded(5)))


@pytest.mark.slow
def test_many_log_densities_are_those_of_each():
    truth, _ = answered(LASSO)
    thetas = np.random.default_rng(0).normal(size=(300, truth.dim))
    alone = [truth.logp(theta) for theta in thetas]
    np.testing.assert_allclose(truth.logps(thetas), alone, rtol=1e-10)
