"""Logged rounds: one row of numbers each, in the order in which their rewards arrived."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from bayesbandit.checks import Array, Name, Names, arm_name, feature_names, name_array
from bayesbandit.growing_rows import GrowingRows
from bayesbandit.kernels.propensities import chances
from bayesbandit.kernels.row_layout import EPSILON_GREEDY, SCALARS, row_type
from bayesbandit.tables import role_names

if TYPE_CHECKING:
    import pandas as pd

UNLOGGED = np.inf  # a propensity that was not logged and cannot be computed


@dataclass(frozen=True)
class Layout:
    """The layout of a row: the names of K arms, d features and D columns (d or d + 1)."""

    arms: tuple[Name, ...]
    n_features: int
    n_columns: int
    features: tuple[str, ...] | None = field(default=None, compare=False)  # their names
    of_arms: bool = False  # whether each arm has its own features

    def __deepcopy__(self, memo: dict[int, object]) -> Layout:
        return self  # it is immutable

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The shape of a context."""
        return (len(self.arms), self.n_features) if self.of_arms else (self.n_features,)

    @cached_property
    def row_type(self) -> np.dtype:
        """The NumPy type of a row as a record with named fields."""
        return row_type(self.n_columns, len(self.arms))

    @cached_property
    def width(self) -> int:
        """How many float64 numbers a row has."""
        return self.row_type.itemsize // 8

    @cached_property
    def index(self) -> dict[Name, int]:
        return {arm: k for k, arm in enumerate(self.arms)}

    def number(self, arm: object) -> int | None:
        """Return the number of the arm of this name; None if there is none."""
        try:
            return self.index.get(arm_name(arm))
        except TypeError:
            return None

    @cached_property
    def names(self) -> Names:
        """The arms as an array that keeps their types."""
        return name_array(self.arms).view(Names)

    def records(self, rows: Array) -> Array:
        """Return a view of rows (…, width) as records (…) with fields, as `records["reward"]`."""
        return rows.view(self.row_type)[..., 0]

    def fill_propensities(self, rows: Array) -> Array:
        """Return the chosen arms' propensities (n,), and write missing ones into rows (n, width).

        The result is a view of the rows.
        """
        p = self.records(rows)["propensity"]
        self._put_chances(p, np.isnan(p), rows)
        return p

    def _put_chances(self, p: Array, which: Array, rows: Array) -> None:
        """Set the propensities p (n,) of the rows of a mask to what their moments give."""
        if which.any():
            p[which] = chances(rows[which], -1, self.n_columns, len(self.arms))[:, 0]

    def floors(self, rows: Array) -> Array:
        """Return the minimum probability (n,) of an arm in decided rows (n, width)."""
        rounds = self.records(rows)
        K = len(self.arms)
        floor = rounds["min_probability"]
        share = np.where(rounds["rule"] == EPSILON_GREEDY, rounds["number"] / K, 0.0)
        return floor + np.maximum(1.0 - K * floor, 0.0) * share

    def assumed(self, rows: Array) -> Array:
        """Return the propensities (n,) from which weights are computed.

        A round that was logged without one gets the probability that its stored moments give.
        """
        p = self.fill_propensities(rows).copy()
        self._put_chances(p, p == UNLOGGED, rows)
        return p


class History(GrowingRows):
    """The last `limit` observed rounds (None: all of them), in order of observation.

    The rounds of a removed arm stay under its name. Propensities are those of the moment of
    decision. They are computed when first read, from the moments stored with the round.
    """

    def __init__(self, layout: Layout, limit: int | None) -> None:
        super().__init__(layout.row_type, limit)
        self.layout = layout
        self.retired: list[Name] = []  # removed arms; a row with arm −1 is of the first of them

    def __repr__(self) -> str:
        return f"History({len(self)} of {self.total} rounds)"

    def fork(self) -> Self:
        """Return a history with the same rounds, which may grow in the place of this one."""
        twin = super().fork()
        twin.retired = list(self.retired)
        return twin

    def restore(self, rows: Array, total: int, retired: list[Name]) -> None:
        """Replace all rounds by these rows, oldest first, out of `total` observed rounds."""
        self.retired = retired
        self._replace(rows, total=total)

    def of_arm(self, k: int) -> Array:
        """Return the kept rows of arm number k, oldest first."""
        rows = self.ordered()
        return rows[self.layout.records(rows)["arm"] == k]

    @property
    def x(self) -> Array:
        """Contexts (n, d)."""
        return self.ordered()[:, : self.layout.n_features].copy()

    @property
    def arm(self) -> Array:
        """Names of the arms that were played (n,)."""
        return name_array(self.names())[self.played()]

    def names(self) -> tuple[Name, ...]:
        """Return the arms' names, in the order of their numbers in `played`.

        Removed arms have negative numbers, and so their names stand at the end.
        """
        return (*self.layout.arms, *reversed(self.retired))

    def played(self) -> Array:
        """Return the numbers of the arms that were played (n,); −1, −2, … for removed ones."""
        return self.records["arm"].astype(np.int64)

    def by_name(self) -> tuple[tuple[Name, ...], Array]:
        """Return different names of arms, and the number among these of each round's arm (n,).

        The bandit's arms come first, then removed ones with rounds, in the order of their removal.
        A name that came back is one arm.
        """
        names = self.names()
        played = self.played()
        removed = [names[k] for k in np.unique(played[played < 0])[::-1]]
        listed = tuple(dict.fromkeys((*self.layout.arms, *removed)))
        number = np.array([listed.index(name) if name in listed else -1 for name in names])
        return listed, number[played]

    @property
    def reward(self) -> Array:
        """Rewards (n,)."""
        return self.records["reward"].copy()

    @property
    def propensity(self) -> Array:
        """Probabilities of the played arms at the moment of decision (n,).

        NaN for rounds that were logged elsewhere without one.
        """
        p = self.layout.fill_propensities(self.ordered())
        return np.where(p == UNLOGGED, np.nan, p)

    @property
    def weight(self) -> Array:
        """The weights (n,) of the rounds in their arm's current posterior, before `normalize`."""
        return self.records["weight"].copy()

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row a round.

        Its columns are the features (by name, or x0 … x(d−1)), arm, reward, propensity (NaN where
        none was logged) and weight. A feature named as one of the last four gets " (context)".
        """
        import pandas as pd

        now = self.fork()
        x = now.x
        features = now.layout.features
        names = feature_names(x.shape[1]) if features is None else list(features)
        columns = [
            f"{name}{role_names.CONTEXT}" if name in role_names.HISTORY else name for name in names
        ]
        frame = pd.DataFrame(x, columns=columns)
        frame = frame.assign(
            arm=now.arm, reward=now.reward, propensity=now.propensity, weight=now.weight
        )
        frame.attrs[role_names.MARK] = columns  # `bb.ope.Log.of` knows the others
        return frame

    def relaid(self, layout: Layout) -> History:
        """Return the same rounds in the layout that the bandit has after a change of its arms.

        Past propensities are computed first, because their moments are not kept. A removed arm
        without a kept round loses its name.
        """
        old = self.layout
        arms = self.layout.arms
        past = self.ordered().copy()
        old.fill_propensities(past)
        before = old.records(past)
        rows = np.empty((len(past), layout.width))
        after = layout.records(rows)
        after["x"] = before["x"]
        after["mean"] = -np.inf
        after["scale"] = 0.0
        after["last"] = np.inf
        for name in SCALARS:
            after[name] = before[name]
        after["min_probability"] = old.floors(past)  # ε/K with the old K
        after["number"][after["rule"] == EPSILON_GREEDY] = 0.0
        # names[−1]: the first removed arm
        names = self.names()
        n_retired = len(self.retired)
        played, place = np.unique(self.played(), return_inverse=True)
        removed = [k for k in played.tolist() if k < 0 or arms[k] not in layout.index]
        removed.sort(key=lambda k: -1 - k if k < 0 else n_retired + k)  # in order of removal
        retired = [names[k] for k in removed]
        number = {k: -1 - i for i, k in enumerate(removed)}
        numbers = [number[k] if k in number else layout.index[arms[k]] for k in played.tolist()]
        after["arm"] = np.array(numbers, dtype=np.float64)[place]
        history = History(layout, self.limit)
        history.restore(rows, self.total, retired)
        return history
