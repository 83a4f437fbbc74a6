"""Logs of many rounds: `Bandit.update` and `observe` in one call or in many."""

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb
from tests.players import anatomy, world

T, ARMS = 3300, ("a", "b", 7)


def log(seed=0):
    """Contexts, arms, rewards and propensities of rounds in which the last arm is rare."""
    rng = np.random.default_rng(seed)
    x, reward = world(rng, T, d=2)
    k = rng.choice(3, T, p=[0.55, 0.43, 0.02])
    return x, [ARMS[i] for i in k], reward[np.arange(T), k], rng.uniform(0.05, 1.0, T)


def same(one, other):
    probabilities = (bandit.probabilities(np.eye(2)) for bandit in (one, other))
    np.testing.assert_allclose(*probabilities, rtol=1e-9, atol=1e-12)
    assert (one.t, one.history.total) == (other.t, other.history.total)
    pd.testing.assert_frame_equal(one.history.to_frame(), other.history.to_frame())


@pytest.mark.parametrize("history", [10_000, 700, 0, None])
@pytest.mark.parametrize("given", [True, False])
def test_one_call_or_many(history, given):
    preset = bb.BLTS if given else bb.LinTS
    x, arm, reward, p = log()
    whole, parts = (preset(ARMS, 2, history=history) for _ in range(2))
    whole.update(x, arm, reward, p if given else None)
    for part in np.array_split(np.arange(T), 40):
        some = [arm[i] for i in part]
        parts.update(x[part], some, reward[part], p[part] if given else None)
    same(whole, parts)


NAMES = {
    "texts": lambda arm: np.array(arm), "objects": lambda arm: np.array(arm, dtype=object),
    "a column": pd.Series, "categories": lambda arm: pd.Series(arm, dtype="category"),
}  # fmt: skip


@pytest.mark.parametrize("form", NAMES)
def test_arms_are_named_in_any_form(form):
    x, arm, reward, p = log()
    arm = [str(a) for a in arm]
    one, other = (bb.BLTS(("a", "b", "7"), 2) for _ in range(2))
    one.update(x, arm, reward, p)
    other.update(x, NAMES[form](arm), reward, p)
    same(one, other)


@pytest.mark.parametrize("bad", ["c", True, 7.0, None, np.nan, 3, -1])
def test_an_unknown_arm_among_many_changes_nothing(bad):
    x, arm, reward, p = log()
    bandit = bb.BLTS(ARMS, 2)
    before = anatomy(bandit)
    with pytest.raises(ValueError, match="unknown arm"):
        bandit.update(x, [*arm[:-1], bad], reward, p)
    assert anatomy(bandit) == before
    if type(bad) is int:
        with pytest.raises(ValueError, match=f"unknown arm np.int64.{bad}"):
            bb.LinTS(3, 2).update(x, np.array([0, 1, 2] * 1099 + [0, 1, bad]), reward)
