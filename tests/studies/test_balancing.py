"""When balancing pays: what the study declares, and its arithmetic."""

import numpy as np
import pandas as pd
import pytest

from bayesbandit.environments import SyntheticExample
from bayesbandit_studies import balancing


@pytest.mark.parametrize("specification", ["well", "mis"])
def test_worlds_differ_by_the_logged_rounds_alone(specification):
    warm, cold = (
        next(w for w in balancing.WORLDS if type(w) is kind and w.specification == specification)
        for kind in (SyntheticExample, balancing.Cold)
    )
    one, other = (world.sample(9, np.random.default_rng(2)) for world in (warm, cold))
    for part in ("x", "mean", "reward", "test_x", "test_mean"):
        np.testing.assert_array_equal(getattr(one, part), getattr(other, part))
    assert (len(one.warm_arm), len(other.warm_arm)) == (50, 0)
    assert other.warm_x.shape == (0, cold.n_features)
    assert len({world.name for world in balancing.WORLDS}) == 4


def judged(values):
    """Of one world and arm, by bandit: pseudo-values, errors and coverage of two replications."""
    return pd.DataFrame(
        {"environment": "w", "bandit": name, "replication": i, "arm": 0, "squared_bias": value,
         "variance": 2 * value, "squared_error": 3 * value, "coverage": 0.5 + i / 4,
         "robust": 1.0}
        for name, row in values.items() for i, value in enumerate(row)
    )  # fmt: skip


def test_quality_by_hand():
    """Squared bias 4 ± 1: its root is 2, and √5 − 2 above that."""
    found = judged({"none": [3.0, 5.0]})
    (row,) = balancing.quality(found, balancing.PARTS).to_dict("records")
    assert row == {
        "bandit": "none", "bias, arm 0": "2.0000 ± 0.2361", "variance, arm 0": "8.0000 ± 2.0000",
    }  # fmt: skip
    (row,) = balancing.quality(found, balancing.ACCURACY).to_dict("records")
    assert (row["posterior, arm 0"], row["sandwich, arm 0"]) == ("62 ± 12", "100 ± 0")


def test_errors_are_paired(monkeypatch):
    monkeypatch.setattr(balancing, "PAIRS", [("kernel", "none")])
    frame = balancing.errors(judged({"none": [1.0, 5.0], "kernel": [2.0, 8.0]}))
    assert frame.to_dict("records") == [{"difference": "kernel − none", "w": "+6.00000 ± 3.00000"}]


@pytest.mark.slow
def test_estimates_are_of_every_world_and_bandit(monkeypatch):
    """And are drawn anew alike: of each world as much, and the same each time."""
    two = {name: balancing.BALANCES[name] for name in ("none", "decision")}
    monkeypatch.setattr(balancing, "BALANCES", two)
    monkeypatch.setattr(balancing, "WORLDS", balancing.WORLDS[1:3])
    rows = balancing.estimates.__wrapped__(3, 30)
    pd.testing.assert_frame_equal(rows, balancing.estimates.__wrapped__(3, 30))
    assert len(rows) == 2 * 2 * 2 * 3 * 3  # worlds, balances, floors, replications, arms
    assert set(rows["t"]) == {30}
    assert rows["coverage"].between(0.0, 1.0).all()
