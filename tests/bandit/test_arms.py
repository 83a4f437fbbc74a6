"""Arms by name: strings, integers and NumPy's; added and removed mid-way."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bayesbandit as bb
from tests.players import STATEFUL, play, public, world

NAMES = st.lists(st.one_of(st.text(max_size=5), st.integers()), min_size=1, max_size=6, unique=True)


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
    assert single.arm in names
    assert type(single.arm) in (str, int)
    assert set(batch.arm.tolist()) == set(names)
    for name in names:
        bandit.update([0.0, 1.0], name, 1.0)
    assert bandit.history.arm.tolist() == list(names)
    assert bandit.choose([0.0, 0.0], arms=[names[-1]]).arm == names[-1]
    assert bandit.choose([0.0, 0.0], arms=names[-1]).arm == names[-1]


def test_numpy_names_are_names(rng):
    bandit = bb.LinTS(["a", "b"], 2)
    bandit.update(np.eye(2), np.array(["a", "b"]), np.ones(2))
    bandit.update(np.eye(2), np.array(["a", "b"], dtype=object), np.ones(2))
    bandit.observe(bandit.choose(np.eye(2), arms=np.array(["b"])), np.ones(2))
    assert bandit.belief.n.tolist() == [2, 4]
    numbers = bb.LinTS([4, 9], 2)
    numbers.update(np.eye(2), np.array([9, 4], dtype=np.int32), np.ones(2))
    assert numbers.posterior(np.int64(9)).location[0] > 0
    numbers.remove_arm(np.int16(9))
    assert numbers.arms == (4,)


@given(NAMES, st.integers(0, 99))
def test_any_names_do_what_numbers_do(names, seed):
    x, reward = world(np.random.default_rng(seed), 20, 2, len(names))
    named, numbered = bb.BLTS(names, 2), bb.BLTS(len(names), 2)
    arms, propensity = play(named, x, reward)
    chosen, p = numbered.play(x, reward)
    assert (arms.tolist(), propensity.tolist()) == (chosen.tolist(), p.tolist())
    assert named.history.arm.tolist() == [names[k] for k in chosen]


@pytest.mark.parametrize("name", STATEFUL)
def test_an_added_arm_is_new_and_the_others_stay(name, rng):
    x, reward = world(rng, 60, K=4)
    bandit = STATEFUL[name](["a", "b", "c"], 3)
    bandit.play(x, reward[:, :3])
    before = [bandit.posterior(arm) for arm in "abc"]
    bandit.add_arm("d")
    assert bandit.arms == ("a", "b", "c", "d")
    for arm, old in zip("abc", before, strict=True):
        np.testing.assert_array_equal(bandit.posterior(arm).location, old.location)
        np.testing.assert_array_equal(bandit.posterior(arm).spread, old.spread)
    alone = bandit.choose(x[0], arms=list("abc")).probabilities
    np.testing.assert_allclose(
        bandit.choose(x[0]).probabilities, [*0.75 * alone[:3], 0.25], atol=1e-12
    )
    while "d" not in bandit.history.arm if len(bandit.history) else bandit.belief.n[3] == 0:
        play(bandit, x[:1], reward[:1])
    play(bandit, x, reward)
    assert bandit.belief.n.sum() == bandit.t - 2


@pytest.mark.parametrize("name", STATEFUL)
def test_what_is_left_after_a_removal_is_what_it_would_have_been(name, rng):
    """An arm that never got a reward leaves no trace, apart from the draws that it took."""
    x, reward = world(rng, 60, K=3)
    with_it, without = STATEFUL[name](["a", "b", "c"], 3), STATEFUL[name](["a", "c"], 3)
    arm = np.array(["a", "c"])[rng.integers(0, 2, 60)]
    for bandit in (with_it, without):
        bandit.update(x, arm, reward[:, 0], np.full(60, 0.5))
    with_it.remove_arm("b")
    assert with_it.arms == without.arms
    assert with_it.layout == without.layout
    if with_it.reweighting is None:
        assert public(with_it) == public(without)
    a, b = with_it.play(x, reward[:, :2]), without.play(x, reward[:, :2])
    if getattr(with_it.balance, "propensity", "") != "pooled":  # past policies had a third arm
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", STATEFUL)
def test_late_rewards_of_decisions_before_a_change(name, rng):
    x, reward = world(rng, 40)
    bandit = STATEFUL[name](["a", "b", "c"], 3)
    bandit.play(x, reward)
    late = bandit.choose(3.0 * rng.normal(size=(400, 3)))
    p, n = late.propensity, bandit.belief.n.copy()
    first = {arm: int(np.flatnonzero(late.arm == arm)[0]) for arm in "abc"}
    bandit.remove_arm("b")
    bandit.add_arm("d")
    for arm in "ac":
        bandit.observe(late[first[arm]], 1.0)
    assert bandit.belief.n.tolist() == [n[0] + 1, n[2] + 1, 0]
    if len(bandit.history):
        assert bandit.history.arm[-2:].tolist() == ["a", "c"]
        np.testing.assert_array_equal(bandit.history.propensity[-2:], p[[first["a"], first["c"]]])
        np.testing.assert_array_equal(bandit.history.x[-2:], late.x[[first["a"], first["c"]]])
        if getattr(bandit.balance, "propensity", "") == "decision":
            expected = 1 / np.maximum(bandit.balance.clip, p[[first["a"], first["c"]]])
            np.testing.assert_array_equal(bandit.history.weight[-2:], expected)
    with pytest.raises(ValueError, match=r"unknown arm 'b'; the arms are \['a', 'c', 'd'\]"):
        bandit.observe(late[first["b"]], 1.0)
    left = ~np.isin(np.arange(400), list(first.values()))
    without = late[left & ((late.arm == "a") | (late.arm == "c"))]
    bandit.observe(without, np.ones(len(without)))
    assert bandit.belief.n.sum() == n[[0, 2]].sum() + 2 + len(without)


@pytest.mark.parametrize("limit", [None, 0, 10])
def test_rewards_one_by_one_into_a_history_that_grows(limit, rng):
    x, reward = world(rng, 3000)
    bandit = bb.LinTS(3, 3, history=limit)
    loop = bandit.copy()
    play(bandit, x, reward)
    loop.play(x, reward)
    assert public(bandit) == public(loop)


def test_a_removed_arm_stays_in_the_history_and_may_come_back(rng):
    x, reward = world(rng, 30)
    bandit = bb.LinTS(["a", "b", "c"], 3)
    bandit.play(x, reward)
    arms, propensity = bandit.history.arm, bandit.history.propensity
    bandit.remove_arm("b")
    np.testing.assert_array_equal(bandit.history.arm, arms)
    np.testing.assert_array_equal(bandit.history.propensity, propensity)
    bandit.add_arm("b")
    assert bandit.arms == ("a", "c", "b")
    assert bandit.belief.n[2] == 0
    bandit.play(x, reward[:, [0, 2, 1]])
    assert bandit.history.arm[:30].tolist() == arms.tolist()
    assert set(bandit.history.arm[30:].tolist()) == {"a", "b", "c"}


@pytest.mark.slow
def test_many_arms(rng):
    """More arms than fit the first block of the stream."""
    bandit = bb.LinTS(2, 1)
    for k in range(2, 300):
        bandit.add_arm(k)
    bandit.update(np.ones((300, 1)), np.arange(300), rng.normal(size=300))
    decision = bandit.choose(np.ones((500, 1)))
    np.testing.assert_allclose(decision[:3].probabilities.sum(axis=1), 1.0, atol=1e-6)
    wide = bb.LinTS(2000, 1, history=10)
    wide.update(np.ones((2000, 1)), np.arange(2000), rng.normal(size=2000))
    assert len(set(wide.choose(np.ones((50, 1))).arm.tolist())) > 5
