"""Logged rounds: a ring of rows against a plain list, names, changes of arms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bayesbandit as bb
from bayesbandit.history import History, Layout

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
