"""A bandit at play: what it decides, with which propensity, and what it learns from a reward;
plain values that are no decision."""

import re

import numpy as np
import pytest

import bayesbandit as bb
from tests.bandit.kinds import lived
from tests.cases import few


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
    ({"id": 5}, "id[0] is 5"),
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
