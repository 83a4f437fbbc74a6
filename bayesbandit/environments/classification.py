"""Classification data sets as environments: arms are classes, and the true class pays 1."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cached_property, lru_cache

import numpy as np

from bayesbandit.checks import Name, integer
from bayesbandit.environments.base import Sample
from bayesbandit.environments.encoding import Features, Labels, Prepared, prepare
from bayesbandit.tables.encoder import MAX_FEATURES, Encoder


class Classification:
    """The rows of a data set in random order; the true class pays 1, the others 0 (section 3.2).

    x: (n, c) array or DataFrame.
    y: (n,) labels of any type, none missing. `encoding.classes` explains the arms' names.
    drop, keep: columns, as in `Encoder.fit`, which explains how columns are encoded.
    max_features: as in `Encoder.fit`.
    The data are prepared, and errors raised, at once. `Classification.lazy` delays both until the
    first use.
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
        self._max_features = integer(max_features, "max_features", least=1)
        self._load: Callable[[], tuple[Features, Labels]] | None = None
        self._prepared = prepare(x, y, name, max_features, drop, keep)

    @classmethod
    def lazy(
        cls,
        load: Callable[[], tuple[Features, Labels]],
        name: str,
        *,
        max_features: int = MAX_FEATURES,
    ) -> Classification:
        """Return the data set that `load()` returns as (x, y), loaded and prepared when first used.

        A process keeps only the lazy data set that it used last. A pickle contains `load`, not the
        data, so `load` must be hashable and, for several processes, picklable.
        """
        if not callable(load):
            raise TypeError(f"load must be a function returning (x, y); got {load!r}")
        hash(load)
        environment = cls.__new__(cls)
        environment.name = name
        environment._max_features = integer(max_features, "max_features", least=1)
        environment._load = load
        return environment

    def __repr__(self) -> str:
        return f"Classification({self.name!r})"

    @property
    def fingerprint(self) -> str:
        """Return a text that distinguishes this data set from others of the same name.

        It has a hash of the data, or a lazy data set's `load`.
        """
        if self._load is not None:
            return f"{self!r} by {self._load!r}"
        import joblib

        return f"{self!r} with data {joblib.hash((self._prepared.x, self._prepared.label))[:12]}"

    @property
    def data(self) -> Prepared:
        """Return the prepared data; a lazy data set is loaded first."""
        if self._load is None:
            return self._prepared
        return _last(self._load, self.name, self._max_features)

    @property
    def is_lazy(self) -> bool:
        """Return whether the data are loaded when they are first used."""
        return self._load is not None

    @property
    def encoder(self) -> Encoder:
        """Return the encoder that makes contexts from the columns; `summary()` lists them."""
        return self.data.encoder

    @cached_property
    def _shape(self) -> tuple[tuple[str | int, ...], int]:
        data = self.data
        return data.arms, data.x.shape[1]

    @property
    def arms(self) -> tuple[str | int, ...]:
        return self._shape[0]

    @property
    def n_features(self) -> int:
        return self._shape[1]

    def sample(self, horizon: int | None, rng: np.random.Generator) -> Sample:
        """Return the first `horizon` rows in random order; all n rows if it is None or above n.

        mean and reward are the same array, because a row's class is certain.
        """
        data = self.data
        T = None if horizon is None else integer(horizon, "horizon", least=1)
        rows = rng.permutation(len(data.x))[:T]
        reward = np.eye(len(data.arms))[data.label[rows]]
        return Sample(data.x[rows], reward, reward)


@lru_cache(maxsize=1)
def _last(load: Callable[[], tuple[Features, Labels]], name: str, max_features: int) -> Prepared:
    return prepare(*load(), name, max_features)
