"""What bandits learned apart is what one would have learned."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayesbandit as bb
from bayesbandit.beliefs.regressions import Regressions
from tests import declarations as declared
from tests.bandit.kinds import KINDS, KINDS_OF_SUMS, contexts, of_kinds
from tests.cases import few, in_gate, moments_of

D, ARMS = 3, ("a", "b", "c")


SHORT = "known noise", "no history", "shared, UCB"  # whose histories do not have all rounds
MERGEABLE = [name for name in KINDS_OF_SUMS if name not in (*SHORT, "tables")]


def apart(found, right):
    """How far numbers are from what they should be, as a share of the size of all of them: a mean
    near 0 is a difference of larger terms."""
    return np.linalg.norm(found - right) / max(np.linalg.norm(right), 1e-300)


@few("[LinTS]", "[cv]")
@of_kinds(MERGEABLE)
@settings(max_examples=5, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    ends=st.lists(st.integers(0, 50), min_size=1, max_size=3),
    right=st.booleans(),
)
@in_gate(8)
def test_any_partition_is_all_rounds_in_one(name, seed, ends, right):
    kind, rng = KINDS[name], np.random.default_rng(seed)
    whole, *parts = (kind() for _ in range(len(ends) + 2))
    x, arm = contexts(whole, rng, 50), rng.choice(np.array(ARMS), 50)
    r, p = kind.drawn(rng, 50), rng.uniform(0.2, 1.0, 50)
    for i in range(50):  # one at a time, as shards of one clock
        own, one = np.searchsorted(sorted(ends), i, "right"), slice(i, i + 1)
        for j, part in enumerate(parts):
            if j == own:
                part.update(x[one], arm[one], r[one], p[one])
            elif part.belief.clock is not None:
                part.forget()
        whole.update(x[one], arm[one], r[one], p[one])
    while len(parts) > 1:
        at = len(parts) - 2 if right else 0
        parts[at].merge(parts.pop(at + 1))
    [merged] = parts
    for bandit in (merged, whole):
        bandit.belief.advance(51.0)
    probe = contexts(whole, np.random.default_rng(1), 5)
    for one, other in zip(*(moments_of(b.belief, probe) for b in (merged, whole)), strict=True):
        assert apart(one, other) < 1e-12
    if isinstance(whole.belief, Regressions):
        for k in range(len(whole.belief.arms)):
            assert apart(*(b.belief.precision(k) for b in (merged, whole))) < 1e-12
    np.testing.assert_array_equal(merged.history.reward, whole.history.reward)
    assert (merged.history.arm == whole.history.arm).all()
    assert merged.history.total == 50


def refused(one, other, said):
    before = one.belief.fork()
    with pytest.raises(ValueError, match=said):
        one.merge(other)
    probe = np.zeros((1, len(ARMS), D) if one.of_arms else (1, D))
    np.testing.assert_array_equal(moments_of(one.belief, probe), moments_of(before, probe))
    assert len(one.history) == 0 or one.history.total == one.t


@pytest.mark.slow
def test_what_does_not_merge_says_so():
    ridge = bb.LinTS(ARMS, D)
    for other, said in (
        (bb.LinTS(["a", "b"], D), "the same arms; got"),
        (bb.LinTS(ARMS, 2), "the same features; got 3, 2"),
        (bb.LinTS(ARMS, D, ridge=2.0), "the same models"),
        (bb.BLTS(ARMS, D, prior_rows=2.0), "the same balances"),
        (bb.LinTS(ARMS, D, half_life=5.0), "the same models"),
    ):
        refused(ridge, other, said)
    for maker, said in (
        (lambda: bb.BLTS(ARMS, D, propensity="pooled"), "weighs past rounds by all of them"),
        (lambda: bb.LinTS(ARMS, D, drift=0.1), "coefficients that walk"),
        (lambda: bb.ForestTS(ARMS, D), "known by draws"),
        (lambda: bb.Bandit(ARMS, declared.lasso, bb.Thompson(), n_features=D), "known by draws"),
        (
            lambda: bb.Bandit(ARMS, bb.Shared(declared.lasso), bb.Thompson(), n_features=D),
            r"Shared\(.* known by draws",
        ),
    ):
        refused(maker(), maker(), said)
    ahead, behind = (bb.LinTS(ARMS, D, half_life=40.0) for _ in range(2))
    ahead.forget(20)
    refused(ahead, behind, "the same tick of their clocks; got 20 and 0")
    with pytest.raises(TypeError, match="merge takes a Bandit"):
        ridge.merge(ridge.belief)


def test_a_common_past_is_found():
    bandit = bb.LinTS(ARMS, D)
    rng = np.random.default_rng(0)
    bandit.play(rng.normal(size=(15, D)), rng.normal(size=(15, 3)))
    copy = bandit.copy().reseed("a worker")
    refused(bandit, copy, "rounds in common, which would count twice")
    refused(bandit, bandit, "does not merge with itself")
    short = bb.LinTS(ARMS, D, history=5)
    short.play(rng.normal(size=(15, D)), rng.normal(size=(15, 3)))
    refused(bandit, short, "would keep 15 rounds of the other bandit, which has kept 5")
