"""The leaves of a tree, with means and variances of each arm's efficient scores."""

from __future__ import annotations

import numpy as np

from bayesbandit.checks import Array
from bayesbandit.systems.policy_tree.kernels import tally


class Leaves:
    """The moments of efficient scores by leaf and arm.

    seen, plays (L, K): the rows with a score, and the rows that played the arm.
    centre, spread (L, K): the scores' mean, and the sum of squares about it.
    noise (2,): the number of rounds in all leaves, and the sum of their squared residuals.
    """

    def __init__(self, n_leaves: int, n_arms: int) -> None:
        self.seen, self.plays, self.centre, self.spread = np.zeros((4, n_leaves, n_arms))
        self.noise = np.zeros(2)

    def learn(self, leaf: Array, means: Array, arm: Array, reward: Array, weight: Array) -> None:
        """Learn from rounds in the leaves `leaf` (n,).

        means (n, K): the outcome model's, NaN for arms that did not exist yet. arm (n,): −1 for a
        removed arm. weight (n,): inverse propensities.
        """
        tally(
            leaf, means, arm, reward, weight,
            self.seen, self.plays, self.centre, self.spread, self.noise,
        )  # fmt: skip

    def moments(self, prior_rows: float) -> tuple[Array, Array]:
        """Return means and variances (L, K) of each arm's mean reward.

        A leaf has m scores of an arm, and p of its rounds played the arm. The variance is
        Σ (score − mean)² / m² + ν s² / (p + 1)², with s² the mean squared residual of all rounds
        and ν = prior_rows. Without the second term, the variance of an arm that the leaf has never
        played could be 0. Without scores in a leaf, an arm has its mean over all leaves.
        """
        n = self.seen
        plays = self.plays
        rounds, squares = self.noise
        s2 = squares / rounds if rounds > 0.0 else 0.0
        total = np.maximum(n.sum(axis=0), 1.0)
        overall = (n * self.centre).sum(axis=0) / total
        mean = np.where(n > 0.0, self.centre, overall)
        variance = self.spread / np.maximum(n, 1.0) ** 2
        return mean, variance + prior_rows * s2 / (plays + 1.0) ** 2
