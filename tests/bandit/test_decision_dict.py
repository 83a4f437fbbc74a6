"""Decisions as plain values, which another process observes."""

import json
import re

import numpy as np
import pytest

import bayesbandit as bb

X = np.random.default_rng(3).normal(size=(12, 2))
POLICIES = {
    "Thompson": bb.Thompson(),
    "with a floor": bb.UCB(min_probability=0.05),
    "ε-greedy": bb.EpsilonGreedy(0.2),
    "Boltzmann": bb.Boltzmann(),
}


def played(policy, balance=None, model=None):
    bandit = bb.Bandit(["a", 2, "c"], model or bb.Ridge(), policy, balance, n_features=2, seed=1)
    for i in range(6):
        x = X[i] if model is None else X[i : i + 3]
        bandit.observe(bandit.choose(x), float(i % 2))
    return bandit


def sent(decision):
    """A decision after its way through JSON."""
    return bb.Decision.from_dict(json.loads(json.dumps(decision.to_dict(), allow_nan=False)))


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("x", [X[7], X[7:10]], ids=["one", "several"])
def test_another_process_learns_the_same(name, x, tmp_path):
    bandit = played(POLICIES[name], bb.InversePropensity(clip=0.01))
    decision = bandit.choose(x, arms=["a", "c"])
    bandit.save(tmp_path / "b")
    other, again = bb.Bandit.load(tmp_path / "b"), sent(decision)
    for part in ("id", "arm", "x", "mean", "sd", "probabilities", "propensity"):
        np.testing.assert_array_equal(getattr(again, part), getattr(decision, part))
    reward = 1.0 if x.ndim == 1 else np.arange(3.0)
    bandit.observe(decision, reward)
    other.observe(again, reward)
    np.testing.assert_array_equal(other.belief.arms, bandit.belief.arms)
    for part in ("reward", "propensity", "weight"):
        np.testing.assert_array_equal(getattr(other.history, part), getattr(bandit.history, part))


def test_new_arms_and_arms_with_features():
    fresh = bb.LinTS(3, 2)
    assert sent(fresh.choose(X[0])).propensity == pytest.approx(1 / 3)
    shared = played(bb.Thompson(), model=bb.Shared(bb.Ridge()))
    decision, twin = shared.choose(X[:3]), shared.copy()
    twin.observe(sent(decision), 1.0)
    shared.observe(decision, 1.0)
    np.testing.assert_array_equal(twin.belief.common.arms, shared.belief.common.arms)


# the second arm was not available
TWO = {"arms": ["a", "b"], "arm": "b", "mean": [0.0, None], "sd": [1.0, None]}
HOSTILE = [
    ({"arm": "zz"}, "arm must be one of"),
    ({"arm": ["a"]}, "id must be a list, with a text for each arm"),
    ({"arms": ["a", "a", "c"]}, "more than once"),
    ({"arms": "abc"}, "['arms'] is 'abc'"),
    ({"x": [1.0, np.nan]}, "finite"),
    ({"x": [1e60, 0.0]}, "finite"),
    ({"x": ["1", "2"]}, "numbers"),
    ({"mean": [1.0]}, "must be"),
    ({"mean": [np.inf, 0.0, 0.0]}, "finite"),
    ({"sd": [-1.0, 0.0, 0.0]}, "sd must be finite numbers from 0"),
    ({"probabilities": [0.5, 0.5, 0.5]}, "sum to 1"),
    ({"probabilities": [np.nan, 0.5, 0.5]}, "probabilities must be"),
    ({"propensity": 0.0}, "propensity must be finite numbers from"),
    ({"propensity": 1.0}, "the arm's probability"),
    ({"min_probability": 0.9}, "min_probability is"),
    ({"constant": 1}, "constant"),
    ({"id": 5}, "id[0] is 5"),
    ({"x": 5.0}, "x must be"),
    ({"x": [[1.0], [1.0, 2.0]]}, "different lengths"),
    ({"unknown": 1}, "unknown key"),
    ({**TWO, "probabilities": [0.5, 0.5], "propensity": 0.5, "min_probability": 0.0}, "sum to 1"),
]


@pytest.mark.parametrize(("change", "said"), HOSTILE, ids=[str(i) for i in range(len(HOSTILE))])
def test_what_is_no_decision_is_refused(change, said):
    values = played(bb.Thompson()).choose(X[8]).to_dict()
    with pytest.raises(ValueError, match=re.escape(said)):
        bb.Decision.from_dict(values | change)
    for key in values:
        with pytest.raises(ValueError, match=key):
            bb.Decision.from_dict({k: v for k, v in values.items() if k != key})


def test_a_decision_about_no_context_is_refused():
    values = played(bb.Thompson()).choose(X[:3])[:0].to_dict()
    with pytest.raises(ValueError, match="about one context or more; this one has none"):
        bb.Decision.from_dict(values)
