"""A reward counts once: a bandit refuses a decision that it has learned, by its id."""

import pickle
from copy import copy, deepcopy

import numpy as np
import pytest

import bayesbandit as bb
from bayesbandit.bandit import observed
from tests.bandit.kinds import KINDS
from tests.players import anatomy

NAMES = "LinTS", "BLTS pooled", "fading"
X = np.array([[1.0, 0.5], [0.2, -1.0], [0.0, 3.0]])
SAID = "has been learned, and a reward counts once"


def made(kind):
    return KINDS[kind].make(["a", "b"], 2)


def refused(bandit, decision, reward, match=SAID):
    before = anatomy(bandit)
    with pytest.raises(ValueError, match=match):
        bandit.observe(decision, reward)
    assert anatomy(bandit) == before


@pytest.mark.parametrize("kind", NAMES)
def test_a_decision_is_learned_once(kind):
    bandit = made(kind)
    decision, other = bandit.choose(X[0]), bandit.choose(X[0])
    bandit.observe(decision, 1.0)
    refused(bandit, decision, 1.0)
    refused(bandit, decision, 0.0, f"decision {decision.id} {SAID}")
    refused(bandit, bb.Decision.from_dict(decision.to_dict()), 1.0)
    refused(bandit, pickle.loads(pickle.dumps(decision)), 1.0)
    bandit.observe(other, 1.0)
    assert bandit.history.total == 2


@pytest.mark.parametrize("kind", NAMES)
def test_rows_of_a_batch_are_learned_once(kind):
    bandit = made(kind)
    batch = bandit.choose(X)
    bandit.observe(batch[1], 1.0)
    refused(bandit, batch, [1.0, 0.0, 1.0], f"{SAID}: row 1")
    bandit.observe(batch[[0, 2]], np.ones(2))
    assert bandit.history.total == 3
    refused(bandit, bandit.choose(X)[[0, 2, 0]], np.ones(3), f"{SAID}: row 2")


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("x", [X[0], X], ids=["one", "batch"])
@pytest.mark.parametrize("copied", [copy, deepcopy, lambda d: pickle.loads(pickle.dumps(d))])
def test_a_copy_is_the_same_decision_whenever_it_is_made(kind, x, copied):
    bandit, reward = made(kind), 1.0 if x.ndim == 1 else np.ones(3)
    for before in (True, False):
        decision = bandit.choose(x)
        early = copied(decision) if before else None
        bandit.observe(decision, reward)
        refused(bandit, early if before else copied(decision), reward)


@pytest.mark.parametrize("kind", NAMES)
def test_a_round_makes_no_id(kind):
    """Which would take longer than learning it."""
    bandit = made(kind)
    one, batch = bandit.choose(X[0]), bandit.choose(X)
    bandit.observe(one, 1.0)
    bandit.observe(batch, np.ones(3))
    assert one.ids is batch.ids is None
    refused(bandit, one, 1.0)
    refused(bandit, batch, np.ones(3), f"{SAID}: row 0")
    refused(bandit, batch[1], 1.0)


def test_each_bandit_learns_what_it_has_not_learned():
    bandit = made("LinTS")
    decision = bandit.choose(X[0])
    other = bandit.copy()
    for one in (bandit, other):
        one.observe(decision, 1.0)
        refused(one, decision, 1.0)
    refused(bandit.copy(), decision, 1.0)
    with pytest.raises(ValueError, match="finite"):
        bandit.observe(other := bandit.choose(X[0]), np.nan)
    bandit.observe(other, 1.0)


def test_the_latest_ids_are_remembered(monkeypatch):
    monkeypatch.setattr(observed, "MOST_IDS", 5)
    bandit = made("LinTS")
    batches = [bandit.choose(X) for _ in range(3)]
    for batch in batches:
        assert len(batch.id) == 3
        bandit.observe(batch, np.ones(3))
    assert len(bandit.observed) == 5
    refused(bandit, batches[2], np.ones(3))
    bandit.observe(batches[0], np.ones(3))
