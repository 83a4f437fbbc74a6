"""Preparing a table for a bandit: columns of any type become numbers, and labels become arms."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import Name, integer, same_rows
from bayesbandit.environments.base import Sample
from bayesbandit.tables.encoder import MAX_FEATURES, Encoder, fitted
from bayesbandit.tables.fitting import warn_of
from bayesbandit.tables.words import text_of

if TYPE_CHECKING:
    import pandas as pd

type Features = np.ndarray | pd.DataFrame
type Labels = Sequence[Any] | np.ndarray | pd.Series

MANY_CLASSES = 200  # more classes get a warning
FEW_CLASSES = 20  # more classes must be at most half as many as the rows


@dataclass(frozen=True, eq=False)
class Prepared:
    """A prepared data set.

    x: (n, d) float64. label: (n,) indices into arms. arms: the K classes' names.
    encoder: the encoder of the columns.
    """

    x: np.ndarray
    label: np.ndarray
    arms: tuple[str | int, ...]
    encoder: Encoder

    def sample(self, horizon: int | None, rng: np.random.Generator) -> Sample:
        """Return the first `horizon` rows in random order, with the reward 1 of the true class."""
        T = None if horizon is None else integer(horizon, "horizon", least=1)
        rows = rng.permutation(len(self.x))[:T]
        reward = np.eye(len(self.arms))[self.label[rows]]
        return Sample(self.x[rows], reward, reward)


def prepare(
    x: Features,
    y: Labels,
    name: str = "data",
    max_features: int = MAX_FEATURES,
    drop: Collection[Name] = (),
    keep: Collection[Name] = (),
) -> Prepared:
    """Return the data with encoded columns (`Encoder.fit`) and labels as arms (`classes`).

    The encoder is fitted to all rows, without labels: we assume that a bandit knows the scale of
    its contexts. Errors begin with the name of the data set.
    """
    try:
        same_rows(x=x, y=y)
        label, arms = classes(y)
        encoder, features, notes = fitted(x, drop=drop, keep=keep, max_features=max_features)
        if len(features) != len(label):
            raise ValueError(f"x has {len(features)} rows and y has {len(label)} labels")
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name}: {error}") from error
    if len(arms) > MANY_CLASSES:
        notes.append(f"there are {len(arms):,} classes, and so many arms: is the target a number?")
    warn_of(notes, name)
    return Prepared(features, label, arms, encoder)


def classes(y: Labels) -> tuple[np.ndarray, tuple[str | int, ...]]:
    """Return the index of each label's class, (n,), and the names of the classes, as `levels_of`.

    Raise ValueError for labels of one class, or of nearly as many as there are rows.
    """
    index, arms = levels_of(y)
    if len(arms) < 2:
        raise ValueError(f"there must be two classes or more; every label is {arms[0]!r}")
    if len(arms) > max(FEW_CLASSES, len(index) / 2):
        raise ValueError(
            f"{len(index)} rows have {len(arms)} different labels, which looks like a measurement "
            "or an identifier rather than a class; cut it into classes first"
        )
    return index, arms


def levels_of(y: Labels) -> tuple[np.ndarray, tuple[str | int, ...]]:
    """Return the index of each label's level, (n,), and the sorted names of the levels, (K,).

    Whole numbers stay ints. All other labels become texts; floats are sorted by value. Labels with
    the same text, such as 1 and "1" in one column, are one level.
    """
    import pandas as pd

    if np.ndim(y) != 1:
        raise ValueError(f"y must be one column of labels; got shape {np.shape(y)}")
    labels = pd.Series(y)
    if labels.empty:
        raise ValueError("the data set is empty")
    if missing := int(labels.isna().sum()):
        raise ValueError(f"{missing} of the {len(labels)} labels are missing; drop those rows")
    codes, levels = pd.factorize(np.asarray(labels))
    kind = pd.api.types.infer_dtype(levels)
    names = [int(level) if kind == "integer" else text_of(level) for level in levels]
    by_value = kind in ("floating", "mixed-integer-float")
    arms = tuple(sorted(set(names), key=float if by_value else None))
    index = {arm: k for k, arm in enumerate(arms)}
    return np.array([index[name] for name in names])[codes], arms
