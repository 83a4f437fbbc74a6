"""What bandits learned apart is what one would have learned."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayesbandit as bb
from bayesbandit.beliefs.regressions import Regressions
from tests import declarations as declared
from tests.cases import few, in_gate, moments_of

D, ARMS = 3, ("a", "b", "c")
KINDS = {
    "ridge": lambda: bb.LinTS(ARMS, D),
    "nig": lambda: bb.LinUCB(ARMS, D, variance="nig"),
    "cv": lambda: bb.LinTS(ARMS, D, ridge="cv", intercept="unpenalised"),
    "balanced": lambda: bb.BLTS(ARMS, D, normalize=True),
    "fading": lambda: bb.LinTS(ARMS, D, half_life=40.0),
    "fading, cv": lambda: bb.LinTS(ARMS, D, half_life=40.0, ridge="cv"),
    "declared": lambda: declared_bandit(declared.known),
    "affine": lambda: declared_bandit(declared.noncentred),
    "together": lambda: declared_bandit(declared.pooled),
    "a probability": lambda: declared_bandit(bb.load_model("beta_bernoulli")),
    "fading, by columns": lambda: declared_bandit(declared.known, half_life=40.0),
    "fading, affine": lambda: declared_bandit(declared.noncentred, half_life=40.0),
    "fading, together": lambda: declared_bandit(declared.pooled, half_life=40.0),
    "fading, a probability": lambda: declared_bandit(
        bb.load_model("beta_bernoulli"), half_life=40.0
    ),
}


def declared_bandit(model, **settings):
    return declared.bandit(ARMS, model, bb.Thompson(), n_features=D, **settings)


def apart(found, right):
    """How far numbers are from what they should be, as a share of the size of all of them: a mean
    near 0 is a difference of larger terms."""
    return np.linalg.norm(found - right) / max(np.linalg.norm(right), 1e-300)


def made(kind):
    return KINDS[kind]()


def rows(seed, n, kind):
    rng = np.random.default_rng(seed)
    r = rng.integers(0, 2, n) * 1.0 if kind.endswith("a probability") else rng.normal(size=n)
    return rng.normal(size=(n, D)), rng.choice(np.array(ARMS), n), r, rng.uniform(0.2, 1.0, n)


@few("[ridge]", "[cv]")
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=5, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    ends=st.lists(st.integers(0, 50), min_size=1, max_size=3),
    right=st.booleans(),
)
@in_gate(6)
def test_any_partition_is_all_rounds_in_one(kind, seed, ends, right):
    x, arm, r, p = rows(seed, 50, kind)
    whole = made(kind)
    parts = [made(kind) for _ in range(len(ends) + 1)]
    for i in range(50):  # one at a time, as shards of one clock
        if kind.startswith("fading"):
            [
                part.forget()
                for j, part in enumerate(parts)
                if j != np.searchsorted(sorted(ends), i, "right")
            ]
        parts[np.searchsorted(sorted(ends), i, "right")].update(x[i], arm[i], r[i], p[i])
        whole.update(x[i], arm[i], r[i], p[i])
    while len(parts) > 1:
        at = len(parts) - 2 if right else 0
        parts[at].merge(parts.pop(at + 1))
    [merged] = parts
    probe = np.random.default_rng(1).normal(size=(5, D))
    for bandit in (merged, whole):
        bandit.belief.advance(51.0)
    for found, right in zip(
        moments_of(merged.belief, probe), moments_of(whole.belief, probe), strict=True
    ):
        assert apart(found, right) < 1e-12
    if isinstance(whole.belief, Regressions):
        for k in range(3):
            found, right = (b.belief.precision(k) for b in (merged, whole))
            assert apart(found, right) < 1e-12
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
    ridge = made("ridge")
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
        (
            lambda: bb.Bandit(ARMS, declared.lasso, bb.Thompson(), n_features=D),
            "known by draws",
        ),
        (
            lambda: bb.Bandit(ARMS, bb.Shared(declared.lasso), bb.Thompson(), n_features=D),
            r"Shared\(.* known by draws",
        ),
    ):
        refused(maker(), maker(), said)
    ahead, behind = made("fading"), made("fading")
    ahead.forget(20)
    refused(ahead, behind, "the same tick of their clocks; got 20 and 0")
    with pytest.raises(TypeError, match="merge takes a Bandit"):
        ridge.merge(ridge.belief)


def test_a_common_past_is_found():
    bandit = made("ridge")
    rng = np.random.default_rng(0)
    bandit.play(rng.normal(size=(15, D)), rng.normal(size=(15, 3)))
    copy = bandit.copy().reseed("a worker")
    refused(bandit, copy, "rounds in common, which would count twice")
    refused(bandit, bandit, "does not merge with itself")
    short = bb.LinTS(ARMS, D, history=5)
    short.play(rng.normal(size=(15, D)), rng.normal(size=(15, 3)))
    refused(bandit, short, "would keep 15 rounds of the other bandit, which has kept 5")
