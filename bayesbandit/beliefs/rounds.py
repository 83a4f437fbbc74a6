"""Rounds that a belief keeps, because it computes its posterior from all of them."""

from __future__ import annotations

import numpy as np

from bayesbandit.checks import LARGEST
from bayesbandit.runtime.schema import demand


class Rounds:
    """Rounds with contexts x (n, d), arm numbers, rewards and weights (n,), in order of arrival.

    New rounds are only written into free rows after the last, so a `fork` can share the array.
    """

    def __init__(self, n_features: int) -> None:
        self.n_features = n_features
        self.total = 0
        self._rows = np.empty((0, n_features + 3))

    def __len__(self) -> int:
        return self.total

    def fork(self) -> Rounds:
        """Return the same rounds, which may grow in the place of these."""
        twin = object.__new__(Rounds)
        vars(twin).update(vars(self))
        return twin

    def append(
        self, x: np.ndarray, arm: np.ndarray, reward: np.ndarray, weight: np.ndarray | None
    ) -> None:
        """Add rounds; without `weight` their weights are 1."""
        n, d = len(x), self.n_features
        if self.total + n > len(self._rows):
            more = np.empty((max(n, len(self._rows), 256), d + 3))
            self._rows = np.concatenate([self._rows, more])
        new = self._rows[self.total : self.total + n]
        new[:, :d], new[:, d], new[:, d + 1] = x, arm, reward
        new[:, d + 2] = 1.0 if weight is None else weight
        self.total += n

    def replace(
        self, x: np.ndarray, arm: np.ndarray, reward: np.ndarray, weight: np.ndarray
    ) -> None:
        """Replace all rounds by these, without those of removed arms (numbers below 0)."""
        kept = arm >= 0
        self.clear()
        self.append(x[kept], arm[kept], reward[kept], weight[kept])

    @property
    def arm(self) -> np.ndarray:
        """Arm numbers (n,)."""
        return self._rows[: self.total, self.n_features].astype(np.int64)

    def of(self, k: int | None = None) -> dict[str, np.ndarray]:
        """Return rounds by role: x, reward and weight of arm k, or these and arm of all arms."""
        rows, d = self._rows[: self.total], self.n_features
        if k is not None:
            rows = rows[rows[:, d] == k]
        roles = {"x": rows[:, :d], "reward": rows[:, d + 1], "weight": rows[:, d + 2]}
        arrays = {role: np.ascontiguousarray(v) for role, v in roles.items()}
        return arrays if k is not None else arrays | {"arm": rows[:, d].astype(np.int64)}

    def drop(self, k: int) -> None:
        """Remove arm k's rounds; the numbers of later arms become one less."""
        rows, d = self._rows[: self.total], self.n_features
        rows = rows[rows[:, d] != k]
        rows[:, d] -= rows[:, d] > k
        self._rows, self.total = rows, len(rows)

    def clear(self) -> None:
        """Remove all rounds."""
        self._rows, self.total = np.empty((0, self.n_features + 3)), 0

    def state(self) -> np.ndarray:
        """Return all rounds as one array (n, d + 3), a view."""
        return self._rows[: self.total]

    def restore(self, rows: np.ndarray, n_arms: int) -> None:
        """Restore what `state` returned; raise ValueError for a wrong shape or arm number.

        The numbers are checked here, since counting a huge one would take all memory.
        """
        d = self.n_features
        whole = rows.ndim == 2 and rows.shape[1] == d + 3
        if not whole or not np.isin(rows[:, d], np.arange(n_arms)).all():
            raise ValueError(
                f"rounds must be (n, {d + 3}), of arms by number below {n_arms}; got {rows.shape}"
            )
        self._rows, self.total = rows, len(rows)

    def verify(self, n_arms: int) -> None:
        """Raise ValueError if a context, reward, weight or arm number is not allowed."""
        rows, d = self.state(), self.n_features
        observed, arm, weight = rows[:, [*range(d), d + 1]], rows[:, d], rows[:, d + 2]
        demand((np.abs(observed) <= LARGEST).all(), "its rounds are not finite")
        demand(((weight > 0) & (weight < np.inf)).all(), "its rounds' weights are not > 0")
        demand(((arm >= 0) & (arm < n_arms)).all(), "its rounds have unknown arms")
