"""The simulated designs: their means, their warm start, and their judgements."""

import numpy as np
from scipy.stats import norm

from bayesbandit.environments import NonLinear, SparseLinear, SyntheticExample
from bayesbandit.environments.synthetic import BEST_LINEAR_VALUE, WARM_INTERVAL, WARM_ROUNDS
from bayesbandit_studies.worlds import Linear
from tests.environments.test_laws import arrays, draw

# The policy of the best linear fits, 2 + z₀ + z₁, 1 and −z₀ − z₁: its threshold is −1.
PLUG_IN_LINEAR_VALUE = 2.17958681


def test_paper_means_by_hand():
    z = np.array([[0.0, 0.0], [-1.0, -1.0], [1.0, -2.0]])
    expected = [[1, 1, 1], [0, 1, 2], [2.5, 1, -0.5]]
    np.testing.assert_allclose(SyntheticExample().expected_rewards(z), expected)
    # f(x) = 2σ Σ_{j=2}^{q+1} x_j: with q = 2 of d = 5 columns, columns 2 and 3
    x = np.array([[0.5, -1.0, 1.0, 2.0, 100.0]])
    np.testing.assert_allclose(
        SparseLinear(d=5, q=2, sigma=0.5).expected_rewards(x), [[3.5, 3.5, 2.0]]
    )
    x = np.zeros((4, 10))
    x[:, :2] = [[2, 1], [-2, 1], [-2, -1], [2, -1]]
    means = NonLinear().expected_rewards(x)
    np.testing.assert_allclose(means, [[2, -2, 3], [-2, 2, 3], [-2, 2, -3], [2, -2, -3]])
    assert means.argmax(axis=1).tolist() == [2, 2, 1, 0]  # the paper's four quadrants


def test_warm_start_is_the_papers():
    rounds = [draw(SyntheticExample("mis"), 1, seed=seed) for seed in range(40)]
    x = np.concatenate([s.warm_x for s in rounds])
    arm = np.concatenate([s.warm_arm for s in rounds])
    reward = np.concatenate([s.warm_reward for s in rounds])
    n = 40 * WARM_ROUNDS
    assert x.shape == (n, 2)
    low, high = WARM_INTERVAL
    assert low < x.min() < low + 0.01
    assert high - 0.01 < x.max() < high
    mass = norm.cdf(high) - norm.cdf(low)
    mean = (norm.pdf(low) - norm.pdf(high)) / mass
    assert abs(x.mean() - mean) < 4 * 0.3 / np.sqrt(12 * x.size)
    assert np.all(np.abs(np.bincount(arm) - n / 3) < 4 * np.sqrt(n * 2 / 9))
    assert all((s.warm_propensity == 1 / 3).all() for s in rounds)
    noise = reward - SyntheticExample().expected_rewards(x)[np.arange(n), arm]
    assert abs(noise.std() - 0.1) < 4 * 0.1 / np.sqrt(2 * n)
    assert abs(noise.mean()) < 4 * 0.1 / np.sqrt(n)


def test_specifications_differ_in_features_alone():
    well, mis = draw(SyntheticExample("well"), 50), draw(SyntheticExample("mis"), 50)
    for name in ("x", "warm_x", "test_x"):
        z, features = arrays(mis)[name], arrays(well)[name]
        np.testing.assert_array_equal(features, np.hstack([z, z**2]))
        np.testing.assert_array_equal(features, SyntheticExample("well").features(z))
    for name in ("mean", "reward", "warm_arm", "warm_reward", "test_mean"):
        np.testing.assert_array_equal(arrays(well)[name], arrays(mis)[name])


def test_every_replication_is_judged_on_the_same_contexts():
    design = SyntheticExample("mis", n_test=500)
    first, other = draw(design, 5), draw(design, 9, seed=1)
    np.testing.assert_array_equal(first.test_x, other.test_x)
    np.testing.assert_array_equal(first.test_mean, design.expected_rewards(first.test_x))
    assert first.test_x.shape == (500, 2)


def test_test_contexts_value_the_linear_policies_as_quadrature_does():
    s = draw(SyntheticExample("mis"), 1)
    total = s.test_x.sum(axis=1)
    for threshold, value in ((np.sqrt(2) - 2, BEST_LINEAR_VALUE), (-1, PLUG_IN_LINEAR_VALUE)):
        earned = np.where(total > threshold, s.test_mean[:, 0], s.test_mean[:, 2])
        assert abs(earned.mean() - value) < 2 * earned.std() / np.sqrt(len(earned))


def test_solved():
    well, mis = SyntheticExample("well"), SyntheticExample("mis")
    assert well.solved(0.0, 0.95)
    assert not well.solved(9.9, 0.949)
    assert mis.solved(0.95 * BEST_LINEAR_VALUE, 0.0)
    assert not mis.solved(0.949 * BEST_LINEAR_VALUE, 1.0)
    assert mis.solved(PLUG_IN_LINEAR_VALUE, 0.0)


def test_names_tell_designs_apart_and_fingerprints_worlds():
    designs = [SyntheticExample("well"), SyntheticExample("mis"), SparseLinear(), NonLinear()]
    designs += [SparseLinear(q=10), SparseLinear(sigma=0.5), SparseLinear(d=60)]
    assert len({d.name for d in designs}) == len(designs)
    worlds = [Linear([[1.0]]), Linear([[1.0 + 1e-12]]), Linear([[1.0]], 0.1)]
    worlds += [Linear([[1.0]], sigma=2.0), Linear([[1.0]], constant=True)]
    assert len({world.fingerprint for world in worlds}) == len(worlds)
    assert Linear([[1.0]]).fingerprint == worlds[0].fingerprint
    assert SyntheticExample().name == "synthetic-well"


def test_a_linear_world_says_its_truth():
    world = Linear([[1.0, 2.0], [0.0, -1.0]], spread=[[0.5, 0.0], [0.0, 0.0]], constant=True)
    sample = world.sample(50, np.random.default_rng(3))
    theta = world.theta(np.random.default_rng(3))
    np.testing.assert_array_equal(sample.test_mean.T, theta)
    np.testing.assert_allclose(sample.mean, sample.x @ theta.T)
    assert (sample.x[:, -1] == 1.0).all()
    assert theta[0, 0] != 1.0
    assert theta.ravel()[1:].tolist() == [2.0, 0.0, -1.0]
    other = world.sample(50, np.random.default_rng(4))
    assert other.test_mean[0, 0] != theta[0, 0]
