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
ROOM = 1024  # rows for which there is room at first
UNLOGGED = np.inf  # in the place of a propensity: none was logged, and none can be computed


@dataclass(frozen=True)
class Layout:
    """Where things stand in a row: the arms (K), the features (d), the columns (D = d or d + 1)."""

    arms: tuple[Name, ...]
    n_features: int
    n_columns: int
    features: tuple[str, ...] | None = field(default=None, compare=False)  # their names
    of_arms: bool = False  # whether each arm has features of its own

    def __deepcopy__(self, memo: dict[int, object]) -> Layout:
        return self  # nothing in it changes

    @cached_property
    def shape(self) -> tuple[int]:
        """The shape of a context."""
        return (self.n_features,)

    @cached_property
    def row_type(self) -> np.dtype:
        """The type of a row as a record."""
        return row_type(self.n_columns, len(self.arms))

    @cached_property
    def width(self) -> int:
        """Numbers that a row takes."""
        return self.row_type.itemsize // 8

    @cached_property
    def index(self) -> dict[Name, int]:
        return {arm: k for k, arm in enumerate(self.arms)}

    @cached_property
    def names(self) -> Names:
        """The arms as an array that keeps their types."""
        return name_array(self.arms).view(Names)

    def records(self, rows: np.ndarray) -> np.ndarray:
        """Return rows (…, width) as records (…), which share their memory: `records["reward"]`."""
        return rows.view(self.row_type)[..., 0]

    def fill_propensities(self, rows: np.ndarray) -> np.ndarray:
        """The chosen arms' propensities (n,), computed where a row (n, width) has none yet."""
        p = self.records(rows)["propensity"]
        missing = np.flatnonzero(np.isnan(p))
        if missing.size:
            out = np.empty(missing.size)
            chances(rows[missing], -1, self.n_columns, len(self.arms), out)
            p[missing] = out
        return p

    def floors(self, rows: np.ndarray) -> np.ndarray:
        """Return the least probability of an arm in decided rows (n, width): (n,)."""
        rounds, K = self.records(rows), len(self.arms)
        floor = rounds["min_probability"]
        share = np.where(rounds["rule"] == EPSILON_GREEDY, rounds["number"] / K, 0.0)
        return floor + np.maximum(1.0 - K * floor, 0.0) * share

    def assumed(self, rows: np.ndarray) -> np.ndarray:
        """Return propensities (n,) to compute weights from: `fill_propensities`, and for rounds
        that were logged without one the probabilities that their moments give."""
        p = self.fill_propensities(rows).copy()
        if (unlogged := np.flatnonzero(p == UNLOGGED)).size:
            out = np.empty(unlogged.size)
            chances(rows[unlogged], -1, self.n_columns, len(self.arms), out)
            p[unlogged] = out
        return p


def unheld[N: (int, float)](count: N) -> N:
    """Return a count without the minus that holds it (see `bandit/transactions.py`)."""
    return count if count >= 0 else -1 - count


class History:
    """The last `limit` observed rounds (None: all of them), in order of observation.

    A removed arm's rounds stay, under its name, which is kept as long as one of them: an open
    decision has its own copy of its arms' names. Propensities are those of the moment of decision,
    computed from the moments stored with the round when they are first asked for.

    `rows` (…, width) begins with old rounds that no longer count and goes on with those kept; what
    stands behind them is free. New rounds only ever go there, so that a `fork` costs nothing.
    Others may log meanwhile: what is read is of one moment, and of a `fork` always of the same.
    `count` has the rows in use (−1 less these while they are held, see `bandit/transactions.py`),
    the rounds observed so far, kept or not, and the limit (−1: none): an array, for the compiled
    functions that log.
    """

    def __init__(self, layout: Layout, limit: int | None) -> None:
        self.layout = layout
        self.retired: list[Name] = []  # removed arms of rows; a row's arm −1 is the first of them
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
        """The same rounds, to be gone on with in the place of these."""
        twin, own = object.__new__(History), dict(vars(self))  # rows and count of one moment
        count = own["count"].copy()
        count[0] = unheld(count[0])
        vars(twin).update(own, count=count, retired=list(self.retired))
        return twin

    @property
    def end(self) -> int:
        """Rows in use; those behind them are free."""
        return int(unheld(self.count[0]))

    def detach(self) -> None:
        """Rows of its own, so that a fork's past may be changed too."""
        self._hold(self.ordered().copy())

    def _hold(self, rows: np.ndarray, kept: int | None = None) -> None:
        """These rows, of which the first `kept` are in use; in one step."""
        kept = len(rows) if kept is None else kept
        count = np.array([kept, *self.count[1:]], dtype=np.int64)
        vars(self).update(rows=rows, count=count)

    def has_room(self, n: int) -> bool:
        """Whether n more rounds, or as many as are kept, fit in."""
        return self.end + (n if self.limit is None else min(n, self.limit)) <= len(self.rows)

    def reserve(self, n: int) -> None:
        """Make room for n more rounds, or for as many as are kept."""
        if not self.has_room(n):
            n = n if self.limit is None else min(n, self.limit)
            past = self.ordered()
            rows = np.empty((max(len(past) + n, 2 * len(past), ROOM), self.rows.shape[1]))
            rows[: len(past)] = past
            self._hold(rows, len(past))

    def room(self, n: int) -> np.ndarray:
        """Free rows for n more rounds, or a ring of as many as are kept; then see `count_in`."""
        self.reserve(n)
        end, size = self.end, n if self.limit is None else min(n, self.limit)
        return self.rows[end : end + size]

    def count_in(self, n: int) -> None:
        """Log the n rounds that have been written into `room(n)`."""
        ring = self.room(n)
        if len(ring) < n and len(ring):
            ring[:] = np.roll(ring, -(n % len(ring)), axis=0)
        self.count += len(ring), n, 0

    def extend(self, rows: np.ndarray) -> None:
        """Log rounds (n, width) that have been observed."""
        kept = rows if self.limit is None else rows[max(0, len(rows) - self.limit) :]
        self.reserve(len(kept))
        end = self.end
        self.rows[end : end + len(kept)] = kept
        self.count += len(kept), len(rows), 0

    def ordered(self) -> np.ndarray:
        """The kept rows (n, width), oldest first: a view."""
        own = dict(vars(self))
        end, total, limit = own["count"].tolist()
        end = unheld(end)
        return own["rows"][end - (total if limit < 0 else min(total, limit)) : end]

    def restore(self, rows: np.ndarray, total: int, retired: list[Name]) -> None:
        """Go on from rows that are oldest first."""
        self.retired, self.count[1] = retired, total
        self._hold(rows)

    def of_arm(self, k: int) -> np.ndarray:
        """The kept rows of arm number k, oldest first."""
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
        """Names by the number that `played` gives them, a removed arm's from the end."""
        return (*self.layout.arms, *reversed(self.retired))

    def played(self) -> np.ndarray:
        """Numbers of the arms that were played (n,); −1, −2, … for removed ones."""
        return self.records["arm"].astype(np.int64)

    @property
    def reward(self) -> np.ndarray:
        """Rewards (n,)."""
        return self.records["reward"].copy()

    @property
    def propensity(self) -> np.ndarray:
        """Probabilities of the played arms at the moment of decision (n,); NaN of rounds that were
        logged elsewhere without one."""
        p = self.layout.fill_propensities(self.ordered())
        return np.where(p == UNLOGGED, np.nan, p)

    def floors(self) -> np.ndarray:
        """Return the least probability that any arm had in each round (n,): min_probability, with
        what ε-greedy decisions add; 0 of rounds that came with a propensity from elsewhere."""
        return self.layout.floors(self.ordered())

    @property
    def weight(self) -> np.ndarray:
        """The weights with which the rounds last entered their arm's estimate (n,)."""
        return self.records["weight"].copy()

    def to_frame(self) -> pd.DataFrame:
        """Return one row a round: x0 … x(d−1), or the features' names, arm, reward, propensity (NaN
        where none was logged), weight. A feature called as one of these is followed by
        " (context)"."""
        import pandas as pd

        now = self.fork()
        x, own = now.x, now.layout.features
        names = [f"x{j}" for j in range(x.shape[1])] if own is None else list(own)
        columns = [f"{name} (context)" if name in OF_ROUNDS else name for name in names]
        frame = pd.DataFrame(x, columns=columns)
        return frame.assign(
            arm=now.arm, reward=now.reward, propensity=now.propensity, weight=now.weight
        )

    def relaid(self, layout: Layout) -> History:
        """Return the same rounds after a change of the bandit's arms. Past propensities are settled
        first, and of the moments that they came from nothing is kept; nor are the names of removed
        arms that have no row left."""
        old, arms, past = self.layout, self.layout.arms, self.ordered().copy()
        old.fill_propensities(past)
        before, rows = old.records(past), np.empty((len(past), layout.width))
        after = layout.records(rows)
        after["x"], after["mean"], after["scale"], after["last"] = before["x"], -np.inf, 0.0, np.inf
        for name in SCALARS:
            after[name] = before[name]
        after["min_probability"] = old.floors(past)  # of as many arms as there were
        after["number"][after["rule"] == EPSILON_GREEDY] = 0.0
        had, known = len(self.retired), self.names()  # by number: −1 is the last name
        played, where = np.unique(self.played(), return_inverse=True)
        there = [k for k in played.tolist() if k < 0 or arms[k] not in layout.index]
        gone = sorted(there, key=lambda k: -1 - k if k < 0 else had + k)  # as they went
        retired = [known[k] for k in gone]
        number = {k: -1 - i for i, k in enumerate(gone)}
        code = [number[k] if k in number else layout.index[arms[k]] for k in played.tolist()]
        after["arm"] = np.array(code, dtype=np.float64)[where]
        history = History(layout, self.limit)
        history.restore(rows, self.total, retired)
        return history
