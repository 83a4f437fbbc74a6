"""Inverse-propensity weights where arms come and go, and where the policy's rule changes."""

import numpy as np
import pytest

import bayesbandit as bb
from tests.attack.naive import Naive, Round
from tests.bandit.kinds import KINDS


@pytest.mark.parametrize("name", ["BLTS pooled", "BLUCB", "pooled, every row"])
def test_weights_are_a_naive_bandits_where_arms_come_and_go(name, rng):
    """Snapshots are thinned, and a period counts over the arms of its moment. An arm that comes
    back is due as a new one."""
    bandit = KINDS[name]()
    naive = Naive(bandit.arms, **KINDS[name].naive)
    changes = {12: "add new", 20: "remove a", 26: "add a", 33: "remove new"}
    for t in range(45):
        change, _, arm = changes.get(t, "").partition(" ")
        if change:
            (bandit.add_arm if change == "add" else bandit.remove_arm)(arm)
            (naive.add if change == "add" else naive.remove)(arm)
        x, arm, reward = rng.normal(size=2), bandit.arms[t % len(bandit.arms)], float(rng.normal())
        bandit.update(x, arm, reward, 0.3)
        naive.learn([Round(x.tolist(), arm, reward, 0.3)])
        weights = [r.weight for r in naive.rounds]
        np.testing.assert_allclose(bandit.history.weight, weights, rtol=5e-3)


def annealed(**settings):
    """A bandit of two arms and one feature, with ε = 1/t."""
    policy, balance = bb.EpsilonGreedy(lambda t: 1 / t), bb.InversePropensity(clip=0.01, **settings)
    return bb.Bandit(2, bb.Ridge(), policy, balance, n_features=1)


def test_a_period_counts_by_the_rule_of_its_own_round():
    """ε = 1/t, and uniform before: the greedy arm's chance is pooled of 1/2 twice and 1 − 1/2t."""
    bandit = annealed(propensity="pooled", refit_every=1)
    bandit.update(np.ones((2, 1)), [0, 1], [0.0, 5.0], [0.5, 0.5])
    greedy = [0.5, 0.5]
    for t in range(1, 9):
        bandit.observe(bandit.choose([1.0]), 2.5)  # 0 < θ < 5 of either arm
        mean = bandit.belief.predict(np.ones((1, 1))).mean[0]
        assert mean[1] > mean[0]
        greedy.append(1 - 0.5 / t)
        arm = bandit.history.arm[-1]
        chance = np.mean(greedy) if arm == 1 else 1 - np.mean(greedy)
        np.testing.assert_allclose(1 / bandit.history.weight[-1], chance, atol=1e-9)


def test_rounds_of_elsewhere_count_by_the_next_rounds_rule():
    """Where their propensity is not known: ε = 1/t at the round that would come next."""
    bandit = annealed()
    bandit.update(np.ones((2, 1)), [0, 1], [0.0, 5.0])
    bandit.choose(np.ones((9, 1)))
    assert bandit.t == 9
    bandit.update(np.ones((2, 1)), [0, 1], [0.0, 5.0])
    np.testing.assert_allclose(1 / bandit.history.weight, [0.5, 0.5, 0.05, 0.95])
