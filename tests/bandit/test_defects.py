"""Defects seen in other packages, each ruled out here."""

import numpy as np
import pytest

import bayesbandit as bb


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
