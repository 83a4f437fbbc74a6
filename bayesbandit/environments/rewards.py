"""Tables with every arm's reward in every row, as environments."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import Name, arm_names, finite, integer
from bayesbandit.environments.base import Sample
from bayesbandit.tables.encoder import fitted
from bayesbandit.tables.fitting import warn_of
from bayesbandit.tables.words import numbers

if TYPE_CHECKING:
    import pandas as pd


class KnownRewards:
    """The rows of a table in random order, with a column of rewards for each arm.

    rewards: the columns of rewards. Each has the name of its arm.
    costs: columns of costs, instead of rewards.
    drop, keep: columns, as in `Encoder.fit`, which encodes all other columns as contexts.
    Raise ValueError for a reward that is missing, infinite or not a number.
    """

    def __init__(
        self,
        df: pd.DataFrame,
        rewards: Sequence[Name] = (),
        name: str = "rewards",
        *,
        costs: Sequence[Name] = (),
        drop: Collection[Name] = (),
        keep: Collection[Name] = (),
    ) -> None:
        import pandas as pd

        if bool(rewards) == bool(costs):
            raise ValueError(f"{name}: name the columns of rewards, or those of costs")
        chosen: list[Name] = list(rewards or costs)
        if len(chosen) < 2:
            raise ValueError(f"{name}: there must be two arms or more; got {chosen}")
        if not isinstance(df, pd.DataFrame):
            raise TypeError(
                f"{name}: the table must be a pandas DataFrame; got a {type(df).__name__}"
            )
        columns: list[Any] = df.columns.tolist()
        if absent := [column for column in chosen if columns.count(column) != 1]:
            raise ValueError(
                f"{name}: no column {absent[0]!r} of rewards; the columns are "
                + ", ".join(map(repr, columns[:50]))
            )
        self.name, self.arms = name, arm_names(chosen)
        try:
            each = [numbers(df[column], "reward") for column in chosen]
            for column, values in zip(chosen, each, strict=True):
                finite(values, f"column {column!r} of rewards")
            self.encoder, self._x, notes = fitted(df.drop(columns=chosen), drop=drop, keep=keep)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name}: {error}") from error
        paid = np.column_stack(each)
        self._reward = -paid if costs else paid
        warn_of(notes, name)

    def __repr__(self) -> str:
        return f"KnownRewards({self.name!r}, arms={list(self.arms)!r})"

    @property
    def fingerprint(self) -> str:
        """Return a text with a hash of the data, which distinguishes tables of the same name."""
        import joblib

        return f"{self!r} with data {joblib.hash((self._x, self._reward))[:12]}"

    @property
    def n_features(self) -> int:
        return self._x.shape[1]

    def sample(self, horizon: int | None, rng: np.random.Generator) -> Sample:
        """Return the first `horizon` rows in random order; all n rows if it is None or above n."""
        T = None if horizon is None else integer(horizon, "horizon", least=1)
        rows = rng.permutation(len(self._x))[:T]
        reward = self._reward[rows]
        return Sample(self._x[rows], reward, reward)
