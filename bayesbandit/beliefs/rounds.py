"""Rounds that a belief keeps, because it computes its posterior from all of them."""

from __future__ import annotations

import numpy as np

from bayesbandit.checks import Array
from bayesbandit.forms import Arrays, Numbers, Records
from bayesbandit.growing_rows import GrowingRows


class Rounds(GrowingRows):
    """Rounds with contexts x (n, d), arm numbers, rewards and weights (n,), in order of arrival.

    timed: whether they have ticks, of the clock by which a belief forgets.
    """

    def __init__(self, n_features: int, timed: bool = False) -> None:
        scalars = [(name, "f8") for name in ("arm", "reward", "weight", *["tick"] * timed)]
        super().__init__(np.dtype([("x", "f8", (n_features,)), *scalars]))
        self.n_features = n_features
        self.timed = timed

    def append(
        self, x: Array, arm: Array, reward: Array, weight: Array | None,
        tick: Array | None = None,
    ) -> None:  # fmt: skip
        """Add rounds; without `weight` their weights are 1."""
        new = self.room(len(x)).view(self.row_type)[:, 0]
        new["x"] = x
        new["arm"] = arm
        new["reward"] = reward
        new["weight"] = 1.0 if weight is None else weight
        if self.timed:
            new["tick"] = tick
        self.count_in(len(x))

    def replace(self, x: Array, arm: Array, reward: Array, weight: Array) -> None:
        """Replace all rounds by these, without those of removed arms (numbers below 0)."""
        kept = arm >= 0
        self._replace(self.rows[:0], total=0)
        self.append(x[kept], arm[kept], reward[kept], weight[kept])

    @property
    def arm(self) -> Array:
        """Arm numbers (n,)."""
        return self.records["arm"].astype(np.int64)

    @property
    def tick(self) -> Array | None:
        """When the rounds were decided (n,); None without ticks."""
        return np.ascontiguousarray(self.records["tick"]) if self.timed else None

    def counts(self, n_arms: int) -> Array:
        """Return how many rounds each arm has (K,)."""
        return np.bincount(self.arm, minlength=n_arms).astype(np.float64)

    def forget(self, tick: float) -> bool:
        """Drop the rounds that were decided by this tick; return whether there are any."""
        kept = self.records["tick"] > tick
        if kept.all():
            return False
        rows = self.ordered()[kept]
        self._replace(rows, total=len(rows))
        return True

    def of(self, k: int | None = None) -> Arrays:
        """Return rounds by role: x, reward and weight of arm k, or these and arm of all arms."""
        if k is None:
            return _by_role(self.records) | {"arm": self.arm}
        return _by_role(self.records[self.arm == k])

    def drop(self, k: int) -> None:
        """Remove arm k's rounds; the numbers of later arms become one less."""
        rows = self.ordered()[self.arm != k]
        self._replace(rows, total=len(rows))
        arm = self.records["arm"]
        arm -= arm > k

    def state(self) -> Array:
        """Return all rounds as one array (n, d + 3), or (n, d + 4) with ticks, a view."""
        return self.ordered()

    def form(self, n_arms: int, least: int = 0, nan: bool = False) -> Records:
        """Return the form of a state.

        least: the lowest arm number. nan: may contexts be NaN?
        """
        arm = Numbers(least=least, most=n_arms - 1, whole=True)
        return Records(self.row_type, None, {"x": Numbers(nan=nan), "arm": arm})

    def restore(self, rows: Array) -> None:
        """Restore what `state` returned."""
        self._replace(rows, total=len(rows))


def _by_role(log: Array) -> Arrays:
    """Return contexts, rewards and weights of records, by role."""
    return {role: np.ascontiguousarray(log[role]) for role in ("x", "reward", "weight")}
