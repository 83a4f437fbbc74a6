"""Logged rounds: one row of numbers each, in the order in which their rewards arrived."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bayesbandit.checks import Name, Names, name_array
from bayesbandit.kernels.propensities import chances
from bayesbandit.kernels.row_layout import EPSILON_GREEDY, SCALARS, row_type

if TYPE_CHECKING:
    import pandas as pd

OF_ROUNDS = ("arm", "reward", "propensity", "weight")  # columns beside the features
ROOM = 1024  # rows that are allocated at first
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

    @cached_property
    def names(self) -> Names:
        """The arms as an array that keeps their types."""
        return name_array(self.arms).view(Names)

    def records(self, rows: np.ndarray) -> np.ndarray:
        """Return a view of rows (…, width) as records (…) with fields, as `records["reward"]`."""
        return rows.view(self.row_type)[..., 0]

    def fill_propensities(self, rows: np.ndarray) -> np.ndarray:
        """Return the chosen arms' propensities (n,), and write missing ones into rows (n, width).

        The result is a view of the rows.
        """
        p = self.records(rows)["propensity"]
        missing = np.flatnonzero(np.isnan(p))
        if missing.size:
            out = np.empty(missing.size)
            chances(rows[missing], -1, self.n_columns, len(self.arms), out)
            p[missing] = out
        return p

    def floors(self, rows: np.ndarray) -> np.ndarray:
        """Return the minimum probability (n,) of an arm in decided rows (n, width)."""
        rounds, K = self.records(rows), len(self.arms)
        floor = rounds["min_probability"]
        share = np.where(rounds["rule"] == EPSILON_GREEDY, rounds["number"] / K, 0.0)
        return floor + np.maximum(1.0 - K * floor, 0.0) * share

    def assumed(self, rows: np.ndarray) -> np.ndarray:
        """Return the propensities (n,) from which weights are computed.

        A round that was logged without one gets the probability that its stored moments give.
        """
        p = self.fill_propensities(rows).copy()
        if (unlogged := np.flatnonzero(p == UNLOGGED)).size:
            out = np.empty(unlogged.size)
            chances(rows[unlogged], -1, self.n_columns, len(self.arms), out)
            p[unlogged] = out
        return p


def unheld[N: (int, float)](count: N) -> N:
    """Return a count whether it is locked or not: a locked count c is stored as −1 − c.

    See `bandit/transactions.py`.
    """
    return count if count >= 0 else -1 - count


class History:
    """The last `limit` observed rounds (None: all of them), in order of observation.

    The rounds of a removed arm stay under its name. Propensities are those of the moment of
    decision. They are computed when first read, from the moments stored with the round.

    `rows` (…, width) has old rounds beyond the limit first, then the kept rounds, then free rows.
    New rounds are only written into free rows, so a `fork` can share the array. Other threads may
    log at the same time: each read sees one moment, and a `fork` always sees the same one.

    `count` is an array, so that compiled functions can log. It has three numbers: the rows in use
    (locked: see `unheld`), the rounds observed so far, and the limit (−1: none).
    """

    def __init__(self, layout: Layout, limit: int | None) -> None:
        self.layout = layout
        self.retired: list[Name] = []  # removed arms; a row with arm −1 is of the first of them
        self.rows = np.empty((0, layout.width))
        self.count = np.array([0, 0, -1 if limit is None else limit], dtype=np.int64)

    @property
    def limit(self) -> int | None:
        """How many rounds are kept at most."""
        return None if self.count[2] < 0 else int(self.count[2])

    @property
    def total(self) -> int:
        """Rounds observed so far, kept or not."""
        return int(self.count[1])

    def __len__(self) -> int:
        return self.total if self.limit is None else min(self.total, self.limit)

    def __repr__(self) -> str:
        return f"History({len(self)} of {self.total} rounds)"

    def fork(self) -> History:
        """Return a history with the same rounds, which may grow in the place of this one."""
        twin, fields = object.__new__(History), dict(vars(self))  # rows and count of one moment
        count = fields["count"].copy()
        count[0] = unheld(count[0])
        vars(twin).update(fields, count=count, retired=list(self.retired))
        return twin

    @property
    def end(self) -> int:
        """The number of rows in use; later rows are free."""
        return int(unheld(self.count[0]))

    def detach(self) -> None:
        """Copy the rows, so that past rounds can be changed without changing those of a fork."""
        self._replace(self.ordered().copy())

    def _replace(self, rows: np.ndarray, kept: int | None = None) -> None:
        """Take these rows in one step; the first `kept` are in use (None: all)."""
        kept = len(rows) if kept is None else kept
        count = np.array([kept, *self.count[1:]], dtype=np.int64)
        vars(self).update(rows=rows, count=count)

    def has_room(self, n: int) -> bool:
        """Return whether n more rounds, or `limit` if that is less, fit into the free rows."""
        return self.end + self.kept(n) <= len(self.rows)

    def reserve(self, n: int) -> None:
        """Make room for n more rounds, or for `limit` if that is less."""
        if not self.has_room(n):
            n = self.kept(n)
            past = self.ordered()
            rows = np.empty((max(len(past) + n, 2 * len(past), ROOM), self.rows.shape[1]))
            rows[: len(past)] = past
            self._replace(rows, len(past))

    def room(self, n: int) -> np.ndarray:
        """Return free rows for n more rounds; `count_in(n)` then logs what was written there.

        If the limit is less than n, they are a ring of `limit` rows: round i goes to row i % limit.
        """
        self.reserve(n)
        end, size = self.end, self.kept(n)
        return self.rows[end : end + size]

    def count_in(self, n: int) -> None:
        """Log the n rounds that were written into `room(n)`; a ring is put in order first."""
        ring = self.room(n)
        if len(ring) < n and len(ring):
            ring[:] = np.roll(ring, -(n % len(ring)), axis=0)
        self.count += len(ring), n, 0

    def kept(self, n: int) -> int:
        """Return how many of n more rounds are kept: the last ones."""
        return n if self.limit is None else min(n, self.limit)

    def extend(self, rows: np.ndarray, n: int | None = None) -> None:
        """Log observed rounds (n, width), or the last of n rounds: at least those that are kept."""
        n = len(rows) if n is None else n
        kept = rows[len(rows) - self.kept(n) :]
        self.reserve(len(kept))
        end = self.end
        self.rows[end : end + len(kept)] = kept
        self.count += len(kept), n, 0

    def ordered(self) -> np.ndarray:
        """Return a view of the kept rows (n, width), oldest first."""
        fields = dict(vars(self))  # rows and count of one moment
        end, total, limit = fields["count"].tolist()
        end = unheld(end)
        return fields["rows"][end - (total if limit < 0 else min(total, limit)) : end]

    def restore(self, rows: np.ndarray, total: int, retired: list[Name]) -> None:
        """Replace all rounds by these rows, oldest first, out of `total` observed rounds."""
        self.retired, self.count[1] = retired, total
        self._replace(rows)

    def of_arm(self, k: int) -> np.ndarray:
        """Return the kept rows of arm number k, oldest first."""
        rows = self.ordered()
        return rows[self.layout.records(rows)["arm"] == k]

    @property
    def records(self) -> np.ndarray:
        """The kept rows as records (n,), oldest first: see `Layout.records`."""
        return self.layout.records(self.ordered())

    @property
    def x(self) -> np.ndarray:
        """Contexts (n, d)."""
        return self.ordered()[:, : self.layout.n_features].copy()

    @property
    def arm(self) -> np.ndarray:
        """Names of the arms that were played (n,)."""
        return name_array(self.names())[self.played()]

    def names(self) -> tuple[Name, ...]:
        """Return the arms' names, in the order of their numbers in `played`.

        Removed arms have negative numbers, and so their names stand at the end.
        """
        return (*self.layout.arms, *reversed(self.retired))

    def played(self) -> np.ndarray:
        """Return the numbers of the arms that were played (n,); −1, −2, … for removed ones."""
        return self.records["arm"].astype(np.int64)

    @property
    def reward(self) -> np.ndarray:
        """Rewards (n,)."""
        return self.records["reward"].copy()

    @property
    def propensity(self) -> np.ndarray:
        """Probabilities of the played arms at the moment of decision (n,).

        NaN for rounds that were logged elsewhere without one.
        """
        p = self.layout.fill_propensities(self.ordered())
        return np.where(p == UNLOGGED, np.nan, p)

    def floors(self) -> np.ndarray:
        """Return the minimum probability of an arm in each round (n,).

        It is `min_probability`, and more where the policy is ε-greedy. It is 0 for rounds that were
        logged elsewhere with a propensity.
        """
        return self.layout.floors(self.ordered())

    @property
    def weight(self) -> np.ndarray:
        """The weights (n,) of the rounds in their arm's current posterior."""
        return self.records["weight"].copy()

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row a round.

        Its columns are the features (by name, or x0 … x(d−1)), arm, reward, propensity (NaN where
        none was logged) and weight. A feature named as one of the last four gets " (context)".
        """
        import pandas as pd

        now = self.fork()
        x, features = now.x, now.layout.features
        names = [f"x{j}" for j in range(x.shape[1])] if features is None else list(features)
        columns = [f"{name} (context)" if name in OF_ROUNDS else name for name in names]
        frame = pd.DataFrame(x, columns=columns)
        return frame.assign(
            arm=now.arm, reward=now.reward, propensity=now.propensity, weight=now.weight
        )

    def relaid(self, layout: Layout) -> History:
        """Return the same rounds in the layout that the bandit has after a change of its arms.

        Past propensities are computed first, because their moments are not kept. A removed arm
        without a kept round loses its name.
        """
        old, arms, past = self.layout, self.layout.arms, self.ordered().copy()
        old.fill_propensities(past)
        before, rows = old.records(past), np.empty((len(past), layout.width))
        after = layout.records(rows)
        after["x"], after["mean"], after["scale"], after["last"] = before["x"], -np.inf, 0.0, np.inf
        for name in SCALARS:
            after[name] = before[name]
        after["min_probability"] = old.floors(past)  # ε/K with the old K
        after["number"][after["rule"] == EPSILON_GREEDY] = 0.0
        names, n_retired = self.names(), len(self.retired)  # names[−1]: the first removed arm
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
