"""Tables as environments, whose rows are played in random order: of classes, or of rewards."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import Array, Name, Table, arm_names, finite, integer, same_rows
from bayesbandit.environments.base import Sample
from bayesbandit.environments.encoding import Labels, classes
from bayesbandit.tables.encoder import MAX_FEATURES, fitted
from bayesbandit.tables.fitting import warn_of
from bayesbandit.tables.inputs import frame_of, named
from bayesbandit.tables.words import numbers

if TYPE_CHECKING:
    import pandas as pd

MANY_CLASSES = 200  # more classes get a warning


class Rows:
    """The rows of a table, in which the reward of every arm is certain.

    x: contexts (n, d). paid: the arm that pays 1 in a row (n,), or the rewards (n, K).
    """

    arms: tuple[Name, ...]
    x: Array
    paid: Array

    def rewards(self, rows: Array) -> Array:
        """Return the rewards (T, K) of the arms in these rows (T,)."""
        paid = self.paid[rows]
        return paid if paid.ndim == 2 else np.eye(len(self.arms))[paid]

    @property
    def fingerprint(self) -> str:
        """Return a text with a hash of the data, which distinguishes tables of the same name."""
        import joblib

        return f"{self!r} with data {joblib.hash((self.x, self.paid))[:12]}"

    @property
    def n_features(self) -> int:
        return self.x.shape[1]

    def sample(self, horizon: int | None, rng: np.random.Generator) -> Sample:
        """Return the first `horizon` rows in random order; all n rows if it is None or above n.

        mean and reward are the same array.
        """
        T = None if horizon is None else integer(horizon, "horizon", least=1)
        rows = rng.permutation(len(self.x))[:T]
        reward = self.rewards(rows)
        return Sample(self.x[rows], reward, reward)


class Classification(Rows):
    """The rows of a data set in random order; the true class pays 1, the others 0 (section 3.2).

    The encoder is fitted to all rows, without labels: we assume that a bandit knows the scale of
    its contexts. Errors begin with the name of the data set.

    x: (n, c) DataFrame, or an array, whose columns are called x0, x1, …. Then: (n, d) contexts, as
        `encoder` makes them.
    y: (n,) labels of any type, none missing. `encoding.classes` explains the arms' names. Then:
        label, (n,) indices into arms.
    drop, keep: columns, as in `Encoder.fit`, which explains how columns are encoded.
    max_features: as in `Encoder.fit`.
    """

    def __init__(
        self,
        x: Array | pd.DataFrame,
        y: Labels,
        name: str,
        *,
        max_features: int = MAX_FEATURES,
        drop: Collection[Name] = (),
        keep: Collection[Name] = (),
    ) -> None:
        import pandas as pd

        self.name = name
        with errors_of(name):
            same_rows(x=x, y=y)
            self.paid, self.arms = classes(y)
            if not isinstance(x, Table):
                if np.ndim(x) != 2:
                    raise ValueError(f"x must have rows and columns; got shape {np.shape(x)}")
                x = pd.DataFrame(x).add_prefix("x")
            self.encoder, self.x, notes = fitted(x, drop=drop, keep=keep, max_features=max_features)
            if len(self.x) != len(self.paid):
                raise ValueError(f"x has {len(self.x)} rows and y has {len(self.paid)} labels")
        if (many := len(self.arms)) > MANY_CLASSES:
            notes.append(f"there are {many:,} classes, and so many arms: is the target a number?")
        warn_of(notes, name)

    def __repr__(self) -> str:
        return f"Classification({self.name!r})"

    @property
    def label(self) -> Array:
        """The class of each row (n,), as an index into arms."""
        return self.paid


class KnownRewards(Rows):
    """The rows of a table in random order, with a column of rewards for each arm.

    df: a DataFrame (pandas or Polars). rewards: the columns of rewards, two or more. Each has the
    name of its arm. name: how errors and tables call the data.
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
        self.name = name
        with errors_of(name):
            self.arms = arm_names(rewards)
            if len(self.arms) < 2:
                raise ValueError(f"there must be two arms or more; got {[*self.arms]}")
            rest, paid = apart(df, rewards)
            each = [numbers(paid[column], "reward") for column in rewards]
            for column, values in zip(rewards, each, strict=True):
                finite(values, f"column {column!r} of rewards")
            self.encoder, self.x, notes = fitted(rest, drop=drop, keep=keep)
        self.paid = np.column_stack(each)
        warn_of(notes, name)

    def __repr__(self) -> str:
        return f"KnownRewards({self.name!r}, arms={list(self.arms)!r})"


@contextmanager
def errors_of(name: str) -> Iterator[None]:
    """Let errors begin with the name of a data set."""
    try:
        yield
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name}: {error}") from error


def apart(df: object, columns: Sequence[Any]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a table without some columns, and these columns."""
    table = frame_of(df)
    if table is None:
        raise TypeError(f"the table must be a DataFrame; got {type(df).__name__}")
    names: list[Any] = table.columns.tolist()
    if absent := [column for column in columns if names.count(column) != 1]:
        raise ValueError(f"no single column {absent[0]!r}; the columns are {named(names)}")
    chosen = list(columns)
    return table.drop(columns=chosen), table[chosen]
