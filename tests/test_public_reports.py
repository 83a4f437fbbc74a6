"""What users reported of other libraries, tried here. Each test names the report."""

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb

FRAME = pd.DataFrame({"u": [1.0, 2.0, 3.0], "v": [4.0, 5.0, 7.0]}, index=[10, 20, 30])


def test_columns_in_another_order_are_never_taken_by_position():
    """scikit-learn 7242, LightGBM 4102, xgboost 8357: columns were taken by position, silently."""
    plain = bb.LinTS(["a", "b"], n_features=2, seed=0)
    with pytest.raises(ValueError, match=r"encoder=bb\.Encoder\.fit"):
        plain.choose(FRAME)
    encoder = bb.Encoder.fit(FRAME)
    np.testing.assert_array_equal(encoder.transform(FRAME), encoder.transform(FRAME[["v", "u"]]))


@pytest.mark.parametrize("given", ["arm", "reward", "propensity"])
def test_a_series_in_another_order_of_rows_is_refused(given):
    """statsmodels 206: rows with other labels were paired by their position."""
    columns = {"arm": ["a", "b", "a"], "reward": [3.0, 1.0, 2.0], "propensity": [0.5, 0.5, 0.5]}
    columns[given] = pd.Series(columns[given], index=[30, 10, 20])
    bandit = bb.LinTS(["a", "b"], encoder=bb.Encoder.fit(FRAME), seed=0)
    with pytest.raises(ValueError, match=f"x and {given} have the same index in different orders"):
        bandit.update(FRAME, **columns)
    assert len(bandit.history) == 0
    with pytest.raises(ValueError, match="in different orders"):
        bb.ope.Log(FRAME, columns.pop("arm"), columns.pop("reward"), **columns)
    sorted_ = pd.Series(columns.get(given, [1.0] * 3), index=FRAME.index)
    bandit.update(FRAME, ["a", "b", "a"], sorted_.index.to_series() / 30)
    bandit.update(FRAME, ["a", "b", "a"], pd.Series([1.0, 2.0, 3.0]))  # other labels: by position


def test_fit_refuses_a_sorted_reward():
    model = bb.load_model("ridge")
    reward = pd.Series([3.0, 2.0, 1.0], index=[30, 20, 10])
    with pytest.raises(ValueError, match=r"pass reward\.loc\[x\.index\]"):
        bb.fit(model, FRAME, reward)
    np.testing.assert_array_equal(
        bb.fit(model, FRAME, reward.loc[FRAME.index]).mean(FRAME.to_numpy()),
        bb.fit(model, FRAME, [1.0, 2.0, 3.0]).mean(FRAME.to_numpy()),
    )


def test_a_reward_that_is_pandas_na_is_missing():
    """It ended in "float() argument must be a string or a real number, not 'NAType'"."""
    bandit = bb.LinTS(["a", "b"], n_features=1, seed=0)
    with pytest.raises(ValueError, match=r"reward must be finite, .* found nan"):
        bandit.observe(bandit.choose([1.0]), pd.NA)
    assert len(bandit.history) == 0
