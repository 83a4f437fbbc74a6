"""The laws of every exact belief: of batches, order, weights, arms, merges, copies and draws."""

import pickle
from functools import cache

import numpy as np
import pymc as pm
import pytest

import bayesbandit as bb
from tests import declarations as declared
from tests.bandit.kinds import known_noise_by_context, off_centre
from tests.beliefs.test_linearized import shared as logistic_together
from tests.cases import moments_of, slow_but

K, D = 3, 3
SEED = np.random.SeedSequence(0)


@bb.reward_model(theta=declared.NORMAL)
def with_constant(x, reward, weight, theta):
    mu = x @ theta + pm.Normal("constant", 0.3, 2.0)
    pm.Normal("reward", mu, 0.7 / pm.math.sqrt(weight), observed=reward)
    return mu


def laplace(model):
    """Whose mode is computed again after each round, so that it is that of all rows."""
    return lambda: bb.Laplace(model, refit_every=1)


REAL = {
    "ridge": bb.Ridge,
    "ridge, Student-t": lambda: bb.Ridge(variance="nig", intercept="unpenalised"),
    "ridge, known noise": lambda: bb.Ridge(2.0, 0.5, False),
    "ridge, sum of squares": lambda: bb.Ridge(2.0, "rss", "unpenalised"),
    "ridge, cross-validated": lambda: bb.Ridge("cv", "rss/n"),
    "ridge, half-lives": lambda: bb.Ridge(half_life="auto"),
    "in columns": lambda: bb.Declared(with_constant),
    "in columns, unknown noise": lambda: bb.Declared(declared.conjugate),
    "mapped": lambda: bb.Declared(declared.noncentred),
    "mapped, unknown noise": lambda: bb.Declared(off_centre),
    "mapped, noise by context": lambda: bb.Declared(known_noise_by_context),
    "mapped, half-lives": lambda: bb.Declared(declared.noncentred, half_life="auto"),
    "together": lambda: bb.Declared(declared.pooled),
    "together, half-lives": lambda: bb.Declared(declared.pooled, half_life="auto"),
}
COUNTED = {
    "logistic": laplace(bb.load_model("logistic")),
    "probit": laplace(bb.load_model("probit")),
    "counts": laplace(bb.load_model("poisson")),
    "logistic, together": laplace(logistic_together),
    "a probability": lambda: bb.Declared(bb.load_model("beta_bernoulli")),
    "a rate": lambda: bb.Declared(bb.load_model("gamma_poisson")),
    "a probability, half-lives": lambda: bb.Declared(
        bb.load_model("beta_bernoulli"), half_life="auto"
    ),
}
CASES = REAL | COUNTED
QUICK = ("ridge", "mapped", "together", "logistic", "a probability")
IN_ORDER = {name for name in CASES if "half-lives" in name}
SETTLED = {name for name in COUNTED if not name.startswith("a ")}  # to the tolerance of a mode
JOINT = ("together", "logistic, together", "together, half-lives")


def cases(*without):
    names = [name for name in CASES if name not in {*without}]
    return pytest.mark.parametrize("name", slow_but(QUICK, names))


@cache
def model_of(name):
    return CASES[name]()


def believed(name, normalize=False, n_arms=K):
    return model_of(name).belief(n_arms, D, normalize, SEED)


def rows(name, n=60, seed=0, n_arms=K):
    """Contexts, arms, rewards and weights."""
    rng = np.random.default_rng(seed)
    x, arm = 0.5 + rng.normal(size=(n, D)), rng.integers(0, n_arms, n)
    mean = x @ np.array([0.5, -1.0, 0.3]) + 0.2 * arm
    reward = mean + rng.normal(size=n) if name in REAL else (mean + rng.normal(size=n) > 0.0) * 1.0
    return x, arm, reward, rng.uniform(0.5, 3.0, n)


def learned(name, data, normalize=False, n_arms=K):
    belief = believed(name, normalize, n_arms)
    belief.update(*data)
    return belief


def part(data, some):
    return tuple(values[some] for values in data)


def same(name, one, other, rtol=1e-9):
    """Both predict alike, and have as many rounds."""
    x = np.random.default_rng(99).normal(size=(5, D))
    rtol = max(rtol, 1e-6) if rtol and name in SETTLED else rtol
    for ours, theirs in zip(moments_of(one, x), moments_of(other, x), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(one.predict(x).best(), other.predict(x).best(), rtol=0, atol=1e-6)
    np.testing.assert_array_equal(one.n, other.n)
    np.testing.assert_array_equal(one.new, other.new)


@cases()
@pytest.mark.parametrize("normalize", [False, True])
def test_a_batch_is_its_rows_in_sequence(name, normalize):
    if normalize and "half-lives" in name:
        pytest.skip("rounds that fade keep their weights")
    data, sequence = rows(name), believed(name, normalize)
    for i in range(60):
        sequence.update(*part(data, slice(i, i + 1)))
    same(name, learned(name, data, normalize), sequence)


@cases(*IN_ORDER)
def test_the_order_of_rounds_does_not_matter(name, rng):
    if "cross" in name:
        pytest.skip("rows go to the folds in turn")
    data = rows(name)
    same(name, learned(name, data), learned(name, part(data, rng.permutation(60))))


@cases(*IN_ORDER)
def test_normalised_weights_have_no_scale_and_mean_one(name):
    """Each arm's, or all, where arms share a posterior."""
    x, arm, reward, weight = rows(name)
    group = np.zeros_like(arm) if name in JOINT else arm
    mean = (np.bincount(group, weight) / np.bincount(group))[group]
    normalised = learned(name, (x, arm, reward, weight), normalize=True)
    same(name, normalised, learned(name, (x, arm, reward, 7.0 * weight), normalize=True))
    same(name, normalised, learned(name, (x, arm, reward, weight / mean)))


@cases(*IN_ORDER)
def test_weights_that_change_with_hindsight(name):
    """Only of the arms that are due, where each has a posterior; arms that are gone have a number
    below 0."""
    x, arm, reward, weight = rows(name)
    if name in ("logistic", "probit", "counts"):  # they keep all rows, for their modes
        weight = np.where(arm == 1, 1.0, weight)
    data = x, arm, reward, weight
    belief = learned(name, (x, arm, reward, np.ones(60)))
    gone = tuple(np.concatenate([values[:5], values]) for values in data)
    gone[1][:5] = -1
    belief.reweigh([0, 2], *gone)
    if name not in JOINT:
        weight = np.where(arm == 1, 1.0, weight)
    expected = learned(name, (x, arm, reward, weight))
    same(name, belief, expected)
    more = rows(name, 10, seed=1)
    belief.update(*more), expected.update(*more)
    same(name, belief, expected)


@cases(*JOINT[:1])
def test_arms_come_and_go(name):
    """A new arm knows the prior, or what the others teach; one that goes leaves no trace where no
    arm tells of another."""
    data = rows(name)
    belief = learned(name, data)
    belief.add_arm()
    same(name, belief, learned(name, data, n_arms=K + 1))
    more = rows(name, 20, seed=1, n_arms=K + 1)
    belief.update(*more)
    belief.remove_arm(1)
    x, arm, reward, weight = map(np.concatenate, zip(data, more, strict=True))
    left = arm != 1
    if name != "ridge, half-lives":  # which has the noise of arms that are gone
        same(name, belief, learned(name, part((x, arm - (arm > 1), reward, weight), left)))
    np.testing.assert_array_equal(belief.n, np.bincount(arm[left] - (arm[left] > 1)))


@cases()
def test_beliefs_about_parts_become_the_belief_about_the_whole(name):
    data = rows(name)
    first, rest = learned(name, part(data, slice(25))), learned(name, part(data, slice(25, 60)))
    if name in IN_ORDER:
        first.absorb(rest)
        np.testing.assert_allclose(np.exp(first.log_weight).sum(), 1.0)
        np.testing.assert_array_equal(first.n, np.bincount(data[1]))
    else:
        first.absorb(rest)
        same(name, first, learned(name, data))
    other = bb.Ridge(3.0, 0.7).belief(K, D)
    before = pickle.dumps(first.state())
    with pytest.raises(ValueError, match="absorbs a belief with the same settings; got Regr"):
        first.absorb(other)
    assert pickle.dumps(first.state()) == before
