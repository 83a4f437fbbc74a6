"""Logged rounds: one row of numbers each, in the order in which their rewards arrived."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bayesbandit.checks import Name
from bayesbandit.kernels.rules import ARM, PROPENSITY, REWARD, WEIGHT, chances, row_width

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Layout:
    """Where things stand in a row: the arms (K), the features (d), the columns (D = d or d + 1)."""

    arms: tuple[Name, ...]
    n_features: int
    n_columns: int

    @cached_property
    def shape(self) -> tuple[int]:
        """The shape of a context."""
        return (self.n_features,)

    @cached_property
    def width(self) -> int:
        return row_width(self.n_columns, len(self.arms))

    @cached_property
    def tail(self) -> int:
        """Where the scalars after context and moments begin."""
        return self.n_columns + 3 * len(self.arms)

    @cached_property
    def index(self) -> dict[Name, int]:
        return {arm: k for k, arm in enumerate(self.arms)}

    @cached_property
    def names(self) -> np.ndarray:
        """The arms as an array that keeps their types."""
        return name_array(self.arms)

    def moment(self, rows: np.ndarray, which: int) -> np.ndarray:
        """Means (which = 0), scales (1) or degrees of freedom (2) of all arms: (…, K)."""
        K = len(self.arms)
        start = self.n_columns + which * K
        return rows[..., start : start + K]

    def fill_propensities(self, rows: np.ndarray) -> np.ndarray:
        """The chosen arms' propensities (n,), computed where a row (n, width) has none yet."""
        p = rows[:, self.tail + PROPENSITY]
        missing = np.flatnonzero(np.isnan(p))
        if missing.size:
            out = np.empty(missing.size)
            chances(rows[missing], -1, self.n_columns, len(self.arms), out)
            p[missing] = out
        return p


def name_array(names: tuple[Name, ...]) -> np.ndarray:
    """Names as int64, str or (both mixed) object array, so that they keep their types."""
    kinds = {type(name) for name in names}
    if kinds == {int} and all(abs(int(n)) < 2**63 for n in names):
        return np.array(names, dtype=np.int64)
    array = np.empty(len(names), dtype=object)
    array[:] = names
    return array.astype(str) if kinds == {str} else array


class History:
    """The last `limit` observed rounds (None: all of them), in order of observation.

    A removed arm's rounds stay, under its name. Propensities are those of the moment of decision,
    computed from the moments stored with the round when they are first asked for.
    """

    def __init__(self, layout: Layout, limit: int | None) -> None:
        self.layout = layout
        self.limit = limit
        self.total = 0  # rounds observed so far, kept or not
        self.retired: list[Name] = []  # removed arms; a row's arm −1 is the first of them
        self.rows = np.zeros((0 if limit is None else limit, layout.width))

    def __len__(self) -> int:
        return self.total if self.limit is None else min(self.total, self.limit)

    def __repr__(self) -> str:
        return f"History({len(self)} of {self.total} rounds)"

    def reserve(self, n: int) -> None:
        """Make room for n more rounds, doubling where all are kept."""
        short = self.total + n - len(self.rows)
        if self.limit is None and short > 0:
            more = np.zeros((max(short, len(self.rows), 1024), self.rows.shape[1]))
            self.rows = np.concatenate([self.rows, more])

    def slot(self) -> int:
        """Where the next round goes (−1: nowhere); counts it."""
        at, limit = self.total, self.limit
        if limit is None and at == len(self.rows):
            self.reserve(1)
        self.total = at + 1
        return at if limit is None else at % limit if limit else -1

    def extend(self, rows: np.ndarray) -> None:
        """Log rounds (n, width) that have been observed."""
        self.reserve(len(rows))
        if self.limit is None:
            self.rows[self.total : self.total + len(rows)] = rows
        elif self.limit:
            last = rows[-self.limit :]
            at = self.total + len(rows) - len(last) + np.arange(len(last))
            self.rows[at % self.limit] = last
        self.total += len(rows)

    def ordered(self) -> np.ndarray:
        """The kept rows (n, width), oldest first; a view where that is possible."""
        if not self.limit or self.total <= self.limit:
            return self.rows[: len(self)]
        return np.roll(self.rows, -(self.total % self.limit), axis=0)

    def of_arm(self, k: int) -> np.ndarray:
        """The kept rows of arm number k, oldest first."""
        rows = self.ordered()
        return rows[rows[:, self.layout.tail + ARM] == k]

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
        return self.ordered()[:, self.layout.tail + ARM].astype(np.int64)

    @property
    def reward(self) -> np.ndarray:
        """Rewards (n,)."""
        return self.ordered()[:, self.layout.tail + REWARD].copy()

    @property
    def propensity(self) -> np.ndarray:
        """Probabilities of the played arms at the moment of decision (n,)."""
        self._fill()
        return self.ordered()[:, self.layout.tail + PROPENSITY].copy()

    @property
    def weight(self) -> np.ndarray:
        """The weights with which the rounds last entered their arm's estimate (n,)."""
        return self.ordered()[:, self.layout.tail + WEIGHT].copy()

    def to_frame(self) -> pd.DataFrame:
        """One row a round: x0 … x(d−1), arm, reward, propensity, weight."""
        import pandas as pd

        x = self.x
        frame = pd.DataFrame(x, columns=[f"x{j}" for j in range(x.shape[1])])
        return frame.assign(
            arm=self.arm, reward=self.reward, propensity=self.propensity, weight=self.weight
        )

    def relayout(self, layout: Layout) -> None:
        """Follow a change of the bandit's arms. Past propensities are settled first; an arm that
        is new was not available in the rounds before it."""
        self._fill()
        old, arms = self.layout, self.layout.arms
        kept = [k for k, arm in enumerate(arms) if arm in layout.index]
        now = [layout.index[arms[k]] for k in kept]
        everything = np.zeros((len(self.rows), layout.width))
        past, rows = self.rows[: len(self)], everything[: len(self)]
        rows[:, : layout.n_columns] = past[:, : old.n_columns]
        for which, absent in enumerate((-np.inf, 0.0, np.inf)):
            layout.moment(rows, which)[:] = absent
            layout.moment(rows, which)[:, now] = old.moment(past, which)[:, kept]
        rows[:, layout.tail :] = past[:, old.tail :]
        code = np.empty(len(arms))
        for k, arm in enumerate(arms):
            if arm not in layout.index:
                self.retired.append(arm)
            code[k] = layout.index.get(arm, -len(self.retired))
        played = past[:, old.tail + ARM].astype(np.int64)
        rows[:, layout.tail + ARM] = np.where(played >= 0, code[played], played)
        self.layout, self.rows = layout, everything

    def _fill(self) -> None:
        self.layout.fill_propensities(self.rows[: len(self)])
