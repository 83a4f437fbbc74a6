"""The Gibbs engine's algebra, held against a second reading of the same log density, by evaluation.

The algebra proves that a log density is a sum of monomials and squares. `tests.hunt.form` reads the
same numbers off its values, and knows nothing of the algebra.
"""

import math
from functools import cache

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import bayesbandit as bb
from bayesbandit.inference.base import Compiled
from bayesbandit.inference.gibbs.generic import problem
from bayesbandit.inference.gibbs.layout import block, matrix
from bayesbandit.inference.gibbs.rewrite_mixtures import mixed
from bayesbandit.inference.gibbs.sampler import Gibbs, match
from bayesbandit.inference.graph_analysis.degrees import Analytic
from bayesbandit.inference.graph_analysis.density import read
from bayesbandit.inference.graph_analysis.quadratic import PYTHON
from tests import declarations
from tests.hunt.form import Part, Reader, summands
from tests.inference.declared import built, constant, log_densities, rows
from tests.inference.test_gibbs import BLOCKS, dense, walk

MEAN = "mean_reward"
DECLARED = "known", "conjugate", "lasso", "pooled", "noncentred", "potential", "squared"
OF_GALLERY = (
    *("bayesian_lasso", "hierarchical_ridge", "horseshoe", "laplace", "ridge", "ridge_known_noise"),
    *("student_t", "student_t_mixture"),
)
CATALOGUE = (
    BLOCKS
    | {"walk": walk, "dense": dense}
    | {f"declared {name}": getattr(declarations, name) for name in DECLARED}
    | {f"gallery {name}": bb.load_model(name) for name in OF_GALLERY}
)


# ---- the form of a log density -------------------------------------------------------------------


@cache
def taken(name):
    """A declaration's engine, which it must have, its model, and rows."""
    declared = CATALOGUE[name]
    data = rows(n=12, arms=2 if declared.takes_arm else None)
    if not declared.takes_weight:
        del data["weight"]
    model = declared.build(**data)
    found = match(model)
    assert isinstance(found, Gibbs), found
    return found, model, found.data(**data)


@cache
def forms(name):
    """The forms whose sum is the log density of the rows; mean rewards are reals behind θ."""
    found, _, data = taken(name)
    reading, density, n = found.reading, found.reading.density, len(data[0])
    unknown = {**density.values, MEAN: density.given_mean}
    positive = {k: reading.between.get(k, (0.0, math.inf)) for k in reading.rest}
    graphs = [term.given_mean for term in density.terms]
    bounds = {density.values[k]: ends for k, ends in positive.items()}
    seeds = dict.fromkeys(unknown.values(), 1.0)
    analytic = Analytic(graphs, seeds, list(bounds), bounds)
    assert [analytic.fault(g, most=1) for g in graphs] == [None] * len(graphs)
    places, D, _ = reading.places(n)
    places[MEAN] = np.arange(D, D + n)
    inputs = list(density.inputs.values())
    arguments = zip(inputs, density.arguments(data), strict=True)
    given = [np.asarray(v, role.type.dtype) for role, v in arguments]
    shapes = {**reading.shapes(n), MEAN: (n,)}
    parts = [
        Part(graph, weight, unknown, inputs)
        for term in density.terms
        for graph, weight in summands(term.given_mean)
    ]
    return [Reader(part, given, shapes, places, positive).read() for part in parts]


def products(powers, v):
    """c Π v^e of each term."""
    return powers.coef * np.prod(v[powers.element] ** powers.exponent, axis=0)


def value(form, z, v):
    """What a form adds to the log density at reals z and positive variables v."""
    s, log_v = form.squares, np.log(v[: len(form.linear)])
    squares = ((s.a * z[s.real]).sum(axis=0) - s.offset) ** 2
    logs = form.linear @ log_v + form.square @ log_v**2
    return products(s.powers, v) @ squares + products(form.pure, v).sum() + logs


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_log_density_has_the_form_that_is_read(name):
    """At points drawn at random, up to a constant; and so it is with the algebra's."""
    (found, model, data), reader = taken(name), forms(name)
    whole, density = problem(found.reading, data), found.reading.density
    inputs = [*density.values.values(), *density.inputs.values()]
    mean = Compiled(inputs, [density.mean], PYTHON)
    states, by_form, by_algebra = [], [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        theta, u = whole.flat(found.start(data, rng))
        theta, u = theta + rng.normal(size=theta.shape), whole.inside(u)
        state = whole.named(theta, u)
        [mu] = mean(*[state[k] for k in density.values], *density.arguments(data))
        z = np.concatenate([theta, np.broadcast_to(mu, len(data[0]))])
        states.append(state)
        by_form.append(sum(value(form, z, np.exp(u)) for form in reader))
        by_algebra.append(whole.layout.log_density(theta, u))
    bare = pm.model.transform.conditioning.remove_value_transforms(mixed(model)[0])
    logp = log_densities(bare, states)
    assert constant(logp - np.array(by_form), logp)
    assert constant(logp - np.array(by_algebra), logp)


def by_powers(squares, pure, R):
    """Of each product of powers, the quadratic function of reals z (R,) that it multiplies, as a
    matrix (R + 1, R + 1) of (z, −1).

    squares: products, and their forms and offsets (N, R + 1). pure: products of no square.
    """
    one, found = np.eye(R + 1)[R], {}
    alone = [(powers, np.tile(one, (powers.coef.size, 1))) for powers in pure]
    for powers, forms in [*squares, *alone]:
        terms = zip(powers.coef, powers.element.T, powers.exponent.T, forms, strict=True)
        for c, element, exponent, a in terms:
            pairs = zip(element.tolist(), exponent.tolist(), strict=True)
            key = tuple(sorted((i, e) for i, e in pairs if e))
            found[key] = found.get(key, 0.0) + c * np.outer(a, a)
    if () in found:
        found[()][R, R] = 0.0  # a constant
    return {key: Q for key, Q in found.items() if Q.any()}


def of_forms(forms, R, P):
    """What forms say: products of powers, and coefficients (2, P) of log v and (log v)²."""
    squares, logs = [], np.zeros((2, P))
    for form in forms:
        s = form.squares
        each = np.zeros((s.offset.size, R + 1))
        for a, real in zip(s.a, s.real, strict=True):
            each[np.arange(len(each)), real] += a
        each[:, R] = s.offset
        squares.append((s.powers, each))
        logs[:, : len(form.linear)] += form.linear, form.square
    return by_powers(squares, [form.pure for form in forms], R), logs


def of_sums(sums, R, P):
    """What the algebra's sums say, likewise."""
    terms, logs = [t for s in sums for t in s.terms], np.zeros((2, P))
    for t in terms:
        if t.logs:
            np.add.at(logs[len(t.logs) - 1], t.logs[0], t.coef)
    squared = [t for t in terms if t.square is not None]
    each = np.column_stack(matrix(squared, np.zeros((0, R)), np.zeros(0), R))
    pure = [t for t in terms if t.square is None and not t.logs]
    return by_powers([(block(squared), each)], [block(pure)], R), logs


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_algebra_has_the_numbers_that_are_read(name):
    """Exponents exactly; squares, monomials and logarithms to seven digits."""
    found, _, data = taken(name)
    _, D, P = found.reading.places(len(data[0]))
    R = D + len(data[0])
    sums, _, _ = found.reading(data)
    ours, our_logs = of_forms(forms(name), R, P)
    theirs, their_logs = of_sums(sums, R, P)
    assert ours.keys() == theirs.keys()
    for key, Q in theirs.items():
        np.testing.assert_allclose(ours[key], Q, rtol=0, atol=1e-7 * np.abs(Q).max())
    np.testing.assert_allclose(our_logs, their_logs, rtol=1e-7, atol=1e-9)


# ---- where numbers may settle it -----------------------------------------------------------------


def observed(sd=lambda x, reward, weight, s: 1.0, seen=lambda reward: reward):
    """A declaration of normal rewards, with a scale s > 0."""

    def declare(x, reward, weight):
        theta, s = pm.Normal("theta", 0, 1, dims="feature"), pm.HalfNormal("s", 10)
        mu = x @ theta
        pm.Normal("reward", mu, sd(x, reward, weight, s), observed=seen(reward))
        return mu

    return declare


TRAPS = {
    "a clipped reward": (
        observed(seen=lambda reward: pt.clip(reward, -5, 5)),
        observed(seen=lambda reward: reward / 5),
    ),
    "a far context": (
        observed(lambda x, reward, weight, s: pt.switch(x[:, 0] > 100, 4.0, 1.0)),
        observed(lambda x, reward, weight, s: pt.exp(x[:, 0] / 100)),
    ),
    "a large reward": (
        observed(lambda x, reward, weight, s: pt.switch(pt.abs(reward) > 1000, 2.0, 1.0)),
        observed(lambda x, reward, weight, s: pt.switch(weight > 0, 2.0, 1.0)),
    ),
    "a scale about 9": (
        observed(lambda x, reward, weight, s: pt.sqrt((s - 9) ** 2)),
        observed(lambda x, reward, weight, s: pt.sqrt((s + 9) ** 2)),
    ),
}


@pytest.mark.parametrize("name", TRAPS)
def test_what_no_trial_row_shows_is_refused_and_its_harmless_twin_is_not(name):
    faults = []
    for declare in TRAPS[name]:
        density = read(built(declare, rows()))
        inputs, values = density.inputs, density.values
        seeds = dict.fromkeys([density.given_mean, *values.values(), *inputs.values()], 1.0)
        positive = values["s"], inputs["weight"]
        [graph] = [term.given_mean for term in density.terms if term.on_data]
        faults.append(Analytic([graph], seeds, positive).fault(graph, most=1))
    assert faults[0]
    assert not faults[1]
