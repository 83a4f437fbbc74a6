"""Bad input gets an error that says what was seen, and leaves the bandit bit for bit as it was."""

import re
from enum import Enum

import numpy as np
import pytest

import bayesbandit as bb
from tests.players import anatomy, play, world

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
REWARDS = {  # of one round, or of three
    "enormous": (1, -1e60, r"at most 1e\+50 in size; found -1e\+60"),
    "string": (1, "1.0", "reward.* must be numbers"),
    "none at all": (1, [], r"got \(0,\)"),
    "too few": (3, np.ones(2), r"one value for each of 3 rows; got \(2,\)"),
    "NaN in a batch": (3, [1.0, np.nan, 1.0], r"found nan at \[1\]"),
}
X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
UPDATES = {
    "unknown arm": ((X[0], "z", 1.0), r"unknown arm 'z'; the arms are \['a', 'b', 'c'\]"),
    "arm True": ((X[0], True, 1.0), "unknown arm True"),
    "too few arms": ((X, ["a", "b"], np.ones(3)), r"one name for each of 3 rows; got \(2,\)"),
    "no rounds": ((np.ones((0, 2)), [], []), "at least one round"),
    "p = 0": ((X[0], "a", 1.0, 0.0), r"propensities must be in \(0, 1\]; got 0\.0"),
    "p NaN": ((X[0], "a", 1.0, np.nan), "propensities are missing in 1 of 1"),
    "too few p": ((X, ["a", "b", "c"], np.ones(3), [0.5]), "propensities must have one value"),
}
SUBSETS = {
    "unknown": (["a", "z"], "unknown arm 'z'"),
    "none": ([], r"no arm to choose from; the arms are \['a', 'b', 'c'\]"),
    "an arm's number": ([0], "unknown arm 0"),
}


@pytest.fixture
def bandit():
    x, reward = world(np.random.default_rng(2018), 30, d=2)
    bandit = bb.BLTS(["a", "b", "c"], 2)
    bandit.play(x, reward)
    return bandit


def refused(bandit, act, message, error=ValueError):
    """`act` raises, and every bit of the bandit is as before; also what it does next."""
    before, twin = anatomy(bandit), bandit.copy()
    with pytest.raises(error, match=message):
        act()
    assert anatomy(bandit) == before
    x, reward = world(np.random.default_rng(1), 3, d=2)
    np.testing.assert_array_equal(play(bandit, x, reward), play(twin, x, reward))


@pytest.mark.parametrize("case", CONTEXTS)
def test_contexts(case, bandit):
    x, message = CONTEXTS[case]
    refused(bandit, lambda: bandit.choose(x), message)
    refused(bandit, lambda: bandit.choose(x, arms=["a", "b"]), message)
    refused(bandit, lambda: bandit.update(x, "a", 1.0), message)


@pytest.mark.parametrize("case", REWARDS)
def test_rewards(case, bandit):
    n, reward, message = REWARDS[case]
    x, arm = (X[0], "a") if n == 1 else (X, ["a", "b", "c"])
    decision = bandit.choose(x)
    refused(bandit, lambda: bandit.observe(decision, reward), message)
    refused(bandit, lambda: bandit.update(x, arm, reward), message)


@pytest.mark.parametrize("case", UPDATES)
def test_updates(case, bandit):
    args, message = UPDATES[case]
    refused(bandit, lambda: bandit.update(*args), message)


@pytest.mark.parametrize("case", SUBSETS)
def test_subsets(case, bandit):
    arms, message = SUBSETS[case]
    refused(bandit, lambda: bandit.choose(X[0], arms), message)
    refused(bandit, lambda: bandit.choose(X, arms), message)


def test_decisions(bandit):
    other = bb.LinTS(["a", "b", "c"], 5).choose(np.zeros(5))
    message = r"contexts must have shape \(2,\) or \(n, 2\); got \(1, 5\)"
    refused(bandit, lambda: bandit.observe(other, 1.0), message)
    stranger = bb.LinTS(["z"], 2).choose(X)
    refused(bandit, lambda: bandit.observe(stranger, np.ones(3)), "unknown arm 'z'")
    for decision in ("a", None, 0, X[0], (X[0], "a")):
        message = re.escape(f"observe takes a Decision of this bandit; got {decision!r}")
        refused(bandit, lambda d=decision: bandit.observe(d, 1.0), message, TypeError)


def test_arms(bandit):
    refused(bandit, lambda: bandit.add_arm("a"), "different names; got 'a' more than once")
    refused(bandit, lambda: bandit.add_arm(1.5), "string or an integer; got 1.5", TypeError)
    refused(bandit, lambda: bandit.add_arm(None), "got None", TypeError)
    refused(bandit, lambda: bandit.remove_arm("z"), "unknown arm 'z'")
    refused(bandit, lambda: bandit.posterior("z"), "unknown arm 'z'")
    bandit.remove_arm("a")
    bandit.remove_arm("b")
    with pytest.raises(ValueError, match="cannot remove 'c': a bandit needs at least one arm"):
        bandit.remove_arm("c")


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
