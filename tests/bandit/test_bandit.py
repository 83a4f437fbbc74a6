"""A bandit at play: what it decides, with which propensity, and what it learns from a reward;
plain values that are no decision; a reward counts once."""

import re
from copy import copy, deepcopy

import numpy as np
import pytest

import bayesbandit as bb
from bayesbandit.bandit import observed
from tests.bandit.kinds import KINDS, lived
from tests.cases import few
from tests.players import anatomy, pickled


def test_a_minimum_leaves_room_for_all_arms():
    with pytest.raises(ValueError, match=r"min_probability must be ≤ 1/3 for 3 arms; got 0\.4"):
        bb.LinTS(3, 1, min_probability=0.4)
    bandit = bb.LinTS(3, 1, min_probability=0.3)
    before = bandit.arms
    with pytest.raises(ValueError, match="must be ≤ 1/4 for 4 arms"):
        bandit.add_arm("more")
    assert bandit.arms == before
    with pytest.raises(ValueError, match="min_probability must be a finite number ≥ 0"):
        bb.UCB(min_probability=-0.1)
    assert repr(bb.Greedy()) == "Greedy()"
    assert repr(bb.UCB(2.0, min_probability=0.1)) == "UCB(alpha=2.0, min_probability=0.1)"


def test_decisions_can_be_indexed(rng):
    bandit, x = lived("LinTS"), rng.normal(size=(9, 2))
    batch = bandit.choose(x)
    assert len(batch) == 9
    for part in (slice(2, 7, 2), np.array([5, 0]), np.arange(9) % 2 == 0):
        np.testing.assert_array_equal(batch[part].x, x[part])
        np.testing.assert_array_equal(batch[part].propensity, batch.propensity[part])
    assert [one.arm for one in batch] == batch.arm.tolist()
    assert batch[-1].x.tolist() == x[-1].tolist()
    assert batch[2].probabilities.tolist() == batch.probabilities[2].tolist()
    assert batch[3].arms == batch.arms == bandit.arms
    other = bandit.copy()
    bandit.observe(batch[1:4], [1.0, 2.0, 3.0])
    for i in (1, 2, 3):
        other.observe(batch[i], float(i))
    np.testing.assert_array_equal(bandit.belief.arms, other.belief.arms)
    with pytest.raises(TypeError, match="no length"):
        len(batch[0])
    with pytest.raises(TypeError, match="cannot be indexed"):
        batch[0][0]
    assert repr(batch[0]).startswith("Decision(arm=")
    assert repr(batch) == "Decision(9 contexts, arms=['a', 'b', 'c'])"


@few("LinTS", "BLTS")
@pytest.mark.parametrize("name", ["LinTS", "BLTS", "ILTCB", "ForestTS", "PolicyTreeTS"])
def test_without_features_no_context_is_needed(name):
    bandit = getattr(bb, name)(["a", "b"], 0)
    for _ in range(60):
        decision = bandit.choose()
        bandit.observe(decision, float(decision.arm == "b"))
    assert bandit.choose().probabilities[1] > 0.9
    assert bandit.choose(arms=["a"]).arm == "a"
    with pytest.raises(ValueError, match="contexts must have 3 features; got none"):
        bb.LinTS(2, 3).choose()


@pytest.mark.parametrize("kind", [int, bool, np.int64, np.int8, np.bool_, np.float64, np.float32])
def test_a_reward_is_its_number_whatever_its_type(kind):
    a, b = lived("LinTS"), lived("LinTS")
    for i, x in enumerate(np.random.default_rng(0).normal(size=(20, 2))):
        for bandit, reward in ((a, float(i % 2)), (b, kind(i % 2))):
            bandit.observe(bandit.choose(x), reward)
    np.testing.assert_array_equal(a.history.reward, b.history.reward)
    np.testing.assert_array_equal(a.probabilities(x), b.probabilities(x))


# the second arm was not available
OF_TWO_ARMS = {"arms": ["a", "b"], "arm": "b", "mean": [0.0, None], "sd": [1.0, None]}
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
    ({"id": 5}, "id must be a list, with a text for each arm"),
    ({"x": 5.0}, "x must be"),
    ({"x": [[1.0], [1.0, 2.0]]}, "different lengths"),
    ({"unknown": 1}, "unknown key"),
    (
        {**OF_TWO_ARMS, "probabilities": [0.5, 0.5], "propensity": 0.5, "min_probability": 0.0},
        "sum to 1",
    ),
]


@pytest.mark.parametrize(("change", "said"), HOSTILE, ids=[str(i) for i in range(len(HOSTILE))])
def test_what_is_no_decision_is_refused(change, said):
    values = lived("LinTS").choose([0.5, -1.0]).to_dict()
    with pytest.raises(ValueError, match=re.escape(said)):
        bb.Decision.from_dict(values | change)
    for key in values:
        with pytest.raises(ValueError, match=key):
            bb.Decision.from_dict({k: v for k, v in values.items() if k != key})


def test_a_decision_about_no_context_is_refused():
    values = bb.LinTS(3, 2).choose(np.ones((3, 2)))[:0].to_dict()
    with pytest.raises(ValueError, match="about one context or more; this one has none"):
        bb.Decision.from_dict(values)


NAMES = "LinTS", "BLTS pooled", "fading"
X = np.array([[1.0, 0.5], [0.2, -1.0], [0.0, 3.0]])
COPIES = {
    "copy": copy,
    "deep": deepcopy,
    "pickle": pickled,
    "dict": lambda decision: bb.Decision.from_dict(decision.to_dict()),
}
SAID = "has been learned, and a reward counts once"


def made(kind):
    return KINDS[kind].make(["a", "b"], 2)


def refused(bandit, decision, reward, match=SAID):
    before = anatomy(bandit)
    with pytest.raises(ValueError, match=match):
        bandit.observe(decision, reward)
    assert anatomy(bandit) == before


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("x", [X[0], X], ids=["one", "batch"])
@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_a_decision_is_learned_once_whenever_it_is_copied(kind, x, copied):
    bandit, reward = made(kind), 1.0 if x.ndim == 1 else np.ones(3)
    for early in (True, False):
        decision = bandit.choose(x)
        twin = copied(decision) if early else None
        bandit.observe(decision, reward)
        refused(bandit, decision, reward)
        refused(bandit, twin if early else copied(decision), reward)
    bandit.observe(bandit.choose(x), reward)
    assert bandit.history.total == 3 * np.size(reward)


@pytest.mark.parametrize("kind", NAMES)
def test_rows_of_a_batch_are_learned_once(kind):
    bandit = made(kind)
    batch = bandit.choose(X)
    bandit.observe(batch[1], 1.0)
    refused(bandit, batch[1], 0.0, f"decision {batch[1].id} {SAID}")
    refused(bandit, batch, [1.0, 0.0, 1.0], f"{SAID}: row 1")
    bandit.observe(batch[[0, 2]], np.ones(2))
    assert bandit.history.total == 3
    refused(bandit, bandit.choose(X)[[0, 2, 0]], np.ones(3), f"{SAID}: row 2")


@pytest.mark.parametrize("settings", [{}, {"half_life": 9.0}, {"drift": 0.1}], ids=str)
def test_no_rewards_of_a_batch_teach_nothing(settings):
    """A part of a batch may be empty, also after a change of the arms."""
    bandit = bb.LinTS(["a", "b"], 2, **settings)
    batch = bandit.choose(np.ones((4, 2)))
    came = np.zeros(4, dtype=bool)
    for new in ("c", "d"):
        assert not bandit.observe(batch[came], np.zeros(4)[came])
        with pytest.raises(ValueError, match="one value for each of 0 rows"):
            bandit.observe(batch[came], [1.0])
        assert bandit.history.total == 0
        bandit.add_arm(new)


def test_each_bandit_learns_what_it_has_not_learned():
    bandit = made("LinTS")
    decision, other = bandit.choose(X[0]), bandit.copy()
    for one in (bandit, other):
        one.observe(decision, 1.0)
        refused(one, decision, 1.0)
    refused(bandit.copy(), decision, 1.0)


def test_the_latest_ids_are_remembered(monkeypatch):
    monkeypatch.setattr(observed, "MOST_IDS", 5)
    bandit = made("LinTS")
    batches = [bandit.choose(X) for _ in range(3)]
    for batch in batches:
        assert len(batch.id) == 3
        bandit.observe(batch, np.ones(3))
    assert len(bandit.observed) == 5
    refused(bandit, batches[2], np.ones(3))
    bandit.observe(batches[0], np.ones(3))
