"""Statistics of a log for the report, added part by part: memory does not grow with the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd
from sqlalchemy import func, select

from bayesbandit.checks import Name
from bayesbandit.kernels.row_layout import FLOOR, TAIL
from bayesbandit.store.ledger import Ledger
from bayesbandit.store.reading import BEFORE_ALL_TIME, OPEN_STATE, Chunk, joined_rewards, moments
from bayesbandit.store.records import Stored
from bayesbandit.store.rows import arm_named
from bayesbandit.store.tables import decisions
from bayesbandit.tables.encoder import Encoder

MICROSECONDS_PER_DAY = 86_400_000_000
FLOOR_FACTOR = 1.001  # a probability up to this factor above the minimum is at the floor
SHORTEST = 1e-6  # hours
EDGES = SHORTEST * 1.01 ** np.arange(3000)  # of bins of lags, in hours; the last is 10⁶
REFERENCE = 1000  # contexts with which later ones are compared
# a standard deviation below this share of the largest value is a rounding error
RELATIVE_ROUNDING = 1e-12
OTHER_LEVELS = "all others"


def most_taken(ledger: Ledger, begin: int | None, end: int | None, number: int) -> list[Name]:
    """Return the `number` arms that were taken most, the most frequent first."""
    own = decisions.c
    found = select(own.arm).where(ledger.own(decisions)).group_by(own.arm)
    if begin is not None:
        found = found.where(own.decided_at >= begin)
    if end is not None:
        found = found.where(own.decided_at < end)
    order = found.order_by(func.count().desc(), own.arm).limit(number)
    with ledger.database.read(patient=True) as connection:
        return [arm_named(text) for text in connection.execute(order).scalars()]


class Lags:
    """Hours from decision to reward, counted in bins that are 1 % wide."""

    def __init__(self) -> None:
        self.n = 0
        self.largest = 0.0
        self.bins = np.zeros(len(EDGES) + 1, dtype=np.int64)

    def add(self, hours: np.ndarray) -> None:
        """Count lags (n,) in hours."""
        self.n += len(hours)
        self.largest = max(self.largest, float(hours.max(initial=0.0)))
        self.bins += np.bincount(np.searchsorted(EDGES, hours), minlength=len(self.bins))

    def curve(self) -> tuple[np.ndarray, np.ndarray]:
        """Return hours (m,), and the share (m,) of rewards that came within them."""
        there = np.flatnonzero(self.bins)
        hours = np.minimum(np.append(EDGES, np.inf)[there], max(self.largest, SHORTEST))
        return hours, np.cumsum(self.bins[there]) / max(self.n, 1)

    def quantile(self, q: float) -> float:
        """Return the hours within which a share q of the rewards came, to 1 %; q = 1 is exact."""
        if q >= 1:
            return self.largest
        hours, share = self.curve()
        return float(hours[np.searchsorted(share, q)])


class Watch:
    """Counts of decisions by day, week, arm and status, and statistics of contexts and lags.

    most: the arms that are counted by name; all others are counted together. The counts of a week
    are decisions, rewards and open decisions; and `floor`, decisions in which some available arm
    had the policy's minimum probability.
    """

    def __init__(self, ledger: Ledger, most: Sequence[Name]) -> None:
        begun = ledger.begun()
        self.how = begun.settings
        self.most = {arm: str(arm) for arm in most}
        numbers = [f"x{j}" for j in range(begun.n_features)]
        encoder = begun.encoder
        self.drift = Drift(Encoder.from_dict(encoder).features if encoder else numbers)
        self.decided, self.rewarded = Counter[int](), Counter[int]()  # by day
        self.taken = Counter[tuple[int, str]]()  # by day and arm
        self.weeks: dict[int, Counter[str]] = {}  # by their Monday
        self.status: dict[str, tuple[int, int]] = {}  # how many, and the oldest decision's time
        self.lags = Lags()
        self.n, self.first, self.last = 0, 0, 0

    def add(self, chunk: Chunk) -> None:
        """Count the next decisions."""
        rows = chunk.decisions
        _, came, status = joined_rewards(chunk, self.how)
        at = np.array([row.decided_at for row in rows])
        came_at = np.array(came, dtype=np.int64)
        known = came_at != BEFORE_ALL_TIME
        self.first, self.last = self.first if self.n else int(at[0]), int(at[-1])
        self.n += len(rows)
        days = at // MICROSECONDS_PER_DAY
        self.decided.update(days.tolist())
        self.rewarded.update((came_at[known] // MICROSECONDS_PER_DAY).tolist())
        names = [self.most.get(row.arm, OTHER_LEVELS) for row in rows]
        self.taken.update(zip(days.tolist(), names, strict=True))
        self.lags.add((came_at[known] - at[known]) / 3.6e9)
        for one, when in zip(status, at.tolist(), strict=True):
            n, oldest = self.status.get(one, (0, when))
            self.status[one] = n + 1, min(oldest, when)
        seen = {
            "decisions": np.ones(len(rows), dtype=np.bool_),
            "rewards": known,
            "open": np.array([one == OPEN_STATE for one in status]),
            "floor": _at_floor(rows),
        }
        weeks = week_of(at)
        for week in np.unique(weeks).tolist():
            counted = self.weeks.setdefault(week, Counter())
            counted.update({name: int(on[weeks == week].sum()) for name, on in seen.items()})
        self.drift.add(rows)


def week_of(at: np.ndarray) -> np.ndarray:
    """Return the Monday on which the week of each time (n,) begins, in days since 1970."""
    days = at // MICROSECONDS_PER_DAY
    return days - (days + 3) % 7  # 1970 began on a Thursday


def _at_floor(rows: Sequence[Stored]) -> np.ndarray:
    """Return a mask (n,) of decisions in which an arm had the policy's minimum probability."""
    found = np.zeros(len(rows), dtype=np.bool_)
    for which, _, means, _ in moments(rows):
        floor = np.array([rows[i].row[FLOOR - TAIL] for i in which])
        p = np.where(means > -np.inf, np.stack([rows[i].probabilities for i in which]), np.inf)
        found[which] = (floor > 0) & (p.min(axis=1) <= floor * FLOOR_FACTOR)
    return found


class Drift:
    """How the numbers of contexts differ from those of the first 1,000 contexts.

    names: of the d numbers. If arms have features, each arm's are a context.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.n = 0
        self.mean = np.zeros(len(names))
        self.sd = np.ones(len(names))
        self.constant = np.zeros(len(names), dtype=np.bool_)
        self.z = np.zeros(len(names))  # Σz and Σz², standardised by the first decisions
        self.z2 = np.zeros(len(names))

    def add(self, rows: Sequence[Stored]) -> None:
        """Count the contexts of these decisions, but for those that were erased."""
        d = len(self.names)
        there = [row.row[:d] if row.x is None else row.x for row in rows if not row.erased]
        if not (there and d):
            return
        x = np.concatenate(there).reshape(-1, d)
        if not self.n:
            first = x[:REFERENCE]
            sd = first.std(axis=0)
            self.mean = first.mean(axis=0)
            self.constant = sd <= RELATIVE_ROUNDING * np.abs(first).max(axis=0)
            self.sd = np.where(self.constant, 1.0, sd)
        z = (x - self.mean) / self.sd
        self.n += len(z)
        self.z += z.sum(axis=0)
        self.z2 += (z * z).sum(axis=0)

    def table(self) -> pd.DataFrame:
        """Return one row for each number of the contexts.

        mean_shift, sd_ratio: mean and standard deviation in units of the first decisions; 0 and 1
        where nothing has changed.
        """
        n = max(self.n, 1)
        mean = self.z / n
        sd = np.sqrt(np.maximum(self.z2 / n - mean**2, 0.0))
        sd[self.constant & (self.z2 <= RELATIVE_ROUNDING * n)] = 1.0
        return pd.DataFrame(
            {"column": self.names, "contexts": self.n, "mean_shift": mean, "sd_ratio": sd}
        )
