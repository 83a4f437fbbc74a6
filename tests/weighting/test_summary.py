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


def test_arms_that_came_and_went():
    """A removed arm's rounds are in the table as in the shares; one that came back is one arm."""
    bandit = bb.LinTS(["a", "b"], 1, seed=0)
    assert bandit.summary()["rounds"].tolist() == [0, 0]
    assert (bandit.summary()["note"] == "no rounds").all()
    bandit.update([[1.0], [1.0]], ["a", "b"], [1.0, 3.0], propensity=[0.5, 0.25])
    bandit.remove_arm("b")
    bandit.add_arm("c")
    table = bandit.summary()
    assert table.index.tolist() == ["a", "c", "b"]
    assert table["removed"].tolist() == [False, False, True]
    assert table["share"].tolist() == [0.5, 0.0, 0.5]
    assert table.loc["a", "ipw_value"] == 1.0
    assert table.loc["b", "mean_reward"] == 3.0
    assert np.isnan(table.loc["c", "ipw_value"])
    assert isinstance(table, pd.DataFrame)
    bandit.add_arm("b")
    bandit.update([1.0], "b", 1.0, propensity=0.5)
    table = bandit.summary()
    assert table.index.tolist() == ["a", "c", "b"]
    assert table.loc["b", "rounds"] == 2
    assert not table["removed"].any()
    assert table.loc["b", "ipw_value"] == pytest.approx((3 * 4 + 1 * 2) / 6)


def played(policy, n, history=None, seed=0):
    bandit = bb.Bandit(["a", "b"], bb.Ridge(), policy, n_features=1, seed=seed, history=history)
    rng = np.random.default_rng(seed)
    for _ in range(n // 20):
        x = rng.normal(size=(20, 1))
        decision = bandit.choose(x)
        bandit.observe(decision, x[:, 0] * (decision.arm == "a") + rng.normal(size=20))
    return bandit


def test_rounds_without_a_propensity_have_no_value():
    bandit = played(bb.Thompson(min_probability=0.1), 200)
    own = bandit.summary()
    bandit.add_arm("c")
    bandit.update(np.ones((9, 1)), ["c"] * 4 + ["a"] * 5, np.full(9, 100.0))
    table = bandit.summary()
    same = ["ipw_value", "smallest_propensity", "effective"]
    pd.testing.assert_frame_equal(table.loc[["a", "b"], same], own[same])
    n = own.loc["a", "rounds"]
    assert f"{n} of {n + 5} rounds have a propensity" in table.loc["a", "note"]
    assert table.loc["c", "note"] == "no propensity was logged"
    assert table.loc["c", same].isna().all()
    assert table.loc["c", "mean_reward"] == 100.0


def test_a_propensity_that_vanishes_is_no_infinite_weight():
    bandit = bb.LinTS(["a"], 1)
    bandit.update(np.ones((3, 1)), ["a"] * 3, [1.0, 5.0, 9.0], propensity=[1e-320, 0.5, 1.0])
    table = bandit.summary()
    assert table.loc["a", "ipw_value"] == pytest.approx(1.0)
    assert table.loc["a", "effective"] == pytest.approx(1.0)
