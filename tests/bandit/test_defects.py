"""Defects seen in other packages, each ruled out here."""

import numpy as np
import pytest
from scipy import stats

import bayesbandit as bb


def test_a_precision_is_not_used_as_a_covariance(rng):
    """Draws spread by σ² B⁻¹: little where there are many data, much where there are few. With the
    precision in its place it would be the other way round."""
    x = np.vstack([np.tile([10.0, 0.0], (200, 1)), [[0.0, 0.1]]])
    belief = bb.Ridge(1.0, variance=1.0, intercept=False).belief(1, 2)
    belief.update(x, np.zeros(201, int), np.zeros(201))
    often, seldom = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    for probe, variance in ((often, 1 / (1 + 200 * 100)), (seldom, 1 / (1 + 0.01))):
        draws = belief.predict(probe).draw(20_000, rng)[:, 0, 0]
        assert stats.kstest(draws, stats.norm(0, np.sqrt(variance)).cdf).pvalue > 0.01


@pytest.mark.parametrize("lam", [0.1, 10.0])
def test_an_unseen_arm_has_variance_one_over_lambda(lam):
    bandit = bb.LinUCB(2, 2, ridge=lam, variance=1.0, intercept=False)
    decision = bandit.choose([3.0, 4.0])
    np.testing.assert_allclose(decision.sd, 5.0 / np.sqrt(lam), rtol=1e-12)


@pytest.mark.parametrize("settings", [{}, {"half_life": 9.0}, {"drift": 0.1}], ids=str)
def test_no_rewards_of_a_batch_teach_nothing(settings):
    """A part of a batch may be empty, also after a change of the arms."""
    bandit = bb.LinTS(["a", "b"], 2, **settings)
    batch = bandit.choose(np.ones((4, 2)))
    came = np.zeros(4, dtype=bool)
    for new in ("c", "d"):
        assert not bandit.observe(batch[came], np.zeros(4)[came])
        with pytest.raises(ValueError, match="one value for each of 0 rows"):
            bandit.observe(batch[came], [1.0])
        assert bandit.history.total == 0
        bandit.add_arm(new)
