"""Environments that play the rows of a table in random order."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from bayesbandit.checks import integer
from bayesbandit.environments.base import Sample


class Rows(ABC):
    """The rows of a table, in which the reward of every arm is certain.

    x: contexts (n, d). paid: what the rewards of a row follow from, (n,) or (n, K).
    """

    x: np.ndarray
    paid: np.ndarray

    @abstractmethod
    def rewards(self, rows: np.ndarray) -> np.ndarray:
        """Return the rewards (T, K) of the arms in these rows (T,)."""

    @property
    def fingerprint(self) -> str:
        """Return a text with a hash of the data, which distinguishes tables of the same name."""
        import joblib

        return f"{self!r} with data {joblib.hash((self.x, self.paid))[:12]}"

    @property
    def n_features(self) -> int:
        return self.x.shape[1]

    def sample(self, horizon: int | None, rng: np.random.Generator) -> Sample:
        """Return the first `horizon` rows in random order; all n rows if it is None or above n.

        mean and reward are the same array.
        """
        T = None if horizon is None else integer(horizon, "horizon", least=1)
        rows = rng.permutation(len(self.x))[:T]
        reward = self.rewards(rows)
        return Sample(self.x[rows], reward, reward)
