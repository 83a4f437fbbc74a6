"""Random scripts of calls with fixed seeds; `python -m tests.attack` has fresh ones."""

import numpy as np
import pytest
from hypothesis import settings

from tests.attack import threads
from tests.attack.machine import Machine
from tests.attack.naive import Naive, Round, best_arm
from tests.bandit.kinds import RIDGES, SHARED
from tests.oracle import best_arm as slow_best_arm


class Ridges(Machine):
    kinds = ("LinTS", "LinUCB", "BLTS pooled", "BLUCB")


class Declared(Machine):
    kinds = ("affine", "affine, balanced", "joint", "by draws", "one prior an arm")


class Shared(Machine):
    kinds = tuple(name for name in SHARED if SHARED[name].changes or "reweighed" in name)


class ManyRidges(Machine):
    kinds = tuple(RIDGES)


TestRidges = Ridges.TestCase
TestShared = pytest.mark.slow(Shared.TestCase)
TestDeclared = pytest.mark.slow(Declared.TestCase)
TestManyRidges = pytest.mark.slow(ManyRidges.TestCase)
TestRidges.settings = settings(max_examples=3, stateful_step_count=15, deadline=None)
TestManyRidges.settings = settings(max_examples=15, stateful_step_count=25, deadline=None)
TestDeclared.settings = settings(max_examples=2, stateful_step_count=12, deadline=None)
TestShared.settings = settings(max_examples=3, stateful_step_count=15, deadline=None)


@pytest.mark.parametrize(
    ("attack", "name"),
    [
        (threads.share, "BLTS pooled"),
        (threads.interrupt, "BLTS"),
        pytest.param(threads.share, "LinTS", marks=pytest.mark.slow),
        pytest.param(threads.share, "shared", marks=pytest.mark.slow),
        pytest.param(threads.interrupt, "BLUCB", marks=pytest.mark.slow),
        pytest.param(threads.fork, "BLTS", marks=pytest.mark.slow),
        pytest.param(threads.kill, "LinTS", marks=pytest.mark.slow),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_threads_signals_and_processes(attack, name, tmp_path):
    attack(tmp_path, 1, name)


def test_the_naive_model_is_naive(rng):
    """Its own quadrature is the oracle's, and its weights come from what it knows."""
    mean, scale = rng.normal(size=4), rng.uniform(0.01, 2, size=4)
    np.testing.assert_allclose(best_arm(mean, scale), slow_best_arm(mean, scale), atol=1e-9)
    naive = Naive("ab", ("Thompson", 1.0), balance="decision", clip=0.1)
    naive.learn([Round([0.0], "a", 1.0, 0.5), Round([1.0], "b", 0.0, 0.01)])
    assert [r.weight for r in naive.rounds] == [2.0, 10.0]
