"""The balance table: what numpy says of means."""

import numpy as np
import pytest

import bayesbandit as bb


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


def test_an_arm_that_came_back_is_one_arm():
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


def test_what_is_refused():
    with pytest.raises(ValueError, match="at least one round"):
        bb.balance_table(bb.LinTS(2, 3).history)
