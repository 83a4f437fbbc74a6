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
from bayesbandit.checks import declares
from bayesbandit.history import History
from bayesbandit.kernels.rounds import GIVEN
from bayesbandit.schedule import Schedule

EACH = Schedule(1)


@runtime_checkable
class Balance(Protocol):
    """Weights of observations, as a function of what was observed."""

    def weights(self, history: History, belief: Belief) -> np.ndarray:
        """Precision weights > 0 of all rounds of the history (n,), by what is believed now."""
        ...


def schedule_of(balance: Any) -> Schedule:
    """When a balance weighs the past anew."""
    return getattr(balance, "schedule", EACH)


def is_known(balance: Any) -> bool:
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
