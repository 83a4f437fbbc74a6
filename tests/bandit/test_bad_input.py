"""Bad input gets an error that says what was seen, and leaves the bandit bit for bit as it was."""

from enum import Enum

import numpy as np
import pytest

import bayesbandit as bb
from tests.cases import all_quick
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
CALLS = [  # a method, what it is given, and what is said
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
@pytest.mark.parametrize(("method", "given", "message"), CALLS)
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
