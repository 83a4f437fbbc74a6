"""The forest of one arm, with its predicted means and variances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesbandit.checks import Array
from bayesbandit.systems.forest import kernels as honest
from bayesbandit.systems.forest.trees import Trees


@dataclass(frozen=True, eq=False)
class ArmForest:
    """Trees fitted to an arm's first n rounds, in bags of `bag` trees.

    level, sd: the rewards' mean and standard deviation; the trees predict standardised rewards.
    Before the first fit n is 0, there are no trees, and level is the mean of the rewards so far.
    """

    bag: int
    n: int = 0
    level: float = 0.0
    sd: float = 0.0
    trees: Trees | None = None

    def moments(self, x: Array) -> tuple[Array, Array]:
        """Return means and variances at contexts x (n, d): (n,) each."""
        mean = np.full(len(x), self.level)
        variance = np.full(len(x), np.inf)
        if (trees := self.trees) is not None:
            honest.little_bags(trees.ask(x), self.bag, mean, variance)
            mean = self.level + self.sd * mean
            variance = self.sd**2 * variance
        return mean, variance

    def bags(self, x: Array) -> Array:
        """Return the means of the S bags at contexts x (n, d): (n, S)."""
        assert self.trees is not None
        sums = self.trees.ask(x).reshape(-1, self.bag, len(x), 2).sum(axis=1)
        return np.asarray(self.level + self.sd * (sums[:, :, 1] / sums[:, :, 0]).T)
