"""Classification data sets as environments: arms are classes, and the true class pays 1."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from bayesbandit.checks import Name, integer, same_rows
from bayesbandit.environments.base import Sample
from bayesbandit.environments.encoding import Labels, classes
from bayesbandit.tables.encoder import MAX_FEATURES, fitted
from bayesbandit.tables.fitting import warn_of

if TYPE_CHECKING:
    import pandas as pd

MANY_CLASSES = 200  # more classes get a warning


class Classification:
    """The rows of a data set in random order; the true class pays 1, the others 0 (section 3.2).

    The encoder is fitted to all rows, without labels: we assume that a bandit knows the scale of
    its contexts. Errors begin with the name of the data set.

    x: (n, c) array or DataFrame. Then: (n, d) contexts, as `encoder` makes them.
    y: (n,) labels of any type, none missing. `encoding.classes` explains the arms' names. Then:
        label, (n,) indices into arms.
    drop, keep: columns, as in `Encoder.fit`, which explains how columns are encoded.
    max_features: as in `Encoder.fit`.
    """

    def __init__(
        self,
        x: np.ndarray | pd.DataFrame,
        y: Labels,
        name: str,
        *,
        max_features: int = MAX_FEATURES,
        drop: Collection[Name] = (),
        keep: Collection[Name] = (),
    ) -> None:
        self.name = name
        try:
            same_rows(x=x, y=y)
            self.label, self.arms = classes(y)
            self.encoder, self.x, notes = fitted(x, drop=drop, keep=keep, max_features=max_features)
            if len(self.x) != len(self.label):
                raise ValueError(f"x has {len(self.x)} rows and y has {len(self.label)} labels")
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{name}: {error}") from error
        if (many := len(self.arms)) > MANY_CLASSES:
            notes.append(f"there are {many:,} classes, and so many arms: is the target a number?")
        warn_of(notes, name)

    def __repr__(self) -> str:
        return f"Classification({self.name!r})"

    @property
    def fingerprint(self) -> str:
        """Return a text with a hash of the data, which distinguishes sets of the same name."""
        import joblib

        return f"{self!r} with data {joblib.hash((self.x, self.label))[:12]}"

    @property
    def n_features(self) -> int:
        return self.x.shape[1]

    def sample(self, horizon: int | None, rng: np.random.Generator) -> Sample:
        """Return the first `horizon` rows in random order; all n rows if it is None or above n.

        mean and reward are the same array, because a row's class is certain.
        """
        T = None if horizon is None else integer(horizon, "horizon", least=1)
        rows = rng.permutation(len(self.x))[:T]
        reward = np.eye(len(self.arms))[self.label[rows]]
        return Sample(self.x[rows], reward, reward)
