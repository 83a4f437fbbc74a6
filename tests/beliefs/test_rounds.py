"""The rounds that a belief keeps: those that arrived, and those in their place."""

import numpy as np
import pytest

from bayesbandit.beliefs.rounds import Rounds
from bayesbandit.forms import check


def drawn(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)), rng.integers(0, 3, n), rng.normal(size=n), rng.random(n)


def test_rounds_in_the_place_of_all_leave_out_arms_that_are_gone():
    rounds, (x, arm, reward, weight) = Rounds(2), drawn(20, seed=1)
    rounds.append(*drawn(7))
    before, twin = rounds.of(), rounds.fork()
    arm = np.where(np.arange(20) % 4, arm, -1)
    rounds.replace(x, arm, reward, weight)
    here = arm >= 0
    assert len(rounds) == here.sum() == 15
    for role, values in {"x": x, "reward": reward, "weight": weight, "arm": arm}.items():
        np.testing.assert_array_equal(rounds.of()[role], values[here])
        np.testing.assert_array_equal(twin.of()[role], before[role])


@pytest.mark.parametrize("arm", [2.0**31, -1.0, 0.5, np.nan])
def test_rounds_of_an_arm_that_is_none_are_refused(arm):
    """To count them took as much memory as the number is large."""
    rounds = Rounds(2)
    rounds.append(np.zeros((3, 2)), np.array([0, 1, 1]), np.ones(3), np.ones(3))
    kept = rounds.state().copy()
    kept[0, 2] = arm
    with pytest.raises(ValueError, match=r"\['arm'\] must be integers from 0 to 1"):
        check(kept, rounds.form(2))
    assert rounds.arm.tolist() == [0, 1, 1]
