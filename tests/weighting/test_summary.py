"""What the log says of each arm, and how far its contexts are from those of all."""

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb


def test_it_is_what_the_frame_of_the_history_says(rng):
    bandit = bb.LinTS(["a", "b", "c"], 2, min_probability=0.05)
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


def test_rounds_without_a_propensity_have_no_value(rng):
    bandit, x = bb.LinTS(["a", "b"], 1, min_probability=0.1), rng.normal(size=(200, 1))
    bandit.observe(bandit.choose(x), x[:, 0] + rng.normal(size=200))
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


def played(balance=None, n=80):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 3)) * [1.0, 5.0, 0.0] + [0.0, 2.0, 1.0]
    arm = np.array(["a", "b"])[(x[:, 0] + rng.normal(size=n) > 0.3).astype(int)]
    bandit = bb.Bandit(["a", "b"], bb.Ridge(), bb.Thompson(), balance, n_features=3)
    bandit.update(x, arm, x[:, 0], np.full(n, 0.5))
    return bandit, x, arm


def test_differences_are_those_of_means():
    bandit, x, arm = played(bb.ResidualBalance(zeta=0.9))
    table, weight = bb.balance_table(bandit.history), bandit.history.weight
    assert table.index.names == ["arm", "feature"]
    for name in "ab":
        mine, own = arm == name, table.loc[name]
        with np.errstate(invalid="ignore"):
            before = (x[mine].mean(axis=0) - x.mean(axis=0)) / x.std(axis=0)
        np.testing.assert_allclose(own["before"][:2], before[:2])
        assert own["before"]["x2"] == 0  # it is constant
        assert (own["rounds"] == mine.sum()).all()
        np.testing.assert_allclose(
            own["effective"], weight[mine].sum() ** 2 / (weight[mine] ** 2).sum()
        )
    assert table["after"].abs().max() < 0.3 * table["before"].abs().max()


def test_an_arm_that_came_back_has_one_balance():
    bandit, x, arm = played()
    bandit.remove_arm("a")
    bandit.add_arm("a")
    bandit.update(x[:9], ["a"] * 9, x[:9, 0], np.full(9, 0.5))
    table = bb.balance_table(bandit.history)
    assert table.index.is_unique
    rows, mine = np.vstack([x, x[:9]])[:, :2], np.append(arm == "a", [True] * 9)
    expected = (rows[mine].mean(axis=0) - rows.mean(axis=0)) / rows.std(axis=0)
    np.testing.assert_allclose(table.loc["a", "before"].iloc[:2], expected)
    assert (table.loc["a", "rounds"] == mine.sum()).all()


def test_there_is_no_balance_of_no_rounds():
    with pytest.raises(ValueError, match="at least one round"):
        bb.balance_table(bb.LinTS(2, 3).history)
