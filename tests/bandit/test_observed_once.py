"""A reward counts once: a bandit refuses a decision that it has learned, by its id."""

from copy import copy, deepcopy

import numpy as np
import pytest

import bayesbandit as bb
from bayesbandit.bandit import observed
from tests.bandit.kinds import KINDS
from tests.players import anatomy, pickled

NAMES = "LinTS", "BLTS pooled", "fading"
X = np.array([[1.0, 0.5], [0.2, -1.0], [0.0, 3.0]])
COPIES = {
    "copy": copy,
    "deep": deepcopy,
    "pickle": pickled,
    "dict": lambda decision: bb.Decision.from_dict(decision.to_dict()),
}
SAID = "has been learned, and a reward counts once"


def made(kind):
    return KINDS[kind].make(["a", "b"], 2)


def refused(bandit, decision, reward, match=SAID):
    before = anatomy(bandit)
    with pytest.raises(ValueError, match=match):
        bandit.observe(decision, reward)
    assert anatomy(bandit) == before


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("x", [X[0], X], ids=["one", "batch"])
@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_a_decision_is_learned_once_whenever_it_is_copied(kind, x, copied):
    bandit, reward = made(kind), 1.0 if x.ndim == 1 else np.ones(3)
    for early in (True, False):
        decision = bandit.choose(x)
        twin = copied(decision) if early else None
        bandit.observe(decision, reward)
        refused(bandit, decision, reward)
        refused(bandit, twin if early else copied(decision), reward)
    bandit.observe(bandit.choose(x), reward)
    assert bandit.history.total == 3 * np.size(reward)


@pytest.mark.parametrize("kind", NAMES)
def test_rows_of_a_batch_are_learned_once(kind):
    bandit = made(kind)
    batch = bandit.choose(X)
    bandit.observe(batch[1], 1.0)
    refused(bandit, batch[1], 0.0, f"decision {batch[1].id} {SAID}")
    refused(bandit, batch, [1.0, 0.0, 1.0], f"{SAID}: row 1")
    bandit.observe(batch[[0, 2]], np.ones(2))
    assert bandit.history.total == 3
    refused(bandit, bandit.choose(X)[[0, 2, 0]], np.ones(3), f"{SAID}: row 2")


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
