"""What a log shows of a living bandit: a row a decision, and how contexts drift from the fit."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from sqlalchemy import select

from bayesbandit.checks import Name
from bayesbandit.kernels.row_layout import FLOOR, TAIL
from bayesbandit.service.apprentice import ADVISED
from bayesbandit.store.ledger import Ledger
from bayesbandit.store.log import DecisionLog, Time
from bayesbandit.store.tables import events
from bayesbandit.tables.columns import NEW, Levels, Number, is_missing
from bayesbandit.tables.encoder import Encoder

KEPT = ["decided_at", "rewarded_at", "arm", "propensity", "reward", "status", "mode", "version"]
NEAR = 1.001  # times the minimum probability: at the floor
AT_ONCE = 500  # ids of a query
TOLD = 3  # new levels that are named


@dataclass
class Watched:
    """Decisions as `DecisionLog.frame` has them, with few columns, and what was seen of contexts.

    floor: whether an arm that could be chosen had the least probability that the policy allows.
    agrees: of decisions of another system, whether the bandit would have chosen the same arm.
    """

    decisions: pd.DataFrame
    contexts: pd.DataFrame


def watched(log: DecisionLog, since: Time | None = None, until: Time | None = None) -> Watched:
    """Return what a log has of decisions since ≤ decided_at < until, read in parts."""
    plain = log.ledger.beginning()["encoder"]
    drift = Drift(None if plain is None else Encoder.from_dict(plain))
    parts = []
    for frame in log.frames(since, until):
        part = frame[KEPT].copy()
        part["arm"] = part["arm"].astype(str)
        part["floor"] = _at_floor(log.ledger, frame)
        part["agrees"] = _agreement(log.ledger, frame)
        parts.append(part)
        drift.add(frame)
    if not parts:
        raise ValueError(f"{log} has no decision in this time")
    return Watched(pd.concat(parts, ignore_index=True), drift.table())


def _at_floor(ledger: Ledger, frame: pd.DataFrame) -> np.ndarray:
    """Return whether an arm of each decision (n,) had the policy's minimum probability."""
    found = np.zeros(len(frame), dtype=np.bool_)
    for _, some in frame.groupby("version", sort=False):
        [first] = ledger.stored([some["decision_id"].iloc[0]])
        floor = float(first.row[FLOOR - TAIL])
        if floor > 0:
            p, mean = some["probabilities"].to_list(), some["mean"].to_list()
            at = frame.index.get_indexer(some.index)
            found[at] = [
                (own[m > -np.inf] <= floor * NEAR).any() for own, m in zip(p, mean, strict=True)
            ]
    return found


def _agreement(ledger: Ledger, frame: pd.DataFrame) -> pd.Series:
    """Return whether the bandit would have chosen the arm that another system chose; none of its
    own decisions."""
    advised: dict[str, Name] = {}
    ids = frame["decision_id"].tolist()
    with ledger.database.read() as connection:
        for start in range(0, len(ids), AT_ONCE):
            found = select(events.c.decision_id, events.c.detail).where(
                ledger.of_ids(events, ids[start : start + AT_ONCE]), events.c.kind == ADVISED
            )
            for row in connection.execute(found):
                advised[row.decision_id] = json.loads(row.detail)["arm"]
    pairs = zip(ids, frame["arm"], strict=True)
    said = [advised[one] == arm if one in advised else None for one, arm in pairs]
    return pd.Series(said, index=frame.index, dtype="boolean")


@dataclass
class Seen:
    """Sums over values of a column: how many, missing ones, and of numbers Σz and Σz²."""

    n: int = 0
    missing: int = 0
    new: Counter[str] = field(default_factory=Counter)
    z: float = 0.0
    z2: float = 0.0


class Drift:
    """Contexts against the encoder's fit; without an encoder, numbers of the contexts against those
    of the first decisions."""

    def __init__(self, encoder: Encoder | None) -> None:
        self.encoder = encoder
        self.columns = [] if encoder is None else [
            column for column in encoder.fitted if isinstance(column, Number | Levels)
        ]  # fmt: skip
        self.seen: dict[Name, Seen] = {}
        self.fit: tuple[np.ndarray, np.ndarray] | None = None

    def add(self, frame: pd.DataFrame) -> None:
        """Count the contexts of a table of decisions."""
        if self.encoder is None:
            self._add_numbers(np.stack(frame["x"].to_list()))
            return
        rows = [json.loads(text) for text in frame["context"] if text is not None]
        whole = [row for row in rows if isinstance(row, dict | list)]
        for column in self.columns:
            values = [_value(row, column.name) for row in whole]
            seen = self.seen.setdefault(column.name, Seen())
            seen.n += len(values)
            seen.missing += sum(map(is_missing, values))
            if isinstance(column, Levels):
                new = (v for v in values if column.place(v) == NEW)
                seen.new.update(map(str, new))
            elif values:
                known = column.known(values)
                z = (known[~np.isnan(known)] - column.mean) / column.scale
                seen.z += float(z.sum())
                seen.z2 += float(z @ z)

    def _add_numbers(self, x: np.ndarray) -> None:
        if self.fit is None:
            self.fit = x.mean(axis=0), np.where((sd := x.std(axis=0)) > 0, sd, 1.0)
        z = (x - self.fit[0]) / self.fit[1]
        for j, column in enumerate(z.T):
            seen = self.seen.setdefault(j, Seen())
            seen.n += len(column)
            seen.z += float(column.sum())
            seen.z2 += float(column @ column)

    def table(self) -> pd.DataFrame:
        """Return a row a column: its mean and standard deviation in units of the fit (0 and 1 where
        nothing has changed), the shares of missing values and of levels that the fit has not."""
        rows = []
        levels = {column.name for column in self.columns if isinstance(column, Levels)}
        for name, seen in self.seen.items():
            known = max(seen.n - seen.missing, 1)
            mean = seen.z / known
            sd = float(np.sqrt(max(seen.z2 / known - mean**2, 0.0)))
            new = sum(seen.new.values())
            told = ", ".join(f"{level[:40]} ({n:,})" for level, n in seen.new.most_common(TOLD))
            is_levels = name in levels
            rows.append(
                {
                    "column": str(name) if self.encoder is not None else f"x{name}",
                    "contexts": seen.n,
                    "missing": seen.missing / max(seen.n, 1),
                    "mean_shift": np.nan if is_levels else mean,
                    "sd_ratio": np.nan if is_levels else sd,
                    "unseen_levels": new / max(seen.n, 1) if is_levels else np.nan,
                    "most_frequent_unseen": told,
                }
            )
        columns = ["column", "contexts", "missing", "mean_shift", "sd_ratio", "unseen_levels",
                   "most_frequent_unseen"]  # fmt: skip
        return pd.DataFrame(rows, columns=columns)


def _value(row: Mapping[str, object] | Sequence[object], name: Name) -> object:
    """Return what a context has in a column: by name, or by position."""
    if isinstance(row, Mapping):
        return row.get(str(name))
    return row[name] if isinstance(name, int) and name < len(row) else None
