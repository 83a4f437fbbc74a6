"""Inverse-propensity weights: known, pooled (by brute force), and estimated (by scikit-learn)."""

import numpy as np
import pytest

import bayesbandit as bb
from tests.players import world


def balanced(policy=None, arms=3, d=3, seed=0, model=None, **settings):
    balance = bb.InversePropensity(**settings)
    policy = bb.Thompson() if policy is None else policy
    return bb.Bandit(arms, model or bb.Ridge(), policy, balance, n_features=d, seed=seed)


@pytest.mark.parametrize("most", [2, 3, 5, 8])
def test_snapshots_are_thinned_and_no_period_is_lost(most, rng):
    x, reward = world(rng, 120)
    bandit = balanced(bb.UCB(), propensity="pooled", refit_every=1, snapshots=most)
    for t in range(120):
        if t == 60:
            bandit.add_arm("new")
        decision = bandit.choose(x[t])
        bandit.observe(decision, reward[t, 0])
        pool = bandit.reweighting.estimator
        periods = [past.periods for past in pool.past_policies]
        assert sum(periods) == t + 1
        assert len(periods) <= most
        assert pool.past_policies[-1].names == bandit.arms
        probe = bandit.history.rows[:5]
        total = sum(pool.chance_of(arm, probe, bandit.layout) for arm in bandit.arms)
        np.testing.assert_allclose(total, 1.0, atol=1e-8)
    assert max(periods) > 4  # old stretches are long ones


def test_a_period_counts_over_the_arms_of_its_moment(rng):
    """Snapshots are taken when the arms change and when weights are settled, and no more."""
    x, reward = world(rng, 90, K=4)
    bandit = balanced(bb.UCB(), ["a", "b"], propensity="pooled", refit_every=40, snapshots=1000)
    for t in range(90):
        if t == 30:
            bandit.add_arm("c")
        if t == 60:
            bandit.remove_arm("c")
        decision = bandit.choose(x[t])
        bandit.observe(decision, reward[t, bandit.arms.index(decision.arm)])
    pool = bandit.reweighting.estimator
    periods = {past.names: 0 for past in pool.past_policies}
    for past in pool.past_policies:
        periods[past.names] += past.periods
    assert periods == {("a", "b"): 60, ("a", "b", "c"): 30}
    settled = 2 * (1 + 90 // 40) + 1  # the first round of an arm is due, and each 40 after it
    assert len(pool.past_policies) <= settled + 2


@pytest.mark.parametrize("kind", ["pooled", "estimated"])
def test_an_arm_that_comes_back_is_due_as_a_new_one(kind, rng):
    """Not only once it has as many rounds as the one that went."""
    x, reward = world(rng, 90)
    bandit = balanced(bb.UCB(), ["a", "b", "c"], propensity=kind, refit_every=0.5)
    bandit.update(x, list("abc") * 30, reward[:, 0], np.full(90, 1 / 3))
    assert bandit.reweighting.due["a"] == 45
    bandit.remove_arm("a")
    bandit.add_arm("a")
    for n, due in enumerate([2, 3, 5, 5, 8], start=1):
        bandit.update(x[n], "a", 0.0, 0.5)
        assert bandit.reweighting.due["a"] == due
        assert bandit.reweighting.due["b"] == 45


def test_a_period_counts_by_the_rule_of_its_own_round(rng):
    """ε = 1/t, and uniform before: the greedy arm's chance is pooled of 1/2 twice and 1 − 1/2t."""
    policy = bb.EpsilonGreedy(lambda t: 1 / t)
    bandit = balanced(policy, 2, 1, propensity="pooled", refit_every=1, clip=0.01)
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


def test_rounds_of_elsewhere_count_by_the_next_rounds_rule(rng):
    """Where their propensity is not known: ε = 1/t at the round that would come next."""
    policy, balance = bb.EpsilonGreedy(lambda t: 1 / t), bb.InversePropensity(clip=0.01)
    bandit = bb.Bandit(2, bb.Ridge(), policy, balance, n_features=1)
    bandit.update(np.ones((2, 1)), [0, 1], [0.0, 5.0])
    bandit.choose(np.ones((9, 1)))
    assert bandit.t == 9
    bandit.update(np.ones((2, 1)), [0, 1], [0.0, 5.0])
    np.testing.assert_allclose(1 / bandit.history.weight, [0.5, 0.5, 0.05, 0.95])
