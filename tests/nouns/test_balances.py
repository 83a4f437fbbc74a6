"""The laws of a balance, for every one: the toolkit's, and a stranger's."""

from dataclasses import replace

import numpy as np
import pytest

import bayesbandit as bb
from bayesbandit.runtime.savable import KINDS
from tests.cases import few
from tests.nouns import RECIPE
from tests.nouns.stage import ARMS, bandit, decisions, played, world

FOUND = {name: kind for name, kind in KINDS.items() if callable(getattr(kind, "weights", None))}
BALANCES = {name: kind() for name, kind in FOUND.items()} | {
    "pooled": bb.InversePropensity(propensity="pooled"),
    "estimated": bb.InversePropensity(propensity="estimated", refit_every=3),
    "normalised": bb.InversePropensity(normalize=True),
}
MODELS = {"Ridge": bb.Ridge(), "Trees": RECIPE["belief"].Trees(draws=4)}
SLOW = [(b, "Trees") for b in ("Unweighted", "InversePropensity", "normalised")]
each_model = pytest.mark.parametrize(
    ("name", "model"),
    [
        pytest.param(b, m, marks=pytest.mark.slow if (b, m) in SLOW else [])
        for b in BALANCES
        for m in MODELS
        if (b, m) != ("pooled", "Trees")
    ],
)


class Constant:
    """Weighs nothing that is known, wrongly, or with an error."""

    def __init__(self, weights):
        self.given = weights

    def weights(self, history, belief):
        return self.given(len(history))


@few("[normalised-Ridge]")
@each_model
def test_weights_are_those_of_its_method(name, model):
    """Settled at the last reward of an arm, they are what `weights` says of the history then."""
    balance = BALANCES[name]
    if hasattr(balance, "refit_every"):
        balance = replace(balance, refit_every=1)
    made = played(bandit(MODELS[model], balance=balance), 40)
    weights = made.history.weight
    assert (weights > 0).all()
    assert np.isfinite(weights).all()
    if name != "pooled" and getattr(balance, "propensity", "decision") == "decision":
        said, arm = balance.weights(made.history, made.belief), made.history.played()
        mine = arm == arm[-1]
        np.testing.assert_allclose(weights[mine], said[mine], rtol=1e-9)


@each_model
@few("Ridge")
def test_the_belief_is_that_of_the_weights(name, model):
    """Relearned from the history's rounds and weights, it believes the same."""
    made = played(bandit(MODELS[model], balance=BALANCES[name]), 40)
    history, x = made.history, world(5, 2)[0]
    normalize = getattr(BALANCES[name], "normalize", False)
    fresh = made.spec.belief(len(ARMS), made.n_features, normalize, made.seed)
    fresh.seed = getattr(made.belief, "seed", None)
    fresh.update(history.x, history.played(), history.reward, history.weight)
    np.testing.assert_allclose(
        made.belief.predict(x).mean, fresh.predict(x).mean, rtol=1e-7, atol=1e-8
    )


@pytest.mark.parametrize(
    ("weights", "match"),
    [
        (lambda n: np.ones(n + 1), "one value for each of 1 rows"),
        (lambda n: np.full(n, -1.0), r"^<tests\S+Constant object> must give `weights` > 0; got -1"),
        (lambda n: np.full(n, np.nan), "finite"),
        (lambda n: ["heavy"] * n, "number"),
        (lambda n: 1 / 0, "division"),
    ],
)
def test_wrong_weights_leave_no_trace(weights, match):
    made = bandit(balance=Constant(weights))
    decision, twin = made.choose(world(1)[0]), bandit(balance=Constant(weights))
    twin.choose(world(1)[0])
    with pytest.raises((ValueError, TypeError, ZeroDivisionError), match=match):
        made.observe(decision, [1.0])
    assert made.history.total == 0 == made.belief.n.sum()
    assert decisions(made)[0] == decisions(twin)[0]


class Erasing:
    """Writes into all that it is shown."""

    def weights(self, history, belief):
        for array in (history.rows, history.ordered(), history.x, history.reward):
            array[:] = 0.0
        if len(history):
            belief.update(history.x, history.played(), history.reward + 5.0)
            belief.remove_arm(0)
        return [1.0] * len(history)


@few("[Ridge]")
@pytest.mark.parametrize("model", MODELS)
def test_what_it_is_shown_is_its_own(model):
    erased = bandit(MODELS[model], balance=Erasing())
    plain = bandit(MODELS[model], balance=Constant(np.ones))
    for made in (erased, plain):
        played(made, 8)
    assert erased.history.to_frame().equals(plain.history.to_frame())
    np.testing.assert_array_equal(erased.greedy(world(9)[0]), plain.greedy(world(9)[0]))


@pytest.mark.parametrize("schedule", [3, 0.25, "daily"])
def test_what_is_no_schedule(schedule):
    balance = Constant(np.ones)
    balance.schedule = schedule
    with pytest.raises(TypeError, match=r"schedule of .*Constant.* must be a Schedule\(…\); got "):
        bandit(balance=balance)
