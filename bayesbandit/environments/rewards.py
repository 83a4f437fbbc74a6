"""Tables with every arm's reward in every row, as environments."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import Name, arm_names, finite
from bayesbandit.environments.rows import Rows
from bayesbandit.tables.encoder import fitted
from bayesbandit.tables.fitting import warn_of
from bayesbandit.tables.inputs import named
from bayesbandit.tables.words import numbers

if TYPE_CHECKING:
    import pandas as pd


class KnownRewards(Rows):
    """The rows of a table in random order, with a column of rewards for each arm.

    rewards: the columns of rewards. Each has the name of its arm.
    drop, keep: columns, as in `Encoder.fit`, which encodes all other columns as contexts.
    Raise ValueError for a reward that is missing, infinite or not a number.
    """

    def __init__(
        self,
        df: pd.DataFrame,
        rewards: Sequence[Name],
        name: str = "rewards",
        *,
        drop: Collection[Name] = (),
        keep: Collection[Name] = (),
    ) -> None:
        import pandas as pd

        chosen = list(rewards)
        if len(chosen) < 2:
            raise ValueError(f"{name}: there must be two arms or more; got {chosen}")
        if not isinstance(df, pd.DataFrame):
            raise TypeError(
                f"{name}: the table must be a pandas DataFrame; got a {type(df).__name__}"
            )
        columns: list[Any] = df.columns.tolist()
        if absent := [column for column in chosen if columns.count(column) != 1]:
            raise ValueError(
                f"{name}: no column {absent[0]!r} of rewards; the columns are {named(columns)}"
            )
        self.name, self.arms = name, arm_names(chosen)
        try:
            each = [numbers(df[column], "reward") for column in chosen]
            for column, values in zip(chosen, each, strict=True):
                finite(values, f"column {column!r} of rewards")
            self.encoder, self.x, notes = fitted(df.drop(columns=chosen), drop=drop, keep=keep)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name}: {error}") from error
        self.paid = np.column_stack(each)
        warn_of(notes, name)

    def __repr__(self) -> str:
        return f"KnownRewards({self.name!r}, arms={list(self.arms)!r})"

    def rewards(self, rows: np.ndarray) -> np.ndarray:
        """Return the rewards (T, K) of the arms in these rows."""
        return self.paid[rows]
