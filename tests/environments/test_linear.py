"""Arms that are linear in contexts."""

import numpy as np

from bayesbandit.environments import Linear


def test_it_is_an_environment_and_says_its_truth():
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


def test_worlds_know_each_other_apart():
    same = [Linear([[1.0]]), Linear([[1.0]])]
    assert same[0].fingerprint == same[1].fingerprint
    others = [Linear([[1.0 + 1e-12]]), Linear([[1.0]], 0.1), Linear([[1.0]], sigma=2.0)]
    others.append(Linear([[1.0]], constant=True))
    assert len({world.fingerprint for world in [same[0], *others]}) == 5
