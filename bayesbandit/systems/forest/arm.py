"""The forest of one arm, asked for means and variances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesbandit.systems.forest import kernels as honest
from bayesbandit.systems.forest.trees import Trees

Array = np.ndarray
AT_ONCE = 4_000_000  # numbers in one step's intermediate results


@dataclass(frozen=True, eq=False)
class ArmForest:
    """Trees of an arm's first n rounds, in bags of `bag`; level, sd: the rewards' mean and standard
    deviation, in which the trees have them. Before the first n = 0, there are no trees, and the
    level is the mean of what rewards there are.
    """

    bag: int
    n: int = 0
    level: float = 0.0
    sd: float = 0.0
    trees: Trees | None = None

    def moments(self, x: Array) -> tuple[Array, Array]:
        """Means and variances at contexts x (n, d): (n,) each."""
        mean, variance = np.full(len(x), self.level), np.full(len(x), np.inf)
        if (trees := self.trees) is not None:
            step = max(1, AT_ONCE // (2 * len(trees.roots)))
            for i in range(0, len(x), step):
                part = slice(i, i + step)
                honest.little_bags(trees.ask(x[part]), self.bag, mean[part], variance[part])
            mean, variance = self.level + self.sd * mean, self.sd**2 * variance
        return mean, variance

    def bags(self, x: Array) -> Array:
        """Means of the bags (n, S) at contexts x (n, d)."""
        assert self.trees is not None
        sums = self.trees.ask(x).reshape(-1, self.bag, len(x), 2).sum(axis=1)
        return np.asarray(self.level + self.sd * (sums[:, :, 1] / sums[:, :, 0]).T)
