"""Logged rounds: a ring of rows against a plain list, names, changes of arms."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bayesbandit as bb
from bayesbandit.history import History, Layout, name_array
from tests.players import world

LAYOUT = Layout(("a", "b"), 1, 2)


def rows_of(numbers):
    """Rows told apart by their reward; arm and propensity follow from it."""
    rows = np.zeros((len(numbers), LAYOUT.width))
    rows[:, 0] = numbers
    log = LAYOUT.records(rows)
    log["reward"], log["arm"] = numbers, [number % 2 for number in numbers]
    log["propensity"] = 0.5
    return rows


@given(
    st.one_of(st.none(), st.integers(0, 7)),
    st.lists(st.one_of(st.none(), st.integers(0, 12)), max_size=12),
)
def test_the_last_rounds_are_kept_in_order(limit, steps):
    """Rounds one by one (None) or n at a time, whatever the limit."""
    history, told = History(LAYOUT, limit), []
    for step in steps:
        more = list(range(len(told), len(told) + (1 if step is None else step)))
        told += more
        if step is None:
            free = history.room(1)
            assert len(free) == (limit != 0)
            free[:] = rows_of(more)
            history.count_in(1)
        else:
            history.extend(rows_of(more))
    kept = told if limit is None else told[len(told) - min(limit, len(told)) :]
    assert (len(history), history.total) == (len(kept), len(told))
    np.testing.assert_array_equal(history.reward, kept)
    np.testing.assert_array_equal(history.x[:, 0], kept)
    assert history.arm.tolist() == ["ab"[number % 2] for number in kept]
    np.testing.assert_array_equal(
        LAYOUT.records(history.of_arm(1))["reward"], [i for i in kept if i % 2]
    )
    assert repr(history) == f"History({len(kept)} of {len(told)} rounds)"


def test_what_is_read_is_a_copy():
    history = History(LAYOUT, None)
    history.extend(rows_of([1, 2]))
    for column in (history.x, history.reward, history.propensity, history.weight):
        column[:] = 99.0
    np.testing.assert_array_equal(history.reward, [1.0, 2.0])
    np.testing.assert_array_equal(history.x[:, 0], [1.0, 2.0])
    np.testing.assert_array_equal(history.propensity, 0.5)


@pytest.mark.parametrize(
    ("names", "dtype"),
    [((3, -1), np.int64), (("x", "long name"), np.str_), ((1, "1"), object), ((2**70, 1), object)],
)
def test_names_keep_their_types(names, dtype):
    array = name_array(names)
    assert array.tolist() == list(names)
    assert [type(name) for name in array.tolist()] == [type(name) for name in names]
    assert array.dtype.type in (dtype, np.object_)


@pytest.mark.parametrize("limit", [None, 20, 1000])
def test_arms_change_and_the_past_stays(limit, rng):
    x, reward = world(rng, 90)
    bandit = bb.LinTS(["a", "b", "c"], 3, history=limit)
    bandit.play(x[:30], reward[:30])
    bandit.remove_arm("b")
    bandit.play(x[30:60], reward[30:60, [0, 2]])
    bandit.add_arm("d")
    bandit.remove_arm("a")
    bandit.add_arm("b")
    bandit.play(x[60:], reward[60:])
    assert bandit.arms == ("c", "d", "b")

    twin, rounds = bb.LinTS(["a", "b", "c"], 3), []
    changes = {30: "-b", 60: "+d-a+b"}
    for t in range(90):
        for sign, arm in re.findall("([+-])(.)", changes.get(t, "")):
            twin.add_arm(arm) if sign == "+" else twin.remove_arm(arm)
        decision = twin.choose(x[t])
        columns = [0, 2] if 30 <= t < 60 else [0, 1, 2]
        r = reward[t, columns[twin.arms.index(decision.arm)]]
        rounds.append((decision.arm, decision.propensity, r))
        twin.observe(decision, r)
    kept = slice(0 if limit is None else max(0, 90 - limit), None)
    arms, p, r = zip(*rounds[kept], strict=True)
    assert bandit.history.arm.tolist() == list(arms)
    np.testing.assert_array_equal(bandit.history.x, x[kept])
    np.testing.assert_array_equal(bandit.history.reward, r)
    np.testing.assert_allclose(bandit.history.propensity, p, atol=1e-12)
    assert bandit.history.retired == (["a"] if limit == 20 else ["b", "a"])  # of rows kept then


@pytest.mark.parametrize("limit", [0, 5, None])
def test_names_of_removed_arms_live_as_long_as_a_row(limit, tmp_path):
    """So that arms that come and go for ever cost no more in the end than at first."""
    bandit, told = bb.LinTS(["a", "b"], 1, history=limit), []
    for i in range(200):
        bandit.add_arm(f"arm {i}")
        if i % 20 == 0:
            bandit.update([1.0], f"arm {i}", float(i), propensity=0.5)
            told.append(f"arm {i}")
        bandit.remove_arm(f"arm {i}")
    kept = told if limit is None else told[len(told) - limit :]
    assert bandit.history.arm.tolist() == kept
    assert bandit.history.retired == kept
    bandit.save(tmp_path / "b.npz")
    again = bb.Bandit.load(tmp_path / "b.npz").history
    assert again.arm.tolist() == kept
    np.testing.assert_array_equal(again.reward, 20.0 * np.arange(10)[10 - len(kept) :])
