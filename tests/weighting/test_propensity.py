"""Inverse-propensity weights where arms come and go, and where the policy's rule changes; and the
regression of arm on context behind estimated propensities, against scikit-learn's."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

import bayesbandit as bb
from bayesbandit.weighting.estimated import logistic
from tests.attack.naive import Naive, Round
from tests.bandit.kinds import KINDS
from tests.cases import few


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


def problem(rng, n, d, A, kind):
    x = rng.normal(size=(n, d))
    if kind == "correlated":
        x = x @ rng.normal(size=(d, d))
    score = 2 * x @ rng.normal(size=(d, A))
    label = (score if kind == "separable" else score + rng.gumbel(size=(n, A))).argmax(axis=1)
    label[:A] = np.arange(A)
    if kind == "constant":
        x[:, 0] = 7.0
    x = x - x.mean(axis=0)
    return x / np.where(x.std(axis=0) > 1e-9, x.std(axis=0), np.inf), label


def probabilities(x, logits):
    return softmax(np.column_stack([x, np.ones(len(x))]) @ logits.T, axis=1)


@pytest.mark.parametrize("kind", ["independent", "correlated", "separable", "constant"])
@pytest.mark.parametrize(
    ("n", "d", "A"), [(2, 3, 2), (30, 1, 2), (400, 5, 3), (300, 12, 7), (40, 150, 3)]
)
@few("2-3-2", "30-1-2")
def test_it_is_scikit_learns_at_its_tightest(n, d, A, kind, rng):
    x, label = problem(rng, n, d, A, kind)
    theirs = LogisticRegression(solver="newton-cholesky", tol=1e-12, max_iter=10_000).fit(x, label)
    p = probabilities(x, logistic(x, label))
    np.testing.assert_allclose(p, theirs.predict_proba(x), rtol=1e-3, atol=1e-4)


def test_without_features_it_is_the_shares_of_the_labels():
    label = np.repeat([0, 1, 2], [5, 3, 2])
    p = probabilities(np.empty((10, 0)), logistic(np.empty((10, 0)), label))
    np.testing.assert_allclose(p[0], [0.5, 0.3, 0.2], rtol=1e-4)


def test_neither_the_order_of_rows_nor_the_labels_numbers_matter(rng):
    x, label = problem(rng, 200, 4, 3, "correlated")
    p, order = probabilities(x, logistic(x, label)), rng.permutation(200)
    again = probabilities(x, logistic(x[order], label[order]))
    renumbered = probabilities(x, logistic(x, 2 - label))[:, ::-1]
    np.testing.assert_allclose(again, p, rtol=1e-3)
    np.testing.assert_allclose(renumbered, p, rtol=1e-3)
