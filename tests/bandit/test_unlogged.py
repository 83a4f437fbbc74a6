"""Rounds of a log without propensities: none is invented."""

import numpy as np
import pytest

import bayesbandit as bb
from bayesbandit.systems.forest.belief import Forest
from tests.bandit.kinds import KINDS
from tests.cases import few, moments_of

NAMES = "LinTS", "BLTS", "BLTS pooled", "BLUCB", "residual", "forest", "conjugate", "tree"


def make(name):
    return KINDS[name].make(["a", "b", "c"], 2)


def log(n=60, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    return x, np.array(["a", "b", "c"])[rng.integers(3, size=n)], 1.0 * (x[:, 0] > 0)


@few("LinTS", "BLTS", "BLUCB", "residual", "forest", "tree")
@pytest.mark.parametrize("name", NAMES)
def test_the_history_has_no_propensity(name, tmp_path):
    bandit, (x, arm, reward) = make(name), log()
    bandit.update(x[:20], arm[:20], reward[:20])
    bandit.update(x[20:40], arm[20:40], reward[20:40], propensity=0.25)
    bandit.observe(bandit.choose(x[40]), reward[40])

    def check(bandit):
        p = bandit.history.to_frame()["propensity"]
        assert p[:20].isna().all()
        assert (p[20:40] == 0.25).all()
        assert 0 < p[40] <= 1
        assert (bandit.history.weight > 0).all()

    check(bandit)
    bandit.save(tmp_path / "b.npz")
    again = bb.Bandit.load(tmp_path / "b.npz")
    check(again)
    for one in (bandit, again):
        one.add_arm("d")
        one.remove_arm("a")
        check(one)
        one.update(x[41:], ["b"] * 19, reward[41:])
        assert np.isnan(one.history.propensity[41:]).all()
    a, b = bandit.choose(x[0]), again.choose(x[0])
    assert (a.arm, a.propensity) == (b.arm, b.propensity)


@pytest.mark.parametrize("name", ["BLTS", "forest", "tree"])
def test_their_weight_is_by_the_current_probabilities(name):
    balance, (x, arm, reward) = bb.InversePropensity(), log()
    bandit = make(name)
    if name == "forest":
        forest = Forest(trees=20, bag=4)
        bandit = bb.Bandit(["a", "b", "c"], forest, bb.Thompson(), balance, n_features=2)
    for start in range(0, 60, 20):
        part = slice(start, start + 20)
        p = bandit.probabilities(x[part])[np.arange(20), [bandit.number(a) for a in arm[part]]]
        bandit.update(x[part], arm[part], reward[part])
        np.testing.assert_allclose(bandit.history.weight[part], 1 / np.maximum(0.1, p))
    weight = bandit.history.weight
    assert len(np.unique(weight)) > 3
    np.testing.assert_array_equal(balance.weights(bandit.history, bandit.belief), weight)


def test_features_of_the_chosen_arms_are_enough_where_nothing_is_weighted():
    x, _, reward = log()
    arm, all_arms = np.arange(60) % 3, np.stack([x, x, x], axis=1)
    one, other = (bb.Bandit(3, bb.Shared(bb.Ridge()), bb.Thompson(), n_features=2) for _ in "ab")
    one.update(x, arm, reward)
    other.update(all_arms, arm, reward)
    np.testing.assert_array_equal(one.history.x, other.history.x)
    for own, theirs in zip(
        moments_of(one.belief, all_arms), moments_of(other.belief, all_arms), strict=True
    ):
        np.testing.assert_array_equal(own, theirs)
    balance = bb.InversePropensity()
    weighted = bb.Bandit(3, bb.Shared(bb.Ridge()), bb.Thompson(), balance, n_features=2)
    with pytest.raises(ValueError, match="give the propensities, or the features of all arms"):
        weighted.update(x, arm, reward)
    weighted.update(all_arms, arm, reward)
    np.testing.assert_array_equal(weighted.history.weight, np.full(60, 3.0))
