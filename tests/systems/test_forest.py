"""Honest forests: as scikit-learn's trees and NumPy have them, and as econml has them."""

import warnings

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from bayesbandit.systems.forest import kernels as honest
from bayesbandit.systems.forest import trees as honest_trees
from bayesbandit.systems.forest.belief import Forest
from bayesbandit.systems.forest.trees import Growth, Trees
from tests.cases import moments_of

FEW = {"trees": 12, "bag": 3}


def rows(n=80, d=3, seed=0):
    """Contexts, rewards of the paper's third arm, weights, and the true means."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    mean = np.sign(x[:, 1]) * (np.abs(x[:, 0]) + 1)
    return x, mean + 0.1 * rng.normal(size=n), rng.uniform(0.4, 4.0, size=n), mean


def learned(n=60, seed=2, **settings):
    belief = Forest(**FEW | settings).belief(2, 3, seed=np.random.SeedSequence(4))
    rng = np.random.default_rng(seed)
    x, arm = rng.normal(size=(n, 3)), np.arange(n) % 2
    reward = np.where(arm == 0, x[:, 0], -x[:, 1]) + 0.1 * rng.normal(size=n)
    belief.update(x, arm, reward, rng.uniform(0.5, 3.0, size=n))
    return belief, x, arm, reward


def twin(growth, grow, fill, seed):
    """A tree's honest values (n, 2) at all rows: splits from scikit-learn, the rest by hand."""
    how, w, y = growth.how, growth.weight, growth.reward
    copies = np.maximum(np.rint(w), 1).astype(int) if how == "replicate" else np.ones(len(w), int)
    v = w if how == "sample_weight" else np.ones(len(w))
    grow, fill = np.repeat(grow, copies[grow]), np.repeat(fill, copies[fill])
    tree = DecisionTreeRegressor(
        min_samples_split=growth.min_node + 1, min_samples_leaf=growth.min_leaf,
        max_features=growth.tried, random_state=seed,
    ).fit(growth.codes[grow], y[grow], v[grow]).tree_  # fmt: skip
    out = np.empty((len(w), 2))

    def descend(node, grow, fill, asked, above):
        mine = v[fill].mean(), (v * y)[fill].mean()
        mine = mine if len(fill) >= growth.min_leaf else above
        out[asked] = mine
        if tree.children_left[node] >= 0:
            x = growth.x[:, tree.feature[node]]
            left = growth.codes[grow, tree.feature[node]] <= tree.threshold[node]
            half = (x[grow[left]].max() + x[grow[~left]].min()) / 2
            for child, side in (
                (tree.children_left[node], x <= half),
                (tree.children_right[node], x > half),
            ):
                descend(child, *(i[side[i]] for i in (grow, fill, asked)), mine)

    with np.errstate(invalid="ignore"), warnings.catch_warnings(action="ignore"):
        descend(0, grow, fill, np.arange(len(w)), None)
    return out


@pytest.mark.parametrize("how", ["sample_weight", "replicate"])
@pytest.mark.parametrize("min_leaf", [1, 4])
def test_a_tree_is_grown_by_one_half_and_filled_by_the_other(how, min_leaf, rng):
    x, reward, weight, _ = rows()
    growth = Growth(x, reward, weight, how, 5, min_leaf, 3)
    grow, fill = np.array_split(rng.permutation(80)[:50], 2)
    tree = growth.tree(grow, fill, 7)
    np.testing.assert_allclose(tree.ask(x)[0], twin(growth, grow, fill, 7), rtol=1e-12)
    if how == "sample_weight":
        assert len(tree.feature) > 5


def test_no_reward_of_the_filling_half_moves_a_split(rng):
    x, reward, weight, _ = rows()
    grow, fill = np.array_split(rng.permutation(80)[:50], 2)
    other = reward.copy()
    other[fill] = rng.normal(size=len(fill))
    one, two = (
        Growth(x, r, weight, "sample_weight", 5, 1, 3).tree(grow, fill, 7) for r in (reward, other)
    )
    for name in ("feature", "threshold", "left", "right"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert not np.array_equal(one.value, two.value)


def test_mean_and_variance_are_those_of_little_bags():
    """The formula of grf and econml, straight."""
    x, reward, weight, _ = rows()
    spec = Forest(**FEW)
    made = spec.grown(x, reward, weight, np.random.default_rng(1))
    assert made.trees is not None
    asked = made.trees.ask(x[:9])
    mean, variance = np.empty((2, 9))
    honest.little_bags(asked, 3, mean, variance)
    W, Y = asked[:, :, 0], asked[:, :, 1]
    mu = Y.sum(axis=0) / W.sum(axis=0)
    psi = ((Y - mu * W) / W.mean(axis=0)).reshape(4, 3, 9)
    between = (psi.mean(axis=1) ** 2).mean(axis=0)
    noise = ((psi**2).mean(axis=(0, 1)) - between) / 2
    np.testing.assert_allclose(noise, psi.var(axis=1).mean(axis=0) / 2)
    np.testing.assert_allclose(mean, mu)
    error = np.maximum(between, noise) * np.sqrt(2 / 4)
    above = between - noise + error * np.random.default_rng(0).normal(size=(400_000, 9))
    for i in range(9):
        kept = above[above[:, i] > 0, i]
        np.testing.assert_allclose(variance[i], kept.mean(), atol=6 * kept.std() / len(kept) ** 0.5)
    assert made.sd == pytest.approx(np.sqrt(np.cov(reward, aweights=weight, ddof=0)))
    assert made.level == pytest.approx(np.average(reward, weights=weight))


def test_the_part_above_0_far_below_it():
    values = [honest.positive(z, 1.0, 2) for z in (-29.9, -30.1, -1e6)]
    assert values[0] > values[1] > values[2] > 0
    assert values[1] == pytest.approx(1 / 30.1, rel=2e-3)
    assert honest.positive(3.0, 0.0, 4) == 0.0


def test_a_split_on_the_propensity_is_averaged_over():
    """Shares of the left side, two levels deep, and a split on a context between."""
    nodes = {
        "feature": np.array([1, 0, -1, -1, 1, -1, -1]),
        "threshold": np.array([0.25, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0]),
        "left": np.array([1, 2, 0, 0, 5, 0, 0]),
        "right": np.array([4, 3, 0, 0, 6, 0, 0]),
    }
    value = np.column_stack([np.ones(7), np.arange(7.0)])
    asked = Trees(**nodes, value=value, roots=np.array([0, 7])).ask(np.array([[-1.0], [1.0]]))[0]
    np.testing.assert_allclose(asked[:, 0], 1.0)
    np.testing.assert_allclose(asked[:, 1], [0.25 * left + 0.75 * 5.5 for left in (2.0, 3.0)])


def test_the_propensity_as_a_covariate_takes_its_bias_away():
    """Rewards and propensities depend on what no context says: the mean of all rounds is biased,
    the average over strata of the propensity is not."""
    rng = np.random.default_rng(3)
    hidden = rng.integers(2, size=4000)
    p = np.where(hidden == 0, 0.8, 0.2)
    taken = rng.random(4000) < p
    reward = 2.0 * hidden + 0.1 * rng.normal(size=4000)
    x, n = rng.normal(size=(4000, 1)), int(taken.sum())
    means = {}
    for weights, weight in (
        ("covariate", 1 / p),
        ("sample_weight", 1 / p),
        ("plain", np.ones(4000)),
    ):
        spec = Forest(**FEW, refit_every=1, weights="covariate" if weights == "plain" else weights)
        belief = spec.belief(1, 1)
        belief.update(x[taken], np.zeros(n, int), reward[taken], weight[taken])
        means[weights] = moments_of(belief, np.zeros((1, 1)))[0].item()
    assert means["plain"] == pytest.approx(0.4, abs=0.25)
    assert means["covariate"] == pytest.approx(1.0, abs=0.15)
    assert means["sample_weight"] == pytest.approx(1.0, abs=0.4)


def econml():
    return pytest.importorskip("econml.grf").RegressionForest


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_econmls_trees_say_the_same_here(weighted):
    """Its own trees in our arrays, asked by our kernels: its means and variances to rounding."""
    x, reward, weight, _ = rows(300, 5)
    peer = econml()(n_estimators=40, subforest_size=4, n_jobs=1, random_state=1)
    peer.fit(x, reward, sample_weight=weight if weighted else None)
    made = []
    for one in peer.estimators_:
        tree, leaf, (alpha, jac) = one.tree_, one.apply(x), one.predict_alpha_and_jac(x)
        inner = tree.children_left >= 0
        value = np.ones((len(inner), 2))
        value[leaf] = np.column_stack([jac[:, 0], alpha[:, 0]])
        feature, left, right = (
            np.where(inner, array, end).astype(np.int64)
            for array, end in (
                (tree.feature, -1), (tree.children_left, 0), (tree.children_right, 0)
            )
        )  # fmt: skip
        threshold = np.where(inner, tree.threshold, 0.0)
        made.append(Trees(feature, threshold, left, right, value, np.array([0, len(inner)])))
    mean, variance = np.empty((2, 300))
    honest.little_bags(honest_trees.joined(made).ask(x), 4, mean, variance)
    point, covariance = peer.predict_and_var(x)
    np.testing.assert_allclose(mean, point[:, 0], rtol=1e-9)
    np.testing.assert_allclose(variance, covariance[:, 0, 0], rtol=1e-7)


def test_units_change_nothing():
    """Contexts and rewards in other ones, by powers of 2 that leave their digits alone."""
    x, reward, weight, _ = rows(60)
    found = []
    for factor in (1.0, 2.0**-60, 2.0**100):
        belief = Forest(**FEW, refit_every=1).belief(1, 3)
        belief.update(x * factor, np.zeros(60, int), reward * factor, weight)
        found.append(np.stack(moments_of(belief, x * factor)) / factor)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12)
    np.testing.assert_allclose(found[2], found[0], rtol=1e-12)


def test_forests_wait_for_growth():
    belief, x, arm, reward = learned(60, refit_every=10, least=10)
    assert belief.fitted.tolist() == [30.0, 30.0]
    before = belief.fits
    belief.update(x[:18], arm[:18], reward[:18])
    assert belief.fits is before
    belief.update(x[18:20], arm[18:20], reward[18:20])
    assert belief.fitted.tolist() == [40.0, 40.0]
    fresh = Forest(**FEW, least=12).belief(2, 3)
    fresh.update(x[:23], arm[:23], reward[:23])
    assert fresh.new.tolist() == [False, True]
    mean, sd = moments_of(fresh, x[:1])
    assert np.isinf(sd[0, 1])
    assert mean[0, 1] == pytest.approx(reward[1:23:2].mean())  # what `greedy` goes by so far
    with pytest.raises(ValueError, match="not proper before there are more rewards"):
        fresh.predict(x).draw(5, np.random.default_rng(0))
    assert fresh.predict(x).among(~fresh.new).draw(5, np.random.default_rng(0)).shape == (5, 60, 1)


def test_an_arm_whose_first_rewards_are_alike_is_not_locked_out():
    """Ten zeros are no certainty where rewards of others vary."""
    belief = Forest(**FEW, refit_every=1, variance_floor=2.0).belief(2, 1)
    x, arm = np.linspace(-1, 1, 30)[:, None], np.repeat([0, 1], [10, 20])
    reward = np.where(arm == 1, np.arange(30) % 2, 0.0)
    belief.update(x, arm, reward)
    mean, sd = moments_of(belief, np.zeros((1, 1)))
    assert mean[0, 0] == 0.0
    assert sd[0, 0] == pytest.approx(np.sqrt(2.0 * reward.var() / 10))
    assert sd[0, 1] >= np.sqrt(2.0 * reward[10:].var() / 20) * (1 - 1e-9)
    flat = Forest(**FEW).belief(2, 1)
    flat.update(x, arm, np.zeros(30))
    np.testing.assert_array_equal(np.stack(moments_of(flat, x)), 0.0)
    np.testing.assert_allclose(flat.predict(x).best(), 0.5)


def test_normalised_weights_have_no_scale():
    """Replication is the only use of weights that has one."""
    x, reward, weight, _ = rows(60)
    found = []
    for factor in (1.0, 64.0):
        belief = Forest(**FEW, weights="replicate").belief(1, 3, normalize=True)
        belief.update(x, np.zeros(60, int), reward, weight * factor)
        found.append(np.stack(moments_of(belief, x)))
    np.testing.assert_array_equal(*found)


def test_bags_spread_about_the_mean():
    belief, x, *_ = learned(weights="replicate")
    bags, (mean, _) = belief.values(x[:5]), moments_of(belief, x[:5])
    assert bags.shape == (5, 2, 4)
    np.testing.assert_allclose(bags.mean(axis=2), mean)


def test_weights_that_change_grow_a_forest_anew():
    belief, x, arm, reward = learned()
    before, weight = moments_of(belief, x)[0], np.where(x[:, 0] > 0, 50.0, 0.01)
    belief.reweigh([0], x, arm, reward, weight)
    after = moments_of(belief, x)[0]
    assert not np.array_equal(after[:, 0], before[:, 0])
    np.testing.assert_array_equal(after[:, 1], before[:, 1])
    assert belief.fitted[0] == 30
