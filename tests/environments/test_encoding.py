"""What becomes of columns and labels, by hand computation."""

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb
from bayesbandit.environments.encoding import classes


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


def test_encoding_does_not_touch_its_input():
    frame = pd.DataFrame({"n": [1.0, None, 3.0, 4.0], "t": ["a", None, "a", "b"]})
    before = frame.copy(deep=True)
    bb.Encoder.fit(frame).transform(frame)
    pd.testing.assert_frame_equal(frame, before)
