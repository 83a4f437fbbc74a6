"""Decisions do not depend on the units of the rewards, and no first reward locks an arm out."""

from functools import partial

import numpy as np
import pytest

import bayesbandit as bb
from tests.players import PRESETS, world

POWERS = [2.0**-20, 2.0**20]
SETTINGS = {
    **PRESETS,
    "cv": partial(bb.LinTS, ridge="cv"),
    "balanced cv": partial(bb.BLTS, ridge="cv", normalize=True, folds=3),
    "unpenalised": partial(bb.LinTS, intercept="unpenalised"),
    "no intercept": partial(bb.LinUCB, intercept=False),
    "refits": partial(bb.BLTS, refit_every=7),
    "half-life": partial(bb.BLTS, half_life=30.0, normalize=False, propensity="decision"),
    "half-lives": partial(bb.LinTS, half_life="auto"),
}


def run(name, x, reward, c):
    """Arms, propensities, and θ and its spread in units of c."""
    bandit = SETTINGS[name](3, x.shape[1], seed=5)
    chosen, propensity = bandit.play(x, c * reward)
    locations = [bandit.posterior(k).location / c for k in range(3)]
    spreads = [bandit.posterior(k).spread / c / c for k in range(3)]
    return chosen, propensity, locations, spreads


@pytest.mark.parametrize("kind", ["normal", "0 and 1"])
@pytest.mark.parametrize("c", POWERS)
@pytest.mark.parametrize("name", SETTINGS)
def test_rewards_have_no_units(name, c, kind, rng):
    """r → c·r: the same arms and propensities, and θ and V(θ) of c times and c² times, to the bit
    where c is a power of 2."""
    x, reward = world(rng, 150)
    reward = reward if kind == "normal" else (reward > 0.5).astype(float)
    for mine, other in zip(run(name, x, reward, 1.0), run(name, x, reward, c), strict=True):
        np.testing.assert_array_equal(other, mine)


def is_locked_out(make, d, seed, rounds=1000):
    """Of arms with means .2, .5 and .8 the best has less than 5 % of the last fifth of rounds."""
    rng = np.random.default_rng([d, seed])
    x, reward = rng.normal(size=(rounds, d)), rng.random((rounds, 3)) < (0.2, 0.5, 0.8)
    chosen, _ = make(3, d, seed=seed).play(x, reward.astype(float), every=rounds)
    return np.mean(chosen[-rounds // 5 :] == 2) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("d", [0, 1])
@pytest.mark.parametrize("name", ["LinTS", "BLTS", "LinUCB"])
def test_no_best_arm_is_locked_out(name, d):
    """On rewards of 0 and 1 in at most 3 of 200 runs, the standard error of 1 in 200 being .5 %; by
    the paper's scale it is 8 to 20 % of them."""
    lost = np.mean([is_locked_out(getattr(bb, name), d, seed) for seed in range(200)])
    assert lost <= 0.015
    paper = partial(getattr(bb, name), variance="rss/n")
    assert np.mean([is_locked_out(paper, d, seed) for seed in range(200)]) > 0.04
