"""A handful of the hunt for wrong answers (`python -m tests.hunt`), and that it can find any."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bayesbandit as bb
from tests.hunt.case import Case
from tests.hunt.exact import Wrong
from tests.hunt.grammar import Choices, declaration, seeded, sourced
from tests.hunt.judge import judge, judged
from tests.hunt.sampled import judge as judge_draws
from tests.hunt.truth import Truth


def test_any_declaration_is_python_and_the_same_for_its_seed():
    for seed in range(300):
        case = declaration(seeded(seed))
        compile(case.source, "<declaration>", "exec")
        compile(case.rows, "<rows>", "exec")
        assert str(declaration(seeded(seed))) == str(case)


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


OBSERVED = 'pm.Normal("r", mu, pt.sqrt(s2 / weight), observed=reward)'
VARIANCE = {"s2": 'P("InverseGamma", alpha=2, beta=2)'}
ROWS = """
rng = np.random.default_rng(3)
x = rng.normal(size=(40, 2))
reward = x @ [1.0, -2.0] + rng.normal(size=40)
weight = rng.uniform(0.5, 2.0, 40)
"""
IDS = """
rng = np.random.default_rng(1)
x = np.column_stack([rng.integers(0, 6, 60), rng.normal(size=60)]).astype(float)
reward = x[:, 1] + rng.normal(size=60) + 5 * rng.normal(size=6)[x[:, 0].astype(int)]
"""
THETA = {"theta": 'P("Normal", mu=0, sigma=1, dims="feature")'}


def of(rows, *body, priors=THETA, stream=False):
    """A case whose body is these lines, on these rows."""
    return Case(sourced("", priors, list(body), arm=False), rows, stream=stream)


KNOWN = {  # declarations that were once answered wrongly
    "rows of one id": of(
        IDS, "mu = x @ theta", "same = pt.eq(x[:, 0][:, None], x[:, 0])",
        'pm.MvNormal("r", mu, cov=pt.eye(x.shape[0]) + 4 * same, observed=reward)', "return mu",
        stream=True,
    ),
    "a mean that is written twice": of(
        ROWS, 'pm.Normal("r", x @ theta, pt.sqrt(1 / weight), observed=reward)',
        'return pm.Deterministic("m", x @ theta)', stream=True,
    ),
    "a process without columns": of(
        IDS, "gp = pm.gp.Latent(cov_func=pm.gp.cov.ExpQuad(2, ls=1))", 'f = gp.prior("f", X=x)',
        'pm.Normal("r", f + level, 1, observed=reward)', "return f + level",
        priors={"level": 'P("Normal", mu=0, sigma=1)'},
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", KNOWN)
def test_a_known_declaration_is_answered_rightly_or_refused(name):
    case = KNOWN[name]
    assert not [str(v) for v in judged(case, nuts=True) if v.bad], f"\n{case}"


def linear(theta, **priors):
    """A case with these coefficients."""
    lines = f'theta = pm.{theta}, dims="feature")', "mu = x @ theta", OBSERVED, "return mu"
    return of(ROWS, *lines, priors=priors or VARIANCE)


KNOWN_NOISE = linear('Normal("theta", 0, 1', s2="1.0")
CONJUGATE = linear('Normal("theta", 0, pt.sqrt(s2)')


def answered(case, **other):
    """The truth of a case, and the posterior of the same rows but for some changed ones."""
    scene = case.run()
    rows = scene.rows | other
    posterior = bb.fit(scene.model, rows["x"], rows["reward"], rows["weight"], seed=0, chains=2)
    return Truth(scene.model, scene.rows), posterior


@pytest.mark.slow
@pytest.mark.parametrize("case", [KNOWN_NOISE, CONJUGATE], ids=["known", "conjugate"])
def test_the_judge_condemns_a_closed_form_of_slightly_other_weights(case):
    weight = case.run().rows["weight"]
    truth, posterior = answered(case, weight=weight * 1.02)
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
    source = f"sigma = 1.0\n{KNOWN_NOISE.source.replace('pt.sqrt(s2', 'sigma * pt.sqrt(s2')}"
    case = Case(source, ROWS, change="sigma = 9.0")
    assert [(v.what, v.outcome) for v in judged(case)] == [("fit", "right"), ("changed", "right")]
