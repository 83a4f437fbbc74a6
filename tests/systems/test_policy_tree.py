"""Policy trees: the search by enumeration of all trees, the leaves as they are defined."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import bayesbandit as bb
from bayesbandit.systems.policy_tree.belief import PolicyTree
from bayesbandit.systems.policy_tree.tree import cut_points, grown
from tests.cases import moments_of, slow_but

ARMS = ["a", "b", "c"]


def value(tree, x, score):
    """What a tree earns: the sum over leaves of the best arm's scores."""
    leaf = tree.leaf(x)
    return sum(score[leaf == one].sum(axis=0).max() for one in range(tree.n_leaves))


def best_value(x, score, depth, least, points):
    """Of all trees of so many levels, with leaves of `least` rows at least, the largest value."""
    best = score.sum(axis=0).max()
    for j in range(x.shape[1] if depth else 0):
        for point in points[j]:
            left = x[:, j] <= point
            if least <= left.sum() <= len(x) - least:
                sides = [
                    best_value(x[s], score[s], depth - 1, least, points) for s in (left, ~left)
                ]
                best = max(best, sum(sides))
    return best


def scored(n, d, K, seed, ties=False):
    rng = np.random.default_rng(seed)
    x, score = rng.normal(size=(n, d)), rng.normal(size=(n, K)) ** 3
    return (np.round(x) if ties else x), score + 100.0


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("least", [1, 3])
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_a_tree_is_the_best_of_all(seed, depth, least, ties):
    """By enumeration; all midpoints, or a few quantiles."""
    for n, d, K, cuts in ((13, 2, 3, None), (7, 3, 2, None), (25, 2, 4, 5), (2, 1, 2, None)):
        x, score = scored(n, d, K, seed, ties)
        tree = grown(x, score, np.zeros(n, int), depth, least, cuts)
        points = [cut_points(x[:, j], cuts) for j in range(d)]
        wanted = best_value(x, score, depth, least, points)
        assert value(tree, x, score) == pytest.approx(wanted, abs=1e-8)
        assert np.bincount(tree.leaf(x)).min() >= min(least, n)
        assert tree.n_leaves <= 2**depth


def test_nothing_is_split_in_vain():
    x, score = scored(50, 3, 1, 0)
    assert grown(x, score, np.zeros(50, int), 2, 1, None).n_leaves == 1
    same = np.full((50, 3), 0.1)
    assert grown(x, same, np.zeros(50, int), 2, 1, None).n_leaves == 1
    assert grown(np.ones((50, 2)), scored(50, 2, 3, 0)[1], None, 2, 1, None).n_leaves == 1


@pytest.mark.parametrize("cuts", [None, 3, 40])
def test_cut_points_lie_between_values(cuts):
    values = np.array([0.1, 0.1, np.nextafter(0.1, 1), 3.0, 3.0, 3.0, 7.0, -1e50, 1e50])
    points = cut_points(values, cuts)
    assert (np.diff(points) > 0).all()
    assert len(points) <= (cuts or 5)
    parts = [tuple(values <= point) for point in points]
    assert len(set(parts)) == len(parts)
    assert not any(all(part) for part in parts)
    if cuts != 3:
        assert len(points) == 5


def test_the_literal_form_is_scikit_learns():
    rng = np.random.default_rng(0)
    x, score, arm = rng.normal(size=(200, 3)), rng.normal(size=(200, 3)), rng.integers(3, size=200)
    arm[x[:, 1] > 0.3] = 2
    tree = grown(x, score, arm, 2, 7, None, "classification")
    weight = np.abs(score[np.arange(200), arm])
    fit = DecisionTreeClassifier(max_depth=2, min_samples_leaf=7, random_state=0)
    fit.fit(x, arm, sample_weight=weight)
    ours, theirs = tree.leaf(x), fit.apply(x)
    pairs = set(zip(ours.tolist(), theirs.tolist(), strict=True))
    assert len(pairs) == tree.n_leaves == fit.get_n_leaves() > 2


def world(T, seed=0, d=2):
    """Contexts, and rewards of which the best arm is that of a tree."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(T, d))
    best = np.where(x[:, 0] > 0, np.where(x[:, 1] > 0.3, 0, 1), 2)
    return x, 1.0 * (np.arange(3) == best[:, None]) + 0.2 * rng.normal(size=(T, 3))


def played(T=250, make=bb.PolicyTreeTS, seed=0, **settings):
    x, reward = world(T, seed)
    bandit = make(ARMS, 2, seed=3, **settings)
    bandit.play(x, reward)
    return bandit


def efficient(bandit):
    """Scores (n, K) of the history's rounds, from their definition; each round's means are those
    of a ridge regression on the rounds before it."""
    history, base = bandit.history, bb.Ridge().belief(3, 2)
    weight = history.weight if bandit.model.balanced else np.ones(len(history))
    arm, score = np.array([ARMS.index(a) for a in history.arm]), np.empty((len(history), 3))
    for i in range(len(history)):
        one = slice(i, i + 1)
        score[i] = base.predict(history.x[one]).mean[0]
        score[i, arm[i]] += history.weight[i] * (history.reward[i] - score[i, arm[i]])
        base.update(history.x[one], arm[one], history.reward[one], weight[one])
    return score, arm


@pytest.mark.parametrize("balanced", [False, True])
def test_leaves_are_means_and_variances_of_efficient_scores(balanced):
    bandit = played(balanced=balanced)
    belief, history = bandit.belief, bandit.history
    np.testing.assert_allclose(history.weight, 1 / np.maximum(0.1, history.propensity))
    score, arm = efficient(bandit)
    leaf, (mean, sd) = belief.tree.leaf(history.x), belief.of_leaves()
    assert belief.tree.n_leaves > 2
    s2 = belief.leaves.noise[1] / 250
    for one in range(belief.tree.n_leaves):
        mine = score[leaf == one]
        plays = np.bincount(arm[leaf == one], minlength=3)
        np.testing.assert_allclose(mean[one], mine.mean(axis=0), rtol=1e-9, atol=1e-9)
        own = mine.var(axis=0) / len(mine)
        np.testing.assert_allclose(sd[one] ** 2, own + 2.0 * s2 / (plays + 1) ** 2, rtol=1e-8)
    np.testing.assert_array_equal(moments_of(belief, history.x)[0], mean[leaf])


def test_the_tree_is_grown_on_its_schedule():
    bandit = played(100, refit_every=40)
    belief, (x, reward) = bandit.belief, world(60, 5)
    assert belief.fitted == 81
    before = belief.tree
    bandit.play(x[:20], reward[:20])
    assert bandit.belief.tree is before
    bandit.play(x[20:21], reward[20:21])
    assert bandit.belief.fitted == 121
    assert bandit.belief.leaves.seen.sum(axis=0).tolist() == [121.0] * 3


@pytest.mark.slow
def test_scores_have_no_bias_whatever_the_model_says():
    """Contexts that a linear model cannot use, propensities that depend on them."""
    found = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-1, 1, size=(120, 1))
        mean = np.column_stack([x[:, 0] ** 2, 0.5 - x[:, 0] ** 2])
        p = 0.2 + 0.6 * (np.abs(x[:, 0]) > 0.5)
        arm = (rng.random(120) < p).astype(int)
        belief = PolicyTree(depth=1, least=60).belief(2, 1)
        belief.update(x, arm, mean[np.arange(120), arm], 1 / np.where(arm == 1, p, 1 - p))
        leaves = belief.leaves
        found.append((leaves.seen * leaves.centre).sum(axis=0) / leaves.seen.sum(axis=0))
    off = np.mean(found, axis=0) - [1 / 3, 1 / 6]
    assert (np.abs(off) < 4 * np.std(found, axis=0) / np.sqrt(40)).all()


def test_estimated_propensities_are_in_the_scores_with_hindsight():
    bandit = played(60, bb.PolicyTreeUCB)
    weight = bandit.history.weight
    assert (weight > 1.01).any()
    np.testing.assert_array_equal(bandit.belief.log.of()["weight"], weight)
    x, means, arm, reward, weight = bandit.belief._rounds()
    means[np.arange(60), arm] += weight * (reward - means[np.arange(60), arm])
    leaf = bandit.belief.tree.leaf(x)
    for one in range(bandit.belief.tree.n_leaves):
        wanted = means[leaf == one].mean(axis=0)
        np.testing.assert_allclose(bandit.belief.leaves.centre[one], wanted, rtol=1e-9)


def test_an_arm_that_a_leaf_never_played_is_not_certain():
    belief = PolicyTree(least=1, cuts=None).belief(2, 1)
    x = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    belief.update(x, np.array([0, 0, 1, 1]), np.array([3.0, 3.0, 3.0, 3.0]), np.full(4, 2.0))
    _, sd = belief.of_leaves()
    assert (belief.leaves.plays == 0).any()
    s2 = belief.leaves.noise[1] / 4
    assert (sd[belief.leaves.plays == 0] >= np.sqrt(2 * s2) * (1 - 1e-12)).all()
    one = PolicyTree().belief(2, 1)
    one.update(x[:1], np.array([0]), np.array([3.0]))
    mean, sd = moments_of(one, x[:1])
    assert np.isfinite(mean).all()
    assert sd[0, 0] > 0
    assert sd[0, 1] == np.inf


def test_rewards_have_no_units():
    x, reward = world(100)
    for c in (2.0**-20, 2.0**20):
        one, other = bb.PolicyTreeTS(3, 2, seed=1), bb.PolicyTreeTS(3, 2, seed=1)
        a, b = one.play(x, reward), other.play(x, c * reward)
        np.testing.assert_array_equal(a[0], b[0])
        np.testing.assert_allclose(a[1], b[1], atol=1e-9)


@pytest.mark.parametrize("preset", slow_but([bb.PolicyTreeTS], [bb.PolicyTreeTS, bb.PolicyTreeUCB]))
def test_arms_come_and_go_between_trees(preset):
    bandit = played(make=preset, refit_every=10_000)
    belief, plays = bandit.belief, bandit.belief.leaves.plays.copy()
    bandit.add_arm("d")
    assert bandit.belief.new.tolist() == [False, False, False, True]
    np.testing.assert_array_equal(bandit.belief.leaves.plays[:, :3], plays)
    np.testing.assert_array_equal(bandit.belief.leaves.seen[:, 3], 0.0)
    x = world(30, 4)[0]
    assert bandit.choose(x).probabilities[:, 3] == pytest.approx(1 / 4)
    bandit.update(x[:1], ["d"], [5.0], [0.25])
    mean, sd = moments_of(bandit.belief, x)
    assert np.isfinite(sd).all()
    assert mean[:, 3] == pytest.approx(mean[0, 3])  # leaves without a score have that of all
    bandit.remove_arm("a")
    assert bandit.arms == ("b", "c", "d")
    leaves = bandit.belief.leaves
    np.testing.assert_array_equal(leaves.plays[:, :2], plays[:, 1:])
    assert leaves.seen[:, 0].sum() == 251  # rounds of the arm that is gone are contexts still
    bandit.belief._grow()
    assert np.isfinite(bandit.belief.of_leaves()[0]).all()
    assert belief.n.shape == (3,)


def test_it_prints():
    bandit = played(300)
    said = bandit.belief.text(bandit.arms, ["age", "income"])
    assert said.splitlines()[0].startswith(("age ≤ ", "income ≤ "))
    assert said.count("±") == 3 * bandit.belief.tree.n_leaves
    best = bandit.belief.of_leaves()[0].argmax(axis=1)
    firsts = [line.rpartition(": ")[2].split()[0] for line in said.splitlines() if "±" in line]
    assert firsts == [ARMS[k] for k in best]
    assert "x0" in str(bandit.belief)
    assert repr(bandit.belief).startswith("TreeBelief(")
