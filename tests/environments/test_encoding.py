"""What becomes of columns and labels, by hand computation."""

import numpy as np
import pandas as pd
import pytest

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


def test_encoding_does_not_touch_its_input():
    frame = pd.DataFrame({"n": [1.0, NAN, 3.0, 4.0], "t": ["a", None, "a", "b"]})
    before = frame.copy(deep=True)
    encode(frame)
    pd.testing.assert_frame_equal(frame, before)
