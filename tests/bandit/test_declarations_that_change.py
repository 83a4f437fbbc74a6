"""Declarations that read what changes, or that hold for some rows alone, in fits and in bandits."""

import numpy as np
import pymc as pm
import pytensor
import pytest

import bayesbandit as bb
from tests.cases import few, moments_of

EACH = bb.Prior("Normal", mu=0, sigma=1, dims="feature")
ARMS = bb.Prior("Normal", mu=0, sigma=1, dims=("arm", "feature"))


def reading(noise, shared=False, intercept=0.0):
    """A ridge regression, which streams by a belief of its own kind."""

    def own(x, reward, t):
        mu = x @ t + intercept
        pm.Normal("reward", mu, noise, observed=reward)
        return mu

    def together(x, reward, arm, t):
        mu = (x * t[arm]).sum(axis=-1)
        pm.Normal("reward", mu, noise, observed=reward)
        return mu

    return bb.reward_model(t=ARMS if shared else EACH)(together if shared else own)


@pytest.mark.slow
@pytest.mark.parametrize(("shared", "intercept"), [(False, 0.0), (False, 1.0), (True, 0.0)])
@few("False-1.0")
def test_a_bandit_is_saved_as_the_declaration_that_it_was_made_with(shared, intercept, tmp_path):
    noise, rng = pytensor.shared(1.0), np.random.default_rng(0)
    model = reading(noise, shared, intercept)
    bandit = bb.Bandit(2, model, bb.Thompson(), n_features=2)
    x = rng.normal(size=(30, 2))
    bandit.update(x, np.arange(30) % 2, x @ [1.0, 2.0], np.full(30, 0.5))
    known = moments_of(bandit.belief, x[:3])
    noise.set_value(3.0)
    with pytest.warns(UserWarning, match="builds another model now"):
        bandit.save(tmp_path / "bandit")
    with pytest.raises(ValueError, match="not the one that the bandit was saved with"):
        bb.Bandit.load(tmp_path / "bandit", model=model)
    if shared:
        with pytest.raises(ValueError, match="builds another model than when"):
            bandit.add_arm("new")
    noise.set_value(1.0)
    loaded = bb.Bandit.load(tmp_path / "bandit", model=model)
    for one, other in zip(known, moments_of(loaded.belief, x[:3]), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_a_level_that_was_not_declared_is_named():
    @bb.reward_model()
    def by_city(x, reward):
        mu = pm.Normal("u", 0, 2, shape=4)[x[:, 0].astype("int32")]
        pm.Normal("reward", mu, 0.5, observed=reward)
        return mu

    found = bb.fit(by_city, [[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"index 7 .*a level that was not declared"):
        found.mean([[7.0]])
    bandit = bb.Bandit(2, by_city, bb.Thompson(), n_features=1)
    with pytest.raises(ValueError, match="a level that was not declared"):
        bandit.choose([7.0])
    assert bandit.t == 0
