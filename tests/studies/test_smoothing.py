"""Policy-tree smoothing: its declaration and its arithmetic."""

import numpy as np
import pandas as pd
import pytest

from bayesbandit_studies import smoothing
from bayesbandit_studies.accuracy import replayed, replays


def test_a_tree_has_the_outcome_model_of_the_bandit_that_it_smooths():
    """So that the tree alone is between them."""
    made = {name: factory(3, 2, seed=0) for name, factory in smoothing.PLAYERS.items()}
    assert made["PolicyTreeTS"].spec.base == made["LinTS"].spec
    ucb = made["LinUCB"].spec
    assert (ucb.ridge, ucb.intercept) == (made["LinTS"].spec.ridge, made["LinTS"].spec.intercept)


def test_what_is_compared_is_estimated():
    assert {name for pair in smoothing.ABOVE for name in pair} == set(smoothing.ESTIMATORS)
    for name in smoothing.ESTIMATORS:
        assert name.removesuffix(smoothing.MODEL) in smoothing.PLAYERS


def found(values):
    """Pseudo-values of two replications and arms after 9 rounds of one design."""
    return pd.DataFrame(
        {"environment": "w", "estimator": name, "t": 9, "replication": i, "arm": arm,
         "variance": value, "squared_bias": 0.0}
        for name, rows in values.items() for i, row in enumerate(rows)
        for arm, value in enumerate(row)
    )  # fmt: skip


def test_spread_by_hand():
    frame = smoothing.spread(found({"LinTS": [[1.0, 2.0], [3.0, 2.0]]}), "variance")
    assert frame.to_dict("records") == [
        {"estimator": "LinTS", "arm 0, t = 9": "2.0000 ± 1.0000", "arm 1, t = 9": "2.0000 ± 0.0000"}
    ]


def test_what_is_above_is_paired_and_of_all_arms(monkeypatch):
    monkeypatch.setattr(smoothing, "ABOVE", [("PolicyTreeTS", "LinTS")])
    values = {"LinTS": [[1.0, 3.0], [5.0, 7.0]], "PolicyTreeTS": [[2.0, 4.0], [8.0, 10.0]]}
    frame = smoothing.above(found(values), "variance")  # 3 − 2 and 9 − 6
    assert frame.to_dict("records") == [
        {"difference": "PolicyTreeTS − LinTS", "w, t = 9": "+2.000 ± 1.000"}
    ]


@pytest.mark.slow
def test_an_outcome_model_has_learned_of_the_trees_rounds(monkeypatch):
    """Of one design and 24 rounds: neither the leaves' means nor the linear bandit's, though the
    same rounds came to both."""
    monkeypatch.setattr(smoothing, "DESIGNS", smoothing.DESIGNS[1:2])
    rows = smoothing.estimates.__wrapped__(3, 24)
    assert set(rows["t"]) == {12, 24}
    error = rows[rows["t"] == 24].groupby("estimator")["squared_error"].mean()
    assert len({round(error[name], 12) for name in smoothing.ESTIMATORS}) == 6
    assert np.isfinite(error).all()


@pytest.mark.parametrize(("horizon", "times"), [(1, (1, 1)), (40, (20, 40)), (2000, (200, 2000))])
def test_early_is_before_the_end(horizon, times):
    table = pd.DataFrame({"replication": [0], "t": [horizon]})
    assert replayed(table, smoothing.REPLAYED) == (replays(1, smoothing.REPLAYED), horizon, 0)
    assert smoothing._times(horizon) == times
