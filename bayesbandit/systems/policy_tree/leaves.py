"""What the leaves of a tree know of each arm: means and variances of efficient scores."""

from __future__ import annotations

from copy import copy
from typing import Self

import numpy as np

from bayesbandit.systems.policy_tree.kernels import tally

Array = np.ndarray


class Leaves:
    """Of each leaf and arm (L, K): rows `seen`, `plays`, the scores' mean (`centre`) and sum of
    squares about it (`spread`). noise: rounds of all leaves, and their squared residuals."""

    def __init__(self, n_leaves: int, n_arms: int) -> None:
        self.seen, self.plays, self.centre, self.spread = np.zeros((4, n_leaves, n_arms))
        self.noise = np.zeros(2)

    def learn(self, leaf: Array, means: Array, arm: Array, reward: Array, weight: Array) -> None:
        """Rounds that fell into these leaves, with an outcome model's means (n, K), NaN of arms
        that were not there, arm numbers, −1 of arms that are gone, rewards and inverse
        propensities (n,)."""
        tally(
            leaf, means, arm, reward, weight,
            self.seen, self.plays, self.centre, self.spread, self.noise,
        )  # fmt: skip

    def moments(self, prior_rows: float) -> tuple[Array, Array]:
        """Means and variances (L, K) of each arm's mean reward.

        With m scores in a leaf, of which p are of rounds that played the arm, the variance is
        Σ (score − mean)² / m² + ν s² / (p + 1)²: s² is the mean squared residual of all rounds, and
        ν = prior_rows. Without the second term an arm that a leaf has never played would be
        certain there. Where there are no scores the arm has its mean over all leaves.
        """
        n, plays = self.seen, self.plays
        rounds, squares = self.noise
        s2 = squares / rounds if rounds > 0.0 else 0.0
        total = np.maximum(n.sum(axis=0), 1.0)
        overall = (n * self.centre).sum(axis=0) / total
        mean = np.where(n > 0.0, self.centre, overall)
        own = self.spread / np.maximum(n, 1.0) ** 2
        return mean, own + prior_rows * s2 / (plays + 1.0) ** 2

    def fork(self) -> Self:
        """The same, to be gone on with while this stays as it is."""
        twin = copy(self)
        vars(twin).update({name: array.copy() for name, array in vars(self).items()})
        return twin
