"""Arms by name: strings, integers and NumPy's; added and removed mid-way."""

import json

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import bayesbandit as bb
from tests.bandit.kinds import one_prior_an_arm
from tests.cases import moments_of
from tests.players import anatomy

COSTS = np.array([5.0, 0.0, 4.0])


@bb.reward_model(v=bb.Prior("Normal", mu=0, sigma=10))
def costs_by_place(x, reward, arm, v):
    mu = v - pm.math.constant(COSTS)[arm] + 0 * x[:, 0]
    pm.Normal("r", mu, 0.3, observed=reward)
    return mu


@pytest.mark.parametrize("model", [costs_by_place, one_prior_an_arm])
def test_no_arm_takes_the_place_of_another_that_a_model_knows(model, rng):
    bandit, x = bb.Bandit(["a", "b", "c"], model, bb.Thompson(), n_features=1), np.ones((9, 1))
    bandit.update(x, list("abc") * 3, rng.normal(size=9))
    before, moments = anatomy(bandit), moments_of(bandit.belief, x)
    with pytest.raises(ValueError, match=r"tells arms apart by their places.*make another bandit"):
        bandit.remove_arm("a")
    with pytest.raises(ValueError, match=r"."):
        bandit.add_arm("d")
    assert anatomy(bandit) == before
    np.testing.assert_array_equal(moments_of(bandit.belief, x), moments)
    bandit.update(x[:4], list("abca"), np.ones(4))
    assert bandit.belief.n.tolist() == [5, 4, 4]


@pytest.mark.parametrize(
    ("arms", "names"),
    [
        (3, (0, 1, 2)),
        (np.int64(2), (0, 1)),
        (["x", "y"], ("x", "y")),
        (np.array(["x", "y"]), ("x", "y")),
        (range(5, 7), (5, 6)),
        (np.array([7, -3]), (7, -3)),
        (("a", 1, "1"), ("a", 1, "1")),
        ([5, 2**70, -1], (5, 2**70, -1)),
        (["a", "ü"], ("a", "ü")),
        ({"a": 0, "b": 1}, ("a", "b")),
        pytest.param((name for name in "ab"), ("a", "b"), id="generator-('a', 'b')"),
    ],
    ids=repr,
)
def test_names(arms, names):
    bandit = bb.LinTS(arms, 2)
    assert bandit.arms == names
    assert [type(name) for name in bandit.arms] == [type(name) for name in names]
    single, batch = bandit.choose([0.0, 0.0]), bandit.choose(np.zeros((200, 2)))
    allowed = {json.dumps(name) for name in names}
    for of_batch in (list(batch.arm), [batch.arm[i] for i in range(200)], batch.arm.tolist()):
        assert {json.dumps(name) for name in of_batch} == allowed
    assert [one.arm for one in batch] == pd.Series(batch.arm).tolist() == batch.arm.tolist()
    assert batch.arm[3:5].tolist() == batch.arm.tolist()[3:5]
    assert (batch.arm == names[0]).dtype == bool
    assert json.dumps(single.arm) in allowed
    for name in (*names, *(np.array([name])[0] for name in names)):
        bandit.update([0.0, 1.0], name, 1.0)
    assert bandit.history.arm.tolist() == [*names, *names]
    for some in (names[-1], names[-1:], np.array(names[-1:])):
        assert bandit.choose([0.0, 0.0], arms=some).arm == names[-1]
    bandit.remove_arm(np.array(names[:1])[0])
    assert bandit.arms == names[1:]
