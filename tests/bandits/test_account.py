"""What the log says of each arm."""

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb


def floored(arms, d, least, model, seed=0):
    policy = bb.Thompson(min_probability=least)
    return bb.Bandit(arms, model, policy, n_features=d, seed=seed)


def test_it_is_what_the_frame_of_the_history_says(rng):
    bandit = floored(["a", "b", "c"], 2, 0.05, bb.Ridge())
    x = rng.normal(size=(300, 2))
    decision = bandit.choose(x)
    bandit.observe(decision, x[:, 0] + rng.normal(size=300))
    table, rounds = bandit.summary(), bandit.history.to_frame()
    assert table.index.tolist() == ["a", "b", "c"]
    for arm, rows in rounds.groupby("arm"):
        w = 1 / rows["propensity"]
        assert table.loc[arm, "rounds"] == len(rows)
        assert table.loc[arm, "share"] == pytest.approx(len(rows) / 300)
        assert table.loc[arm, "mean_reward"] == pytest.approx(rows["reward"].mean())
        assert table.loc[arm, "ipw_value"] == pytest.approx(np.average(rows["reward"], weights=w))
        assert table.loc[arm, "smallest_propensity"] == rows["propensity"].min() >= 0.05
        assert table.loc[arm, "effective"] == pytest.approx(w.sum() ** 2 / (w**2).sum())


def test_the_value_is_that_of_the_arm_everywhere():
    """Whatever contexts it was chosen in; and the interval covers, where a floor bounds 1/p."""
    inside = []
    for seed in range(200):
        bandit = floored(2, 1, 0.1, bb.Ridge(variance=0.1), seed)
        draw = np.random.default_rng(seed)
        for _ in range(4):
            x = draw.normal(size=(150, 1))
            decision = bandit.choose(x)
            bandit.observe(decision, np.where(decision.arm == 1, x[:, 0], -x[:, 0]) + 1.0)
        table = bandit.summary()
        inside.append(np.abs(table["ipw_value"] - 1.0) < 1.96 * table["ipw_se"])
        assert (table["mean_reward"] > 1.3).all()  # as it is chosen where it pays
    assert np.mean(inside) > 0.88


def test_arms_that_came_and_went():
    bandit = bb.LinTS(["a", "b"], 1, seed=0)
    assert bandit.summary()["rounds"].tolist() == [0, 0]
    bandit.update([[1.0], [1.0]], ["a", "b"], [1.0, 3.0], propensity=[0.5, 0.25])
    bandit.remove_arm("b")
    bandit.add_arm("c")
    table = bandit.summary()
    assert table.index.tolist() == ["a", "c"]
    assert table["share"].tolist() == [0.5, 0.0]
    assert table.loc["a", "ipw_value"] == 1.0
    assert np.isnan(table.loc["c", "ipw_value"])
    assert isinstance(table, pd.DataFrame)
