"""The attacks with fixed seeds; `uv run python -m tests.attack --minutes 5` has fresh ones."""

import numpy as np
import pytest
from hypothesis import settings

from tests.attack import tally, turns
from tests.attack.kinds import KINDS, RIDGES, SAVED, SHARED
from tests.attack.machine import Machine
from tests.attack.naive import Naive, Round, best_arm
from tests.oracle import best_arm as slow_best_arm


class Ridges(Machine):
    kinds = ("LinTS", "LinUCB", "BLTS pooled", "BLUCB")


class Declared(Machine):
    kinds = ("affine", "affine, balanced", "joint", "by draws", "one prior an arm")


class Shared(Machine):
    kinds = tuple(name for name in SHARED if KINDS[name].changes or "reweighed" in name)


class ManyRidges(Machine):
    kinds = tuple(RIDGES)


TestRidges, TestShared = Ridges.TestCase, Shared.TestCase
TestDeclared = pytest.mark.slow(Declared.TestCase)
TestManyRidges = pytest.mark.slow(ManyRidges.TestCase)
TestRidges.settings = settings(max_examples=3, stateful_step_count=15, deadline=None)
TestManyRidges.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
TestDeclared.settings = settings(max_examples=2, stateful_step_count=12, deadline=None)
TestShared.settings = settings(max_examples=3, stateful_step_count=15, deadline=None)

FIXED = [
    ("threads", "LinTS"), ("threads", "BLTS pooled"), ("threads", "shared"),
    ("interrupts", "BLTS"), ("forks", "BLTS"),
    ("saved bandits", "BLTS pooled"), ("saved bandits", "joint"), ("crafted bandits", "LinTS"),
    ("results", ""), ("priors", ""), ("CSV", ""), ("formulas", ""), ("killed saves", "LinTS"),
    ("changed declarations", ""), ("foreign models", ""),
]  # fmt: skip
SLOW = (  # others of their name are quick, or tests elsewhere
    ("threads", "LinTS"), ("threads", "shared"), ("saved bandits", "joint"),
    ("changed declarations", ""), ("foreign models", ""), ("killed saves", "LinTS"),
    ("results", ""), ("forks", "BLTS"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "kind"),
    [pytest.param(*pair, marks=pytest.mark.slow if pair in SLOW else []) for pair in FIXED],
    ids=[" ".join(pair) for pair in FIXED],
)
def test_attacks(name, kind, tmp_path):
    turns.ATTACKS[name](tmp_path, 1, kind)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["killed runs", "two runs", "offsets", "growth"])
def test_long_attacks(name, tmp_path):
    turns.ATTACKS[name](tmp_path, 1, "")


def test_a_seed_is_one_turn():
    """Any attack may come, of any kind of bandit."""
    told = [turns.turn(seed) for seed in range(3000)]
    assert told == [turns.turn(seed) for seed in range(3000)]
    assert {name for name, _ in told} == set(turns.ATTACKS)
    assert {kind for _, kind in told} == set(SAVED)
    assert turns.turn(3, "machine", "LinTS") == ("machine", "LinTS")


def test_what_was_tried_is_told(monkeypatch):
    monkeypatch.setattr(tally, "TRIED", tally.defaultdict(tally.Counter))
    tally.count("LinTS", "operations", 3)
    tally.count("BLTS", "refusals")
    assert [line.split() for line in tally.report().splitlines()] == [
        ["operations", "refusals"], ["BLTS", "0", "1"], ["LinTS", "3", "0"], ["all", "3", "1"],
    ]  # fmt: skip


def test_the_naive_model_is_naive(rng):
    """Its own quadrature is the oracle's, and its weights come from what it knows."""
    mean, scale = rng.normal(size=4), rng.uniform(0.01, 2, size=4)
    np.testing.assert_allclose(best_arm(mean, scale), slow_best_arm(mean, scale), atol=1e-9)
    naive = Naive("ab", ("Thompson", 1.0), balance="decision", clip=0.1)
    naive.learn([Round([0.0], "a", 1.0, 0.5), Round([1.0], "b", 0.0, 0.01)])
    assert [r.weight for r in naive.rounds] == [2.0, 10.0]
