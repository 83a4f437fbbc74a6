"""Bad input gets an error that says what was seen, and leaves the bandit bit for bit as it was;
arms by name: strings, integers and NumPy's."""

import json
from enum import Enum

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import bayesbandit as bb
from tests.bandit.kinds import one_prior_an_arm
from tests.cases import all_quick, moments_of
from tests.players import anatomy, world

CONTEXTS = {
    "too short": ([1.0], r"shape \(2,\) or \(n, 2\); got \(1,\)"),
    "nothing": (None, r"got (\(1,\)|none)"),
    "empty": (np.ones((0, 2)), "at least one"),
    "NaN in a batch": (np.array([[0.0, 1.0], [0.0, np.nan]]), r"found nan at \[1, 1\]"),
    "enormous": (np.array([1e51, 0.0]), r"at most 1e\+50 in size; found 1e\+51"),
    "strings": (["a", "b"], r"contexts must be numbers: found \['a', 'b'\]"),
    "ragged": ([[1.0], [1.0, 2.0]], "contexts must be numbers"),
    "a dict": ({"x": 1.0}, "contexts must be numbers"),
    "dicts": ([{"x": 1.0, "y": 2.0}], "must be numbers"),
    "spans as objects": (np.array([np.timedelta64(1), 2.0], object), "contexts must be numbers"),
}
X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
ONES, NAMES = np.ones(3), ["a", "b", "c"]
OTHER, STRANGER = bb.LinTS(NAMES, 5).choose(np.zeros(5)), bb.LinTS(["z"], 2).choose(X)
REFUSED_CALLS = [  # a method, what it is given, and what is said
    ("update", (X[0], "a", -1e60), r"at most 1e\+50 in size; found -1e\+60"),
    ("update", (X[0], "a", "1.0"), "reward.* must be numbers"),
    ("update", (X, NAMES, ONES[:2]), r"one value for each of 3 rows; got \(2,\)"),
    ("update", (X, NAMES, [1.0, np.nan, 1.0]), r"found nan at \[1\]"),
    ("update", (X[0], "z", 1.0), r"unknown arm 'z'; the arms are \['a', 'b', 'c'\]"),
    ("update", (X, NAMES[:2], ONES), r"one name for each of 3 rows; got \(2,\)"),
    ("update", (X[:0], [], []), "at least one round"),
    ("update", (X[0], "a", 1.0, 0.0), r"propensities must be in \(0, 1\]; got 0\.0"),
    ("update", (X[0], "a", 1.0, np.nan), "propensities are missing in 1 of 1"),
    ("update", (X, NAMES, ONES, [0.5]), "propensities must have one value"),
    ("choose", (X, []), r"no arm to choose from; the arms are \['a', 'b', 'c'\]"),
    ("choose", (X[0], [0]), "unknown arm 0"),
    ("observe", (OTHER, 1.0), r"contexts must have shape \(2,\) or \(n, 2\); got \(1, 5\)"),
    ("observe", (STRANGER, ONES), "unknown arm 'z'"),
    ("observe", ("a", 1.0), "takes a Decision of this bandit; got 'a'"),
    ("add_arm", ("a",), "different names; got 'a' more than once"),
    ("add_arm", (1.5,), "string or an integer; got 1.5"),
    ("posterior", ("z",), "unknown arm 'z'"),
]


def test_of_many_arms_an_error_names_a_few():
    bandit = bb.LinTS(1500, 2)
    for arms in ([], ["z"]):
        with pytest.raises(ValueError, match=r"the arms are \[0, 1, 2, 3, 4, 5, \.\.\.\]"):
            bandit.choose(X, arms=arms)


@pytest.fixture
def bandit():
    x, reward = world(np.random.default_rng(2018), 30, d=2)
    bandit = bb.BLTS(NAMES, 2)
    bandit.play(x, reward)
    return bandit


def refused(bandit, act, message):
    """`act` raises, and every bit of the bandit is as before."""
    before = anatomy(bandit)
    with pytest.raises((ValueError, TypeError), match=message):
        act(bandit)
    assert anatomy(bandit) == before


@pytest.mark.parametrize("case", CONTEXTS)
def test_contexts(case, bandit):
    x, message = CONTEXTS[case]
    refused(bandit, lambda b: b.choose(x), message)
    refused(bandit, lambda b: b.update(x, "a", 1.0), message)


@all_quick()
@pytest.mark.parametrize(("method", "given", "message"), REFUSED_CALLS)
def test_what_is_wrong_is_said(method, given, message, bandit):
    refused(bandit, lambda b: getattr(b, method)(*given), message)


def test_the_last_arm_stays():
    refused(bb.LinTS(["c"], 1), lambda b: b.remove_arm("c"), "'c': a bandit needs at least one arm")


def test_a_function_that_fails(rng):
    """α is asked for before anything happens."""
    bandit = bb.LinTS(2, 2, alpha=lambda t: 1.0 if t < 3 else -1.0)
    bandit.observe(bandit.choose(X[0]), 1.0)
    before = anatomy(bandit)
    for act in (
        lambda: bandit.choose(X),
        lambda: bandit.play(X, np.ones((3, 2))),
        lambda: bb.UCB(lambda t: 1 / 0).param(1),
    ):
        with pytest.raises((ValueError, ZeroDivisionError)):
            act()
        assert anatomy(bandit) == before
    with pytest.raises(ValueError, match=r"alpha\(3\) must be a finite number ≥ 0; got -1\.0"):
        bandit.choose(X)


class Mixed(str, Enum):  # noqa: UP042
    RED = "red"


def test_names_are_what_they_hold():
    """Of enumerations their text, not how they print; a NUL at the end is part of a name."""
    assert bb.LinTS([Mixed.RED, "blue"], 1).arms == ("red", "blue")
    assert bb.LinTS([Mixed.RED], 1).arms == ("red",)
    bandit = bb.LinTS(["a", "a\0"], 1)
    bandit.update([[1.0], [1.0]], ["a", "a\0"], [0.0, 1.0])
    assert bandit.history.arm.tolist() == ["a", "a\0"]
    assert set(bandit.choose(np.zeros((99, 1))).arm.tolist()) == {"a", "a\0"}


COSTS_OF_ARMS = np.array([5.0, 0.0, 4.0])


@bb.reward_model(v=bb.Prior("Normal", mu=0, sigma=10))
def costs_by_place(x, reward, arm, v):
    mu = v - pm.math.constant(COSTS_OF_ARMS)[arm] + 0 * x[:, 0]
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
