"""Statistics of a log for the report, added part by part: memory does not grow with the log."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from sqlalchemy import func, select

from bayesbandit.checks import Name
from bayesbandit.kernels.row_layout import FLOOR, TAIL
from bayesbandit.store.ledger import Ledger
from bayesbandit.store.reading import NEVER, OPEN, Chunk, joined_rewards, moments
from bayesbandit.store.records import Stored
from bayesbandit.store.rows import arm_named
from bayesbandit.store.settings import Settings
from bayesbandit.store.tables import decisions
from bayesbandit.tables.columns import NEW, Levels, Number, is_missing
from bayesbandit.tables.encoder import Encoder

DAY = 86_400_000_000  # microseconds
NEAR = 1.001  # a probability up to this factor above the minimum is at the floor
TOLD, LONGEST = 3, 40  # number of new levels that are named, and characters of each
MOST = 10_000  # largest number of different new levels that are counted
CLOSE = 0.01  # relative error of quantiles of lags
SHORTEST = 1e-6  # hours
ROUNDING = 1e-12  # a standard deviation below this share of the largest value is a rounding error
OTHERS = "all others"


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
        self.n, self.largest, self.bins = 0, 0.0, Counter[int]()

    def add(self, hours: np.ndarray) -> None:
        """Count lags (n,) in hours."""
        if not len(hours):
            return
        place = np.ceil(np.log(np.maximum(hours, SHORTEST)) / np.log1p(CLOSE)).astype(int)
        bins, counts = np.unique(place, return_counts=True)
        self.bins.update(dict(zip(bins.tolist(), counts.tolist(), strict=True)))
        self.n, self.largest = self.n + len(hours), max(self.largest, float(hours.max()))

    def curve(self) -> tuple[np.ndarray, np.ndarray]:
        """Return hours (m,), and the share (m,) of rewards that came within them."""
        place = np.array(sorted(self.bins))
        counts = np.array([self.bins[one] for one in place.tolist()])
        hours = np.minimum((1 + CLOSE) ** (place - 0.5), max(self.largest, SHORTEST))
        return hours, np.cumsum(counts) / max(self.n, 1)

    def quantile(self, q: float) -> float:
        """Return the hours within which a share q of the rewards came, to 1 %; q = 1 is exact."""
        if q >= 1:
            return self.largest
        hours, share = self.curve()
        return float(hours[np.searchsorted(share, q)])


class Watch:
    """Counts of decisions by day, week, arm and status, and statistics of contexts and lags.

    most: the arms that are counted by name; all others are counted together. The counts of a week
    are decisions, rewards and open decisions; `floor`, decisions in which some available arm had
    the policy's minimum probability; `advised`, decisions of another system; and
    `agreed`, those of them in which the bandit would have chosen the same arm.
    """

    def __init__(self, ledger: Ledger, most: Sequence[Name]) -> None:
        known = ledger.beginning() or {}
        plain = known["encoder"]
        self.how = ledger.settings() or Settings()
        self.n_features = known["n_features"]
        self.most = {arm: str(arm) for arm in most}
        self.drift = Drift(None if plain is None else Encoder.from_dict(plain))
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
        known = came_at != NEVER
        self.first, self.last = self.first if self.n else int(at[0]), int(at[-1])
        self.n += len(rows)
        days = at // DAY
        self.decided.update(days.tolist())
        self.rewarded.update((came_at[known] // DAY).tolist())
        names = [self.most.get(row.arm, OTHERS) for row in rows]
        self.taken.update(zip(days.tolist(), names, strict=True))
        self.lags.add((came_at[known] - at[known]) / 3.6e9)
        for one, when in zip(status, at.tolist(), strict=True):
            n, oldest = self.status.get(one, (0, when))
            self.status[one] = n + 1, min(oldest, when)
        agrees = _agreement(rows)
        seen = {
            "decisions": np.ones(len(rows), dtype=np.bool_),
            "rewards": known,
            "open": np.array([one == OPEN for one in status]),
            "floor": _at_floor(rows),
            "advised": agrees >= 0,
            "agreed": agrees == 1,
        }
        weeks = week_of(at)
        for week in np.unique(weeks).tolist():
            counted = self.weeks.setdefault(week, Counter())
            counted.update({name: int(on[weeks == week].sum()) for name, on in seen.items()})
        self.drift.add(rows, self.n_features)


def week_of(at: np.ndarray) -> np.ndarray:
    """Return the Monday on which the week of each time (n,) begins, in days since 1970."""
    days = at // DAY
    return days - (days + 3) % 7  # 1970 began on a Thursday


def _at_floor(rows: Sequence[Stored]) -> np.ndarray:
    """Return a mask (n,) of decisions in which an arm had the policy's minimum probability."""
    found = np.zeros(len(rows), dtype=np.bool_)
    for which, _, means, _ in moments(rows):
        floor = np.array([rows[i].row[FLOOR - TAIL] for i in which])
        p = np.where(means > -np.inf, np.stack([rows[i].probabilities for i in which]), np.inf)
        found[which] = (floor > 0) & (p.min(axis=1) <= floor * NEAR)
    return found


def _agreement(rows: Sequence[Stored]) -> np.ndarray:
    """Return whether the bandit agrees with another system's decisions (n,).

    1 or 0; −1 if the bandit itself decided.
    """
    told = [None if row.advice is None else json.loads(row.advice)["arm"] for row in rows]
    return np.array(
        [-1 if arm is None else arm == row.arm for arm, row in zip(told, rows, strict=True)]
    )


@dataclass
class Seen:
    """Counts and sums over the values of one column.

    constant: whether the fit has one value, so that z is in the column's units. unseen: values
    whose level is not in the fit. new: these levels, with their counts. z, z2: Σz and Σz² of
    numbers, z standardised by the fit.
    """

    n: int = 0
    constant: bool = False
    missing: int = 0
    unseen: int = 0
    new: Counter[str] = field(default_factory=Counter)
    z: float = 0.0
    z2: float = 0.0


class Drift:
    """How the contexts of decisions differ from those on which the encoder was fitted.

    Without an encoder the reference is the first part of decisions that is added. If arms have
    features, each arm's are a context.
    """

    def __init__(self, encoder: Encoder | None) -> None:
        self.encoder = encoder
        fitted = () if encoder is None else encoder.fitted
        self.columns = [column for column in fitted if isinstance(column, Number | Levels)]
        self.seen: dict[Name, Seen] = {}
        self.fit: tuple[np.ndarray, np.ndarray] | None = None

    def add(self, decided: Sequence[Stored], n_features: int) -> None:
        """Count the contexts of these decisions."""
        if self.encoder is None:
            own = [one.row[:n_features] if one.x is None else one.x for one in decided]
            self._add_numbers(np.concatenate(own).reshape(-1, n_features))
            return
        found = [json.loads(one.context) for one in decided if one.context]
        whole = [row for one in found for row in _rows(one)]
        for column in self.columns:
            values = [_value(row, column.name) for row in whole]
            seen = self.seen.setdefault(column.name, Seen())
            seen.n += len(values)
            seen.missing += sum(map(is_missing, values))
            if isinstance(column, Levels):
                new = [_level(v) for v in values if column.place(v) == NEW]
                seen.unseen += len(new)
                seen.new.update(new)
                if len(seen.new) > MOST:  # drop the rarest
                    seen.new = Counter(dict(seen.new.most_common(MOST // 2)))
            elif values:
                features = np.empty((len(values), 1))
                column.encode(values, features)
                z = features[:, 0]
                seen.z += float(z.sum())
                seen.z2 += float(z @ z)

    def _add_numbers(self, x: np.ndarray) -> None:
        if self.fit is None:
            sd = x.std(axis=0)
            changes = sd > ROUNDING * np.abs(x).max(axis=0, initial=0.0)
            self.fit = x.mean(axis=0), np.where(changes, sd, 1.0)
            self.seen = {j: Seen(constant=not on) for j, on in enumerate(changes.tolist())}
        z = (x - self.fit[0]) / self.fit[1]
        for j, column in enumerate(z.T):
            seen = self.seen[j]
            seen.n += len(column)
            seen.z += float(column.sum())
            seen.z2 += float(column @ column)

    def table(self) -> pd.DataFrame:
        """Return one row for each column of the contexts.

        mean_shift, sd_ratio: mean and standard deviation of a feature, in which a missing value is
        the fit's median, in units of the fit; 0 and 1 where nothing has changed. missing,
        unseen_levels: shares of the contexts.
        """
        rows = []
        levels = {column.name for column in self.columns if isinstance(column, Levels)}
        for name, seen in self.seen.items():
            n = max(seen.n, 1)
            mean = seen.z / n
            sd = float(np.sqrt(max(seen.z2 / n - mean**2, 0.0)))
            sd = 1.0 if seen.constant and seen.z2 <= ROUNDING * n else sd
            told = ", ".join(f"{level} ({n:,})" for level, n in seen.new.most_common(TOLD))
            is_levels = name in levels
            rows.append(
                {
                    "column": str(name) if self.encoder is not None else f"x{name}",
                    "contexts": seen.n,
                    "missing": seen.missing / n,
                    "mean_shift": np.nan if is_levels else mean,
                    "sd_ratio": np.nan if is_levels else sd,
                    "unseen_levels": seen.unseen / n if is_levels else np.nan,
                    "most_frequent_unseen": told,
                }
            )
        columns = ["column", "contexts", "missing", "mean_shift", "sd_ratio", "unseen_levels",
                   "most_frequent_unseen"]  # fmt: skip
        return pd.DataFrame(rows, columns=columns)


def _level(value: object) -> str:
    """Return a level as text that can be written."""
    return str(value)[:LONGEST].encode("utf-8", "backslashreplace").decode()


def _rows(context: object) -> list[dict[str, object] | list[object]]:
    """Return a context as a row, or the rows of its arms."""
    if isinstance(context, list) and context and isinstance(context[0], dict | list):
        return context
    return [context] if isinstance(context, dict | list) else []


def _value(row: Mapping[str, object] | Sequence[object], name: Name) -> object:
    """Return the value of a context in a column; None if it has none.

    A mapping has values by name, a sequence by position.
    """
    if isinstance(row, Mapping):
        return row.get(str(name))
    return row[name] if isinstance(name, int) and name < len(row) else None
