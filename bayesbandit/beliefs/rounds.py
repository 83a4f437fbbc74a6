"""Rounds that a belief keeps, because its posterior is computed from all of them."""

from __future__ import annotations

import numpy as np

from bayesbandit.checks import LARGEST
from bayesbandit.runtime.schema import demand


class Rounds:
    """Contexts x (n, d), arm numbers, rewards and weights (n,), in the order of arrival.

    Rows behind the last are free, and new ones only ever go there: a `fork` costs nothing.
    """

    def __init__(self, n_features: int) -> None:
        self.n_features = n_features
        self.total = 0
        self._rows = np.empty((0, n_features + 3))

    def __len__(self) -> int:
        return self.total

    def fork(self) -> Rounds:
        """The same rounds, to be gone on with in the place of these."""
        twin = object.__new__(Rounds)
        vars(twin).update(vars(self))
        return twin

    def append(
        self, x: np.ndarray, arm: np.ndarray, reward: np.ndarray, weight: np.ndarray | None
    ) -> None:
        """More rounds; weight None: 1."""
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
        """These rounds in the place of all, but for those of arms that are gone (< 0)."""
        here = arm >= 0
        self.clear()
        self.append(x[here], arm[here], reward[here], weight[here])

    @property
    def arm(self) -> np.ndarray:
        """Arm numbers (n,)."""
        return self._rows[: self.total, self.n_features].astype(np.int64)

    def of(self, k: int | None = None) -> dict[str, np.ndarray]:
        """The rounds of arm k, or all with their arms, by role: x, reward, weight, arm."""
        rows, d = self._rows[: self.total], self.n_features
        if k is not None:
            rows = rows[rows[:, d] == k]
        roles = {"x": rows[:, :d], "reward": rows[:, d + 1], "weight": rows[:, d + 2]}
        found = {role: np.ascontiguousarray(v) for role, v in roles.items()}
        return found if k is not None else found | {"arm": rows[:, d].astype(np.int64)}

    def drop(self, k: int) -> None:
        """Forget arm k's rounds; the arms behind it move up."""
        rows, d = self._rows[: self.total], self.n_features
        rows = rows[rows[:, d] != k]
        rows[:, d] -= rows[:, d] > k
        self._rows, self.total = rows, len(rows)

    def clear(self) -> None:
        """Forget all."""
        self._rows, self.total = np.empty((0, self.n_features + 3)), 0

    def state(self) -> np.ndarray:
        """All rounds as one array (n, d + 3), not copied."""
        return self._rows[: self.total]

    def restore(self, rows: np.ndarray, n_arms: int) -> None:
        """Go on from `state`; a larger arm would be counted in more memory than there is."""
        d = self.n_features
        whole = rows.ndim == 2 and rows.shape[1] == d + 3
        if not whole or not np.isin(rows[:, d], np.arange(n_arms)).all():
            raise ValueError(
                f"rounds must be (n, {d + 3}), of arms by number below {n_arms}; got {rows.shape}"
            )
        self._rows, self.total = rows, len(rows)

    def verify(self, n_arms: int) -> None:
        """Raise ValueError where a number cannot be one of a round."""
        rows, d = self.state(), self.n_features
        told, arm, weight = rows[:, [*range(d), d + 1]], rows[:, d], rows[:, d + 2]
        demand((np.abs(told) <= LARGEST).all(), "its rounds")
        demand(((weight > 0) & (weight < np.inf)).all(), "its rounds' weights are not > 0")
        demand(((arm >= 0) & (arm < n_arms)).all(), "its rounds have unknown arms")
