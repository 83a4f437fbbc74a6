"""Every arm's reward known in every row."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

from bayesbandit.environments import KnownRewards


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


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"rewards": ["a"]}, "there must be two arms or more; got"),
        ({"rewards": ["a", "q"]}, "no single column 'q'; the columns are 'x', 'z', 'a', 'b'"),
    ],
)
def test_columns_that_make_no_arms(frame, settings, match):
    with pytest.raises(ValueError, match=match):
        KnownRewards(frame, **settings)


def test_rewards_are_of_a_table():
    with pytest.raises(TypeError, match="z: the table must be a DataFrame; got csr_m"):
        KnownRewards(csr_matrix(np.eye(3)), ["a", "b"], "z")
