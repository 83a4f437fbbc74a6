"""How observations are weighted: what one writes to add a balance.

    class ByReward:
        def weights(self, history, belief):
            return 1 + abs(history.reward)

One that weighs each arm's rounds by themselves is a `ByArm` and has `of_arm` in its place, which is
asked for those arms alone that are due.

Such a balance weighs all of the past anew; `schedule` says when (`Schedule(1)`: at each reward of
an arm, for this arm's rounds), and `provisional`, if it is there, what new rounds weigh till then.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from bayesbandit.beliefs.base import Belief
from bayesbandit.history import History
from bayesbandit.kernels.rounds import GIVEN
from bayesbandit.runtime.capabilities import declares
from bayesbandit.schedule import Schedule

EACH = Schedule(1)


@runtime_checkable
class Balance(Protocol):
    """Weights of observations, as a function of what was observed."""

    def weights(self, history: History, belief: Belief) -> np.ndarray:
        """Precision weights > 0 of all rounds of the history (n,), by what is believed now."""
        ...


@runtime_checkable
class Scheduled(Protocol):
    """A balance that says when it weighs the past again."""

    @property
    def schedule(self) -> Schedule: ...


@runtime_checkable
class Provisional(Protocol):
    """A balance that weighs new rounds by itself, until the past is weighed again."""

    def provisional(self, history: History, belief: Belief) -> np.ndarray:
        """Precision weights > 0 of new rounds (n,), which are all of this history."""
        ...


@runtime_checkable
class Normalized(Protocol):
    """A balance that says whether each arm's weights are scaled to mean 1."""

    @property
    def normalize(self) -> bool: ...


def schedule_of(balance: Balance) -> Schedule:
    """When a balance weighs the past again."""
    return balance.schedule if isinstance(balance, Scheduled) else EACH


def is_normalized(balance: Balance) -> bool:
    """Whether each arm's weights are scaled to mean 1."""
    return isinstance(balance, Normalized) and bool(balance.normalize)


def is_known(balance: object) -> bool:
    """Whether a balance is the toolkit's own, which the kernels know, and no subclass of one that
    weighs otherwise."""
    return declares(balance, "compiled", ("weights", "provisional")) is True


def weight_source(balance: Balance) -> tuple[int, float]:
    """Where the kernels find an observation's weight, and the least propensity."""
    given: Any = balance
    return (given.source, float(given.clip)) if is_known(balance) else (GIVEN, 1.0)


def measured(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations of the columns of x (n, d), ∞ where they are constant."""
    centre = x.mean(axis=0)
    away = x - centre
    width = np.sqrt(np.einsum("ij,ij->j", away, away) / len(x))
    width[width <= 1e-12 * np.abs(centre)] = np.inf
    return centre, width
