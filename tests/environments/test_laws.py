"""The laws of an environment, for every one."""

from dataclasses import fields

import numpy as np
import pandas as pd
import pytest

from bayesbandit.environments import (
    Classification,
    Environment,
    KnownRewards,
    NonLinear,
    SparseLinear,
    SyntheticExample,
)
from bayesbandit_studies.worlds import Linear

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
FRAME = pd.DataFrame(RNG.normal(size=(90, 4)), columns=["x", "z", "a", "b"])
ROWS = [Classification(X, np.arange(90) % 3, "toy"), KnownRewards(FRAME, ["b", "a"], "prices")]
DRAWN = [SyntheticExample("well"), SyntheticExample("mis"), SparseLinear(), NonLinear()]
DRAWN.append(Linear([[1.0, 2.0], [0.0, -1.0], [0.5, 0.0]], spread=0.5, sigma=0.7, constant=True))
every = pytest.mark.parametrize("world", ROWS + DRAWN, ids=lambda world: world.name)
drawn = pytest.mark.parametrize("world", DRAWN, ids=lambda world: world.name)


def draw(world, horizon=None, seed=0):
    return world.sample(horizon, np.random.default_rng(seed))


def arrays(sample):
    return {f.name: getattr(sample, f.name) for f in fields(sample)}


@every
def test_it_obeys_the_protocol(world):
    assert isinstance(world, Environment)
    sample = draw(world, 40)
    assert sample.x.shape == (40, world.n_features)
    assert sample.mean.shape == sample.reward.shape == (40, len(world.arms))
    kinds = {a.dtype for n, a in arrays(sample).items() if a is not None and n != "warm_arm"}
    assert kinds == {np.dtype("float64")}
    assert sample.x.flags.c_contiguous
    assert len(draw(world).x) == getattr(world, "horizon", 90)


@every
def test_one_seed_one_sample(world):
    first, again, other = draw(world, 60), draw(world, 60), draw(world, 60, seed=1)
    for name, array in arrays(first).items():
        np.testing.assert_array_equal(array, arrays(again)[name])
    assert not np.array_equal(first.x, other.x)


@every
def test_a_longer_horizon_continues_the_shorter(world):
    short, long = draw(world, 30), draw(world, 90)
    for name in ("x", "mean", "reward"):
        if (type(world), name) != (Linear, "reward"):  # whose noise is drawn last
            np.testing.assert_array_equal(arrays(short)[name], arrays(long)[name][:30])
    np.testing.assert_array_equal(short.warm_reward, long.warm_reward)


@every
def test_a_horizon_is_at_least_one(world):
    for horizon in (0, -3):
        with pytest.raises(ValueError, match=f"horizon must be an integer ≥ 1; got {horizon}"):
            draw(world, horizon)


@drawn
def test_noise_is_shared_by_the_arms_and_of_the_stated_size(world):
    sample = draw(world, 4000)
    noise = sample.reward - sample.mean
    np.testing.assert_allclose(noise, noise[:, :1].repeat(3, axis=1), atol=1e-12)
    # the standard error of a standard deviation is sigma / sqrt(2 n)
    assert abs(noise[:, 0].std() - world.sigma) < 4 * world.sigma / np.sqrt(8000)
