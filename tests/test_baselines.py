"""What stands beside the bandits."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from bayesbandit import evaluation
from bayesbandit.environments import Classification, KnownRewards, SyntheticExample
from bayesbandit.environments.base import Sample


def regrets(world, **settings):
    return evaluation.baselines([world], **settings).set_index("bandit")["normalised_regret"]


def test_of_classes_they_are_shares_of_rows(rng):
    x, y = rng.normal(size=(400, 2)), rng.choice(3, 400, p=[0.5, 0.3, 0.2])
    found = regrets(Classification(x, y, "noise"))
    assert found["(a random arm)"] == pytest.approx(2 / 3)
    assert found["(the best arm always)"] == pytest.approx(1 - np.bincount(y).max() / 400)
    assert found["(full-information ridge)"] == pytest.approx(0.5, abs=0.07)  # nothing to learn


def test_ridge_finds_what_is_linear(rng):
    x = rng.normal(size=(300, 2))
    paid = pd.DataFrame({"x": x[:, 0], "z": x[:, 1], "a": x[:, 0], "b": -x[:, 0]})
    found = regrets(KnownRewards(paid, ["a", "b"]))
    assert found["(full-information ridge)"] < 0.01
    assert found["(a random arm)"] == pytest.approx(np.abs(x[:, 0]).mean())


@dataclass(frozen=True)
class OwnFeatures:
    """Arms with features of their own, and rewards that are linear in them for all arms alike."""

    name: str = "own"
    arms: tuple[int, ...] = (0, 1, 2)
    n_features: int = 2

    def sample(self, horizon, rng):
        x = rng.normal(size=(300, 3, 2))
        mean = x @ np.array([1.0, -1.0])
        return Sample(x, mean, mean + 0.1 * rng.normal(size=mean.shape))


def test_arms_with_features_of_their_own_share_a_ridge():
    found = regrets(OwnFeatures())
    assert found["(full-information ridge)"] < 0.01 < found["(a random arm)"]


def test_where_there_is_little_or_no_context(rng):
    assert np.isnan(regrets(SyntheticExample("well"), horizon=9)["(full-information ridge)"])
    found = evaluation.baselines([SyntheticExample("well"), SyntheticExample("mis")], horizon=200)
    assert found["environment"].unique().tolist() == ["synthetic-well", "synthetic-mis"]
    pd.testing.assert_frame_equal(
        found,
        evaluation.baselines([SyntheticExample("well"), SyntheticExample("mis")], horizon=200),
    )
