"""Whatever fails, a bandit is bit for bit what it was: refused arms, interrupts, no memory."""

import numpy as np
import pytest

import bayesbandit as bb
from tests.bandit.kinds import one_prior_an_arm
from tests.cases import few, moments_of
from tests.players import STATEFUL, anatomy, world


def test_more_arms_retire_than_stay():
    bandit = bb.LinTS(3, 1)
    for arm in range(3):
        bandit.update([1.0], arm, float(arm))
    bandit.remove_arm(0)
    bandit.remove_arm(1)
    bandit.add_arm(9)
    bandit.observe(bandit.choose([1.0]), 0.5)
    assert bandit.history.arm.tolist()[:3] == [0, 1, 2]
    assert bandit.history.reward.tolist() == [0.0, 1.0, 2.0, 0.5]


@pytest.mark.slow
@pytest.mark.parametrize("change", ["remove", "add"])
@few("add")
def test_a_refused_change_of_arms_changes_nothing(change, rng):
    """A prior with a number for each arm is of so many arms."""
    bandit = bb.Bandit(["a", "b", "c"], one_prior_an_arm, bb.Thompson(), n_features=1)
    bandit.update(rng.normal(size=(9, 1)), list("abc") * 3, rng.normal(size=9))
    before, x = anatomy(bandit), rng.normal(size=(4, 1))
    moments = moments_of(bandit.belief, x)
    with pytest.raises(ValueError, match=r"."):
        bandit.remove_arm("a") if change == "remove" else bandit.add_arm("d")
    assert anatomy(bandit) == before
    np.testing.assert_array_equal(moments_of(bandit.belief, x), moments)
    bandit.update(x, list("abca"), np.ones(4))
    assert bandit.belief.n.tolist() == [5, 4, 4]


@pytest.mark.parametrize("kind", ["LinTS", "BLTS", "BLTS pooled"])
def test_no_memory_at_any_moment(kind, rng):
    """Python's own allocator refuses the first request, or the second, … PyTensor's compiled graphs
    do not ask whether they were given any, so not of declared models."""
    memory = pytest.importorskip("_testcapi")
    x = rng.normal(size=(5, 3))
    bandit = STATEFUL[kind](["a", "b", 3], 3)
    bandit.update(np.tile(x, (3, 1)), ["a", "b", 3] * 5, rng.normal(size=15))
    decision, r, refused = bandit.choose(x), rng.normal(size=5), 0
    bandit.copy().observe(decision, r)
    for first in range(150):
        trial = bandit.copy()
        memory.set_nomemory(first, first + 1)
        try:
            trial.observe(decision, r)
        except (MemoryError, SystemError, ValueError):  # NumPy's and numba's ways to say so
            memory.remove_mem_hooks()
            refused += 1
        finally:
            memory.remove_mem_hooks()
        n, total = trial.belief.n.sum(), trial.history.total
        assert n == total == (15 if trial.history.total == 15 else 20)
    assert refused > 10


def test_a_copy_may_be_given_decisions_of_its_own(rng):
    x, reward = world(rng, 200)
    bandit = bb.LinTS(3, 3, seed=4)
    bandit.play(x, reward)
    twin, other, again = bandit.copy(), bandit.copy(), bandit.copy()
    assert other.reseed("worker 1") is other
    again.reseed("worker 1")
    arms = [b.choose(x).arm.tolist() for b in (bandit, twin, other, again)]
    assert arms[0] == arms[1] != arms[2] == arms[3]
    assert other.t == bandit.t
    assert (
        bandit.copy().reseed(1).choose(x).arm.tolist()
        != bandit.copy().reseed(2).choose(x).arm.tolist()
    )
