"""What a log's decisions show for the report: a row of a table for each, and their contexts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pandas as pd

from bayesbandit.checks import Name
from bayesbandit.kernels.row_layout import FLOOR, TAIL
from bayesbandit.store.reading import OPEN_STATE, Chunk, joined_rewards, means_and_sds
from bayesbandit.store.records import Stored
from bayesbandit.store.settings import Beginning
from bayesbandit.tables.encoder import Encoder

FLOOR_FACTOR = 1.001  # a probability up to this factor above the minimum is at the floor
REFERENCE_CONTEXTS = 1000  # contexts with which later ones are compared
# a standard deviation below this share of the largest value is a rounding error
RELATIVE_ROUNDING = 1e-12
OTHER_ARMS = "all others"
DAYS_PER_YEAR = pd.Timedelta(days=366)


class Watch:
    """The decisions of a log, added part by part."""

    def __init__(self, begun: Beginning) -> None:
        self.how = begun.settings
        encoder = begun.encoder
        numbers = [f"x{j}" for j in range(begun.n_features)]
        self.names = Encoder.from_dict(encoder).features if encoder else numbers
        self.parts: list[pd.DataFrame] = []
        self.contexts: list[np.ndarray] = []

    def add(self, chunk: Chunk) -> None:
        """Add the next decisions; erased contexts are left out."""
        rows = chunk.decisions
        _, came, status = joined_rewards(chunk, self.how)
        part = {
            "decided": np.array([row.decided_at for row in rows]).view("datetime64[us]"),
            "rewarded": np.array(came, dtype=np.int64).view("datetime64[us]"),  # NaT: never
            "arm": pd.Series([row.arm for row in rows], dtype=object),
            "status": status,
            "floor": _at_floor(rows),
        }
        self.parts.append(pd.DataFrame(part))
        d = len(self.names)
        contexts = [
            (row.row[:d] if row.x is None else row.x).reshape(-1, d)
            for row in rows
            if d and not row.erased
        ]
        if contexts:
            self.contexts.append(np.concatenate(contexts))  # one array is less than many

    @cached_property
    def rows(self) -> pd.DataFrame:
        """A row for each decision: when it was decided and rewarded, its arm and status, and
        whether an available arm had the policy's minimum probability."""
        whole = pd.concat(self.parts, ignore_index=True)
        day = whole["decided"].dt.floor("D")
        return whole.assign(
            day=day,
            week=monday(whole["decided"]),
            lag=(whole["rewarded"] - whole["decided"]).dt.total_seconds() / 3600.0,
            is_open=whole["status"] == OPEN_STATE,
        )

    def most_taken(self, number: int) -> list[Name]:
        """Return the `number` arms that were taken most, the most frequent first."""
        return self.rows["arm"].value_counts(sort=True).index[:number].tolist()

    def by_day(self) -> pd.DataFrame:
        """Return decisions by their day, and rewards by the day on which they were observed."""
        rows = self.rows
        rewarded = rows["rewarded"].dropna().dt.floor("D")
        right = rewarded.between(rows["day"].min(), rows["day"].max() + DAYS_PER_YEAR)
        counts = {
            "decisions": rows["day"].value_counts(),
            "rewards": rewarded[right].value_counts(),  # clocks may be wrong
        }
        return pd.DataFrame(counts).sort_index().asfreq("D").fillna(0.0)

    def shares(self, most: Sequence[Name]) -> pd.DataFrame:
        """Return the arms' shares by day, `most` first; the others are one."""
        names = {arm: str(arm) for arm in most}
        shown = self.rows["arm"].map(lambda arm: names.get(arm, OTHER_ARMS))
        table = pd.crosstab(self.rows["day"], shown, normalize="index")
        order = dict.fromkeys([*names.values(), OTHER_ARMS])
        return table[[name for name in order if name in table]]

    def by_week(self) -> pd.DataFrame:
        """Return by the Monday of each week decisions, rewards, open decisions, and the share of
        decisions at the policy's minimum probability."""
        return self.rows.groupby("week").agg(
            decisions=("floor", "size"),
            rewards=("lag", "count"),
            open=("is_open", "sum"),
            at_floor=("floor", "mean"),
        )

    def closed(self) -> pd.DataFrame:
        """Return how many decisions are open or were closed in which way, and how old they are."""
        rows = self.rows
        found = rows.groupby("status")["decided"].agg(["size", "min"])
        table = {
            "decisions": found["size"],
            "oldest_hours": (rows["decided"].max() - found["min"]).dt.total_seconds() / 3600.0,
            "share": found["size"] / len(rows),
        }
        return pd.DataFrame(table).rename_axis("status").reset_index()

    def drift(self) -> pd.DataFrame:
        """Return how the numbers of contexts differ from those of the first 1,000 contexts.

        If arms have features, each arm's are a context. mean_shift, sd_ratio: mean and standard
        deviation in units of the first ones; 0 and 1 where nothing has changed.
        """
        if not self.contexts:
            return pd.DataFrame()
        x = np.concatenate(self.contexts)
        first = x[:REFERENCE_CONTEXTS]
        sd = first.std(axis=0)
        constant = sd <= RELATIVE_ROUNDING * np.abs(first).max(axis=0)
        z = (x - first.mean(axis=0)) / np.where(constant, 1.0, sd)
        same = constant & ((z * z).mean(axis=0) <= RELATIVE_ROUNDING)
        return pd.DataFrame(
            {
                "column": self.names,
                "contexts": len(x),
                "mean_shift": z.mean(axis=0),
                "sd_ratio": np.where(same, 1.0, z.std(axis=0)),
            }
        )


def monday(at: pd.Series) -> pd.Series:
    """Return the Monday on which the week of each time begins."""
    day = at.dt.floor("D")
    return day - pd.to_timedelta(day.dt.day_of_week, unit="D")


def _at_floor(rows: Sequence[Stored]) -> np.ndarray:
    """Return a mask (n,) of decisions in which an arm had the policy's minimum probability."""
    found = np.zeros(len(rows), dtype=np.bool_)
    for which, _, means, _ in means_and_sds(rows):
        floor = np.array([rows[i].row[FLOOR - TAIL] for i in which])
        p = np.where(means > -np.inf, np.stack([rows[i].probabilities for i in which]), np.inf)
        found[which] = (floor > 0) & (p.min(axis=1) <= floor * FLOOR_FACTOR)
    return found
