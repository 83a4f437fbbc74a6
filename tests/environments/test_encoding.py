"""What becomes of columns and labels, by hand computation."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesbandit.environments.encoding import classes
from bayesbandit.tables.encoder import fitted

NAN = float("nan")
X = np.random.default_rng(0).normal(size=(40, 3))


def encode(x):
    """The features of a table on which an encoder is fitted, which `transform` gives too."""
    encoder, features, _ = fitted(x)
    np.testing.assert_allclose(encoder.transform(x), features, rtol=1e-12, atol=1e-12)
    return features


def standard(column):
    return (column - column.mean()) / column.std()


# --- labels


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


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.lists(st.text(max_size=3), min_size=2, max_size=20).filter(lambda v: len(set(v)) > 1))
def test_row_order_changes_no_name(labels):
    label, arms = classes(labels)
    back, arms_back = classes(labels[::-1])
    assert arms == arms_back == tuple(sorted(set(labels)))
    np.testing.assert_array_equal(label, back[::-1])


# --- columns


def test_numbers_are_imputed_and_standardised():
    column = np.array([1.0, 4.0, NAN, 2.0, 9.0])
    filled = np.array([1.0, 4.0, 3.0, 2.0, 9.0])  # the median of 1, 2, 4, 9 is 3
    got = encode(np.column_stack([column, X[:5, 0]]))
    np.testing.assert_allclose(got, np.column_stack([standard(filled), standard(X[:5, 0])]))


def test_levels_become_columns_and_missing_is_a_level():
    text = ["a", "a", "b", "b", None, None, "c", "c"]
    expected = np.eye(4)[[0, 0, 1, 1, 3, 3, 2, 2]]  # a, b, c, missing
    for kind in (object, "str", "category"):
        np.testing.assert_array_equal(encode(pd.DataFrame({"t": text}).astype(kind)), expected)


@pytest.mark.parametrize("kind", ["bool", object, "boolean", "category", "str"])
def test_two_levels_are_one_column(kind):
    frame = pd.DataFrame({"t": [True, False, False, True]}).astype(kind)
    np.testing.assert_array_equal(encode(frame), [[1], [0], [0], [1]])


def test_rare_levels_are_pooled():
    pair = encode(pd.DataFrame({"t": ["a", "b", "a", "c"]}))
    np.testing.assert_array_equal(pair, [[0], [1], [0], [1]])
    once = encode(pd.DataFrame({"t": ["a", "a", "b", "b", "c", "d"]}))
    np.testing.assert_array_equal(once, [[1, 0, 0]] * 2 + [[0, 1, 0]] * 2 + [[0, 0, 1]] * 2)
    many = pd.DataFrame({"t": [f"level {k}" for k in range(50) for _ in range(2 + (k < 19))]})
    many = many.astype("category")
    got = encode(many)
    assert got.shape == (119, 20)
    np.testing.assert_array_equal(got.sum(axis=1), 1.0)
    np.testing.assert_array_equal(np.sort(got.sum(axis=0)), [3.0] * 19 + [62.0])


def test_numeric_categories_are_levels():
    frame = pd.DataFrame({"t": pd.Categorical([3, 1, 1, 2, 2, 3])})
    np.testing.assert_array_equal(encode(frame), np.eye(3)[[2, 0, 0, 1, 1, 2]])


def test_columns_that_tell_nothing_are_dropped():
    frame = pd.DataFrame(
        {
            "constant": 7.0,
            "all missing": NAN,
            "nothing": [None] * 6,
            "one number": [2.0, NAN, 2.0, 2.0, NAN, 2.0],
            "one text": "same",
            "identifier": list("uvwxyz"),
            "flag": [True] * 6,
            "kept": X[:6, 0],
        }
    )
    np.testing.assert_allclose(encode(frame)[:, 0], standard(X[:6, 0]))
    assert encode(frame).shape == (6, 1)


def test_numbers_come_first_whatever_the_index_or_the_names():
    text = ["a", "b", "b", "c", "a", "c"]
    frame = pd.DataFrame({"t": text, "n": X[:6, 0]}, index=[5, 3, 3, 1, 0, 2])
    expected = np.column_stack([standard(X[:6, 0]), np.eye(3)[[0, 1, 1, 2, 0, 2]]])
    np.testing.assert_allclose(encode(frame), expected)
    with pytest.raises(ValueError, match="columns of one name: 'same'"):
        encode(frame.set_axis(["same", "same"], axis=1))
    mixed = np.array([["a", 1], ["b", 2], ["a", 4], ["b", 9]], dtype=object)
    expected = np.column_stack([standard(np.array([1.0, 2, 4, 9])), [0, 1, 0, 1]])
    np.testing.assert_allclose(encode(mixed), expected)
    np.testing.assert_allclose(encode(mixed.tolist()), expected)


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 1000), shift=st.floats(-1e6, 1e6), scale=st.floats(1e-3, 1e6))
def test_row_order_and_units_do_not_matter(seed, shift, scale):
    order = np.random.default_rng(seed).permutation(40)
    np.testing.assert_allclose(encode(X[order]), encode(X)[order], atol=1e-12)
    np.testing.assert_allclose(encode(X * scale + shift), encode(X), atol=1e-5)


def test_encoding_does_not_touch_its_input():
    frame = pd.DataFrame({"n": [1.0, NAN, 3.0, 4.0], "t": ["a", None, "a", "b"]})
    before = frame.copy(deep=True)
    encode(frame)
    pd.testing.assert_frame_equal(frame, before)
