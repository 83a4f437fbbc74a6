"""`bandit.predict`: what is believed of mean rewards at any contexts, and nothing changes."""

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb
from tests.bandit.kinds import every, probe, trained
from tests.cases import few
from tests.players import ALL, anatomy, public, world

SYSTEMS = {
    "Bootstrap": bb.BootstrapRidgeTS,
    "Forest": bb.ForestUCB,
    "PolicyTree": bb.systems.PolicyTreeTS,
    "ILTCB": bb.systems.ILTCB,
    "SuperUCB": bb.systems.SuperLinUCB,
}


def changes_nothing(bandit, x):
    """The prediction; nothing of the bandit is different, nor is what it decides next."""
    twin, before = bandit.copy(), public(bandit)
    prediction = bandit.predict(x)
    assert public(bandit) == before
    decisions = [one.choose(x) for one in (bandit, twin)]
    assert decisions[0].arm.tolist() == decisions[1].arm.tolist()
    np.testing.assert_array_equal(*(d.probabilities for d in decisions))
    return prediction


@few("[LinTS]", "[BLTS pooled]")
@pytest.mark.parametrize("name", ALL)
def test_it_is_what_the_next_decision_is_made_from(name, rng):
    x, reward = world(rng, 40)
    bandit = ALL[name](3, 3)
    bandit.play(x, reward)
    if name in bb.__all__:
        whole = anatomy(bandit)
        bandit.predict(x)
        assert anatomy(bandit) == whole
    prediction = changes_nothing(bandit, x)
    decision = bandit.copy().choose(x)
    np.testing.assert_allclose(prediction.mean, decision.mean, rtol=1e-12)
    np.testing.assert_allclose(prediction.sd, decision.sd, rtol=1e-12)


@every
def test_a_declared_models_too(kind):
    prediction = changes_nothing(trained(kind), probe())
    assert prediction.mean.shape == prediction.sd.shape == prediction.best().shape == (4, 3)
    assert prediction.draw(5, np.random.default_rng(0)).shape == (5, 4, 3)


@few("[Forest]")
@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_that_refits_when_it_is_asked(name, rng):
    x, reward = world(rng, 60)
    bandit = SYSTEMS[name](3, 3, seed=1)
    arm = np.arange(60) % 3
    bandit.update(x, arm, (reward[np.arange(60), arm] > 0) * 1.0, np.full(60, 1 / 3))
    prediction = changes_nothing(bandit, x[:5])
    assert prediction.mean.shape == (5, 3)


def test_later_rewards_do_not_change_a_prediction(rng):
    x, reward = world(rng, 60)
    bandit = bb.LinTS(3, 3)
    bandit.play(x[:30], reward[:30])
    prediction, same = bandit.predict(x), bandit.copy().predict(x)
    bandit.play(x[30:], reward[30:])
    for one in ("mean", "sd"):
        np.testing.assert_array_equal(getattr(prediction, one), getattr(same, one))


def test_contexts_are_as_in_choose(rng):
    frame = pd.DataFrame({"age": [20.0, 60.0], "country": ["at", "de"]})
    bandit = bb.LinTS(["a", "b"], encoder=bb.Encoder.fit(frame))
    bandit.update(frame, ["a", "b"], [1.0, 0.0])
    both = bandit.predict(frame).mean
    np.testing.assert_array_equal(bandit.predict(frame.to_dict("records")).mean, both)
    np.testing.assert_allclose(bandit.predict(dict(frame.iloc[0])).mean, both[:1], rtol=1e-12)
    with pytest.raises(ValueError, match="age"):
        bandit.predict({"country": "at"})
    assert bb.Bandit(2, bb.Ridge(), bb.Thompson(), n_features=0).predict().mean.shape == (1, 2)
    shared = bb.Bandit(2, bb.Shared(bb.Ridge()), bb.Thompson(), n_features=3)
    assert shared.predict(rng.normal(size=(2, 3))).mean.shape == (1, 2)
    assert shared.predict(rng.normal(size=(4, 2, 3))).mean.shape == (4, 2)
    with pytest.raises(ValueError, match="3 features"):
        shared.predict(np.ones((2, 2)))


def test_a_bandit_that_forgets_predicts_as_of_the_next_round(rng):
    x, reward = world(rng, 40)
    bandit = bb.LinTS(3, 3, half_life=5)
    bandit.play(x, reward)
    before = bandit.predict(x).mean
    np.testing.assert_array_equal(bandit.predict(x).mean, before)
    np.testing.assert_allclose(bandit.copy().choose(x[0]).mean, before[0], rtol=1e-12)
    bandit.forget(50)
    assert np.abs(bandit.predict(x).mean).max() < np.abs(before).max()
