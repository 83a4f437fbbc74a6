"""Fits of a table's columns by scikit-learn's transformers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import Name
from bayesbandit.tables.columns import ZEROS, Column, Levels, Number
from bayesbandit.tables.recognition import Recognised
from bayesbandit.tables.words import MAX_LEVELS

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OneHotEncoder

NO_VARIANCE = 1e-9  # of a principal component, relative to the first


@dataclass(frozen=True, eq=False)
class Components:
    """Principal components of standardised columns: vectors (k, p), center (p,) and size.

    Scores are divided by `size`, so that their mean square is 1.
    """

    vectors: np.ndarray
    center: np.ndarray
    size: float

    def scores(self, features: np.ndarray) -> np.ndarray:
        """Return the scores (n, k) of features (n, p)."""
        scores = features @ self.vectors.T - self.center @ self.vectors.T
        return np.ascontiguousarray(scores / self.size)


class NoFeatures(ValueError):
    """An error: no column of a table can be used."""


def learn(
    frame: pd.DataFrame, found: Recognised, max_features: int
) -> tuple[tuple[Column, ...], Components | None, np.ndarray]:
    """Return columns in the frame's order, components or None, and the features (n, d) of the
    frame.

    There are components if there are more than max_features features. Features of numbers come
    first, then those of levels.
    """
    import pandas as pd
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    p, q = len(found.numbers), len(found.levels)
    if p + q == 0:
        raise NoFeatures(
            "no column tells the rows apart: each is constant, empty, an identifier or a date "
            f"({'; '.join(f'{left.name!r}: {left.why}' for left in found.left.values())})"
        )
    values = [values for _, values in found.numbers.values()]
    numbers = np.column_stack(values) if p else np.empty((len(frame), 0))
    standardise = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    one_hot = OneHotEncoder(
        drop="if_binary", min_frequency=2, max_categories=MAX_LEVELS, sparse_output=False
    )
    transformer = ColumnTransformer(
        [("numbers", standardise, list(range(p))), ("levels", one_hot, list(range(p, p + q)))]
    )
    typed = pd.concat([pd.DataFrame(numbers), *found.levels.values()], axis=1)
    features = transformer.fit_transform(typed.set_axis(range(p + q), axis=1))
    known: dict[Name, Column] = {**found.left}
    if p:
        known |= _numbers(found, transformer.named_transformers_["numbers"])
    if q:
        known |= _levels(list(found.levels), transformer.named_transformers_["levels"])
    columns = tuple(known[name] for name in frame.columns)
    if features.shape[1] <= max_features:
        return columns, None, features
    return columns, *_components(features, max_features)


def _numbers(found: Recognised, fitted: Pipeline) -> dict[Name, Number]:
    """Return columns with the numbers of a fitted pipeline."""
    imputer, scaler = fitted[0], fitted[1]
    learned = zip(
        found.numbers.values(), imputer.statistics_, scaler.mean_, scaler.scale_, strict=True
    )
    return {
        column.name: replace(column, median=float(median), mean=float(mean), scale=float(scale))
        for (column, _), median, mean, scale in learned
    }


def _levels(names: Sequence[Name], one_hot: OneHotEncoder) -> dict[Name, Levels]:
    """Return columns with the levels of a fitted `OneHotEncoder`, by what it makes of each
    level."""
    import pandas as pd

    categories = one_hot.categories_
    longest = max(map(len, categories))
    padded = [[*found, *[found[0]] * (longest - len(found))] for found in categories]
    shown = one_hot.transform(pd.DataFrame(dict(enumerate(padded)), dtype=object))
    levels, start = {}, 0
    dropped = one_hot.drop_idx_
    for j, (name, found) in enumerate(zip(names, categories, strict=True)):
        rare = one_hot.infrequent_categories_[j]
        rare = [] if rare is None else list(rare)
        width = len(found) - len(rare) + bool(rare)
        width -= dropped is not None and dropped[j] is not None
        block = shown[: len(found), start : start + width]
        codes = np.where(block.any(axis=1), block.argmax(axis=1), ZEROS).tolist()
        levels[name] = _told_apart(name, list(found), codes, rare)
        start += width
    assert start == shown.shape[1]
    return levels


def _told_apart(name: Name, found: list[Any], codes: list[int], rare: list[Any]) -> Levels:
    pooled = None
    if rare:
        pooled = next(c for v, c in zip(found, codes, strict=True) if v is rare[0] or v == rare[0])
    known = [
        (level, code)
        for level, code in zip(found, codes, strict=True)
        if isinstance(level, str) and code != pooled
    ]
    missing = [code for level, code in zip(found, codes, strict=True) if not isinstance(level, str)]
    return Levels(
        name,
        tuple(level for level, _ in known),
        tuple(code for _, code in known),
        missing[0] if missing else None,
        pooled,
    )


def _components(features: np.ndarray, k: int) -> tuple[Components, np.ndarray]:
    """Return the leading k principal components, by an exact solver, and the scores (n, ≤ k)."""
    from sklearn.decomposition import PCA

    n, p = features.shape
    pca = PCA(min(k, n, p), svd_solver="covariance_eigh" if n > p else "full")
    scores = pca.fit_transform(features)
    variance = pca.explained_variance_
    there = variance > NO_VARIANCE * variance[0]
    scores = scores[:, there]
    size = np.sqrt(np.mean(scores**2))
    components = Components(pca.components_[there], pca.mean_, float(size))
    return components, np.ascontiguousarray(scores / size)
