"""Balances that weight each arm's rounds separately: subclass `ByArm` and write `of_arm`."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from bayesbandit.beliefs.base import Belief
from bayesbandit.checks import Array
from bayesbandit.history import History
from bayesbandit.schedule import Schedule
from bayesbandit.weighting.base import mean_and_sd


class ByArm:
    """A balance that weights each arm's rounds separately.

    refit_every: when an arm is due, as `Schedule` has it.
    """

    refit_every: float | int

    @abstractmethod
    def of_arm(self, mine: Array, history: History) -> Array:
        """Return weights (m,) of one arm's rounds: the rounds number `mine` (m,) of `history`."""

    @property
    def schedule(self) -> Schedule:
        """When an arm's rounds are reweighted."""
        return Schedule(self.refit_every)

    def weights(self, history: History, belief: Belief) -> Array:
        """Return precision weights > 0 of all rounds (n,)."""
        played = history.played()
        out = np.ones(len(history))
        for k in np.unique(played):
            mine = np.flatnonzero(played == k)
            out[mine] = self.of_arm(mine, history)
        return out


def standardised(x: Array) -> Array:
    """Return the columns of x (n, d) with mean 0 and sd 1; constant columns become 0."""
    mean, sd = mean_and_sd(x)
    return np.asarray((x - mean) / sd)
