"""LASSO against ridge with matched schedules: what learns when."""

import numpy as np

import bayesbandit as bb
from bayesbandit_studies import lasso_controls as study


def test_rewards_are_learned_in_steps():
    """After 3 rounds of an arm and every 20 more; then the bandit is one that saw all of them."""
    rng, steps = np.random.default_rng(0), study.in_steps(("a",), 2, seed=0)
    whole = bb.LinTS(("a",), 2, seed=0)
    learned = []
    for _ in range(45):
        x, reward = rng.normal(size=2), float(rng.normal())
        steps.observe(steps.choose(x), reward)
        whole.update(x[None], ["a"], [reward], propensity=[1.0])
        learned.append(len(steps.bandit.history))
        if learned[-1] == len(whole.history):
            mean = steps.bandit.belief.predict(x[None]).mean
            np.testing.assert_allclose(mean, whole.belief.predict(x[None]).mean, rtol=1e-12)
    assert learned == [0] * 2 + [3] * 20 + [23] * 20 + [43] * 3
