"""Classification data sets as environments: arms are classes, and the true class pays 1."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from bayesbandit.checks import Name, Table, same_rows
from bayesbandit.environments.encoding import Labels, classes
from bayesbandit.environments.rows import Rows
from bayesbandit.tables.encoder import MAX_FEATURES, fitted
from bayesbandit.tables.fitting import warn_of

if TYPE_CHECKING:
    import pandas as pd

MANY_CLASSES = 200  # more classes get a warning


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
        x: np.ndarray | pd.DataFrame,
        y: Labels,
        name: str,
        *,
        max_features: int = MAX_FEATURES,
        drop: Collection[Name] = (),
        keep: Collection[Name] = (),
    ) -> None:
        import pandas as pd

        self.name = name
        try:
            same_rows(x=x, y=y)
            self.paid, self.arms = classes(y)
            if not isinstance(x, Table):
                if np.ndim(x) != 2:
                    raise ValueError(f"x must have rows and columns; got shape {np.shape(x)}")
                x = pd.DataFrame(x).add_prefix("x")
            self.encoder, self.x, notes = fitted(x, drop=drop, keep=keep, max_features=max_features)
            if len(self.x) != len(self.paid):
                raise ValueError(f"x has {len(self.x)} rows and y has {len(self.paid)} labels")
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{name}: {error}") from error
        if (many := len(self.arms)) > MANY_CLASSES:
            notes.append(f"there are {many:,} classes, and so many arms: is the target a number?")
        warn_of(notes, name)

    def __repr__(self) -> str:
        return f"Classification({self.name!r})"

    @property
    def label(self) -> np.ndarray:
        """The class of each row (n,), as an index into arms."""
        return self.paid

    def rewards(self, rows: np.ndarray) -> np.ndarray:
        """Return the rewards (T, K) of the arms in these rows."""
        return np.eye(len(self.arms))[self.paid[rows]]
