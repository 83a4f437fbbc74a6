"""Balances that weigh each arm's rounds by themselves: write `of_arm`."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, runtime_checkable

import numpy as np

from bayesbandit.beliefs.base import Belief
from bayesbandit.history import History
from bayesbandit.schedule import Schedule
from bayesbandit.weighting.base import measured


@runtime_checkable
class WeighingByArm(Protocol):
    """A balance with `of_arm`."""

    def of_arm(self, mine: np.ndarray, history: History) -> np.ndarray: ...


class ByArm:
    """A balance by arms. refit_every: its schedule."""

    refit_every: float | int

    @abstractmethod
    def of_arm(self, mine: np.ndarray, history: History) -> np.ndarray:
        """Weights (m,) of an arm's rounds, which are those `mine` (m,) of the history's."""

    @property
    def schedule(self) -> Schedule:
        """When an arm's weights are settled anew."""
        return Schedule(self.refit_every)

    def weights(self, history: History, belief: Belief) -> np.ndarray:
        """Precision weights > 0 of all rounds (n,)."""
        played, out = history.played(), np.ones(len(history))
        for k in np.unique(played):
            mine = np.flatnonzero(played == k)
            out[mine] = self.of_arm(mine, history)
        return out


def standardised(x: np.ndarray) -> np.ndarray:
    """Columns of x (n, d) of mean 0 and standard deviation 1, or 0 where they are constant."""
    centre, width = measured(x)
    return np.asarray((x - centre) / width)
