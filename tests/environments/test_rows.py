"""Environments of rows: classification as a bandit, and rows in which every reward is known."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

from bayesbandit.environments import Classification, KnownRewards
from bayesbandit.environments.encoding import classes
from tests.environments.test_laws import draw

NAN = float("nan")
X = np.random.default_rng(0).normal(size=(40, 3))
Y = np.arange(40) % 3


def test_a_sample_has_every_row_once_with_the_class_that_it_came_with():
    world = Classification(X, Y, "toy")
    assert (world.name, world.arms, world.n_features) == ("toy", (0, 1, 2), 3)
    assert world.encoder.features == ("x0", "x1", "x2")
    assert repr(world) == "Classification('toy')"
    assert not hasattr(world, "solved")  # there are no test contexts to judge by
    sample = draw(world)
    np.testing.assert_array_equal(sample.mean, sample.reward)
    np.testing.assert_array_equal(sample.reward.sum(axis=1), 1.0)
    assert sample.test_x is None
    assert len(sample.warm_arm) == 0
    np.testing.assert_array_equal(sample.x[np.lexsort(sample.x.T)], world.x[np.lexsort(world.x.T)])
    back = {tuple(row): label for row, label in zip(world.x, world.label, strict=True)}
    assert [back[tuple(row)] for row in sample.x] == sample.reward.argmax(axis=1).tolist()


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (X, [1] * 40, "two classes or more; every label is 1"),
        (X, Y[:39], "x has 40 rows and y has 39 labels"),
        (X, [None, NAN, *range(2)] * 10, "20 of the 40 labels are missing"),
        (X, np.column_stack([Y, Y]), r"one column of labels; got shape \(40, 2\)"),
        (X, "target", r"one column of labels; got shape \(\)"),
        (X, X[:, 0], "40 rows have 40 different labels.*measurement or an identifier"),
        (X[:, 0], Y, r"x must have rows and columns; got shape \(40,\)"),
        (X[:, :0], Y, r"must have rows and columns; got shape \(40, 0\)"),
        (X[:0], [], "the data set is empty"),
        (np.ones((40, 2)), Y, "no column tells the rows apart"),
        (
            pd.DataFrame({"id": [f"row {k}" for k in range(40)]}),
            Y,
            "no column tells the rows apart",
        ),
        (np.where(X[5, 1] == X, np.inf, X), Y, r"infinite or beyond ±1e\+100 in column 'x1'"),
        (pd.DataFrame(X, columns=list("abc")).assign(c=-1e200), Y, "in column 'c'"),
    ],
)
def test_data_that_cannot_be_played(x, y, message):
    with pytest.raises(ValueError, match=f"^toy: .*{message}"):
        Classification(x, y, "toy")


def test_a_number_as_the_target_is_told():
    """A column of prices would have a class, and so an arm, for each of its values."""
    x = np.random.default_rng(0).normal(size=(1_000, 2))
    with pytest.warns(UserWarning, match="toy: there are 201 classes, .* is the target a number"):
        Classification(x, np.arange(1_000) % 201, "toy")
    with warnings.catch_warnings(action="error"):
        Classification(x, np.arange(1_000) % 200, "toy")


@pytest.mark.parametrize(
    ("labels", "arms"),
    [
        ([10, 9, 10], (9, 10)),
        (np.array([3, 1, 2], dtype=np.uint8), (1, 2, 3)),
        (np.array([3, 1, 2], dtype=object), (1, 2, 3)),
        (["b", "a", "b"], ("a", "b")),
        (np.array(["b", "a", "é"]), ("a", "b", "é")),
        (np.array([b"b", b"a", b"b"]), ("a", "b")),
        ([True, False, True], ("False", "True")),
        ([10.0, 9.5, 2.0], ("2.0", "9.5", "10.0")),
        (np.array([0.1, 0.3, 0.1], dtype=np.float32), ("0.1", "0.3")),
        ([1, "a", 1], ("1", "a")),
        ([1, "1", "2"], ("1", "2")),
        (np.array([1, 10, 2.5], dtype=object), ("1", "2.5", "10")),
        (pd.Series(["b", "a"], dtype="category").cat.set_categories(["b", "a", "z"]), ("a", "b")),
        (pd.Series([2, 1], dtype="category"), (1, 2)),
        (pd.Series([2, 1], dtype="Int64"), (1, 2)),
        (pd.Series([True, False], dtype="boolean"), ("False", "True")),
        (pd.Series(["b", "a"], dtype="string"), ("a", "b")),
        (pd.Series([5, 6], index=[9, 9]), (5, 6)),
    ],
)
def test_arms_are_the_sorted_names_of_the_classes(labels, arms):
    label, found = classes(labels)
    assert found == arms
    assert [type(arm) for arm in found] == [type(arm) for arm in arms]
    named = [found[k] for k in label]
    assert [str(arm) for arm in named] == [
        v.decode() if isinstance(v, bytes) else str(v) for v in labels
    ]


@pytest.fixture
def frame(rng):
    return pd.DataFrame(rng.normal(size=(30, 4)), columns=["x", "z", "a", "b"])


def test_rows_keep_their_rewards(frame, rng):
    world = KnownRewards(frame, ["b", "a"], "prices")
    assert (world.name, world.arms, world.n_features) == ("prices", ("b", "a"), 2)
    sample = world.sample(None, rng)
    assert sorted(map(tuple, sample.reward)) == sorted(map(tuple, frame[["b", "a"]].to_numpy()))
    x = world.encoder.transform(frame.drop(columns=["a", "b"]))
    back = {tuple(row): tuple(paid) for row, paid in zip(sample.x, sample.reward, strict=True)}
    assert [back[tuple(row)] for row in x] == list(map(tuple, frame[["b", "a"]].to_numpy()))
    np.testing.assert_array_equal(sample.mean, sample.reward)


DATES = pd.date_range("2026-01-01", periods=30)


@pytest.mark.parametrize(
    ("paid", "match"),
    [
        ([1.0, 2.0, np.nan] * 10, "of rewards must be finite; found nan at .2."),
        ([1.0, 2.0, np.inf] * 10, "of rewards must be finite; found inf at .2."),
        ([1.0, 2.0, "much"] * 10, ".reward. must be numbers; got 'much'"),
        (DATES, ".reward. must be numbers; got"),
        (DATES.to_period("D"), ".reward. must be numbers; got"),
        (DATES - DATES[0], ".reward. must be numbers; got"),
    ],
)
def test_a_reward_that_is_none(frame, paid, match):
    with pytest.raises(ValueError, match=f"column 'a' {match}"):
        KnownRewards(frame.assign(a=paid), ["a", "b"])


def test_rewards_are_of_a_table():
    with pytest.raises(TypeError, match="z: the table must be a DataFrame; got csr_m"):
        KnownRewards(csr_matrix(np.eye(3)), ["a", "b"], "z")
