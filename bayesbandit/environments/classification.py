"""Classification data sets as environments: arms are classes, and the true class pays 1."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from bayesbandit.checks import Name
from bayesbandit.environments.base import Sample
from bayesbandit.environments.encoding import Features, Labels, prepare
from bayesbandit.tables.encoder import MAX_FEATURES, Encoder


class Classification:
    """The rows of a data set in random order; the true class pays 1, the others 0 (section 3.2).

    x: (n, c) array or DataFrame.
    y: (n,) labels of any type, none missing. `encoding.classes` explains the arms' names.
    drop, keep: columns, as in `Encoder.fit`, which explains how columns are encoded.
    max_features: as in `Encoder.fit`.
    """

    def __init__(
        self,
        x: Features,
        y: Labels,
        name: str,
        *,
        max_features: int = MAX_FEATURES,
        drop: Collection[Name] = (),
        keep: Collection[Name] = (),
    ) -> None:
        self.name = name
        self.data = prepare(x, y, name, max_features, drop, keep)

    def __repr__(self) -> str:
        return f"Classification({self.name!r})"

    @property
    def fingerprint(self) -> str:
        """Return a text with a hash of the data, which distinguishes sets of the same name."""
        import joblib

        return f"{self!r} with data {joblib.hash((self.data.x, self.data.label))[:12]}"

    @property
    def encoder(self) -> Encoder:
        """Return the encoder that makes contexts from the columns; `summary()` lists them."""
        return self.data.encoder

    @property
    def arms(self) -> tuple[str | int, ...]:
        return self.data.arms

    @property
    def n_features(self) -> int:
        return self.data.x.shape[1]

    def sample(self, horizon: int | None, rng: np.random.Generator) -> Sample:
        """Return the first `horizon` rows in random order; all n rows if it is None or above n.

        mean and reward are the same array, because a row's class is certain.
        """
        return self.data.sample(horizon, rng)
