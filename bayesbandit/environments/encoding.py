"""A table made ready for a bandit: columns of any type as numbers, and labels as arms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import integer

if TYPE_CHECKING:
    import pandas as pd

type Features = np.ndarray | pd.DataFrame
type Labels = Sequence[Any] | np.ndarray | pd.Series

MAX_FEATURES = 100
MAX_LEVELS = 20  # one-hot columns that one column may become
STRAY = 0.1  # the share of words at most in a column that is taken to be meant as numbers
GROUPED = r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?"  # a number with thousands separators
FEW_CLASSES = 20  # that may be more than half as many as the rows
LARGEST_VALUE = 1e100  # of numbers whose variance float64 can hold
NUMBERS = {"integer", "floating", "mixed-integer-float", "decimal"}  # by pandas' infer_dtype
LEVELS = {"string", "bytes", "boolean", "categorical", "mixed", "mixed-integer", "empty"}
NO_VARIANCE = 1e-9  # of a principal component, relative to the first


@dataclass(frozen=True, eq=False)
class Prepared:
    """A data set made ready: x (n, d) float64, label (n,) an index into arms (K,)."""

    x: np.ndarray
    label: np.ndarray
    arms: tuple[str | int, ...]


def prepare(
    x: Features, y: Labels, name: str = "data", max_features: int = MAX_FEATURES
) -> Prepared:
    """Columns encoded and labels named, in one thread so that every process gets the same bits.

    Errors begin with the name of the data set.
    """
    from threadpoolctl import threadpool_limits

    try:
        label, arms = classes(y)
        frame = _frame(x)
        if len(frame) != len(label):
            raise ValueError(f"x has {len(frame)} rows and y has {len(label)} labels")
        with threadpool_limits(limits=1):
            return Prepared(encode(frame, max_features), label, arms)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from error
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def classes(y: Labels) -> tuple[np.ndarray, tuple[str | int, ...]]:
    """The index of each label's class, (n,), and the sorted names of the classes, (K,).

    Whole numbers stay ints. All other labels go by their text, floats in the order of their
    values. Labels that read the same, such as 1 and "1" in one column, are one class.
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
    names = [int(level) if kind == "integer" else _text(level) for level in levels]
    if kind in ("floating", "mixed-integer-float"):
        arms = tuple(names[k] for k in np.argsort(levels))
    else:
        arms = tuple(sorted(set(names)))
    if len(arms) < 2:
        raise ValueError(f"there must be two classes or more; every label is {arms[0]!r}")
    if len(arms) > max(FEW_CLASSES, len(labels) / 2):
        raise ValueError(
            f"{len(labels)} rows have {len(arms)} different labels, which looks like a measurement "
            "or an identifier rather than a class; cut it into classes first"
        )
    index = {arm: k for k, arm in enumerate(arms)}
    return np.array([index[name] for name in names])[codes], arms


def encode(x: Features, max_features: int = MAX_FEATURES) -> np.ndarray:
    """Columns of any type as float64 features (n, d), d ≤ max_features: numbers, then levels.

    - Numbers: a missing value takes the median; then mean 0 and standard deviation 1. A column of
      text is one of numbers where every value is a number and more than a tenth of them have
      thousands separators in the right places, as 1,234.5 has; where nearly all are numbers, or
      were with decimal commas, the others are named in an error.
    - Text, categories and booleans: a 0/1 column for each level, a missing value being a level
      like any other. Levels seen once are pooled, and where there would be more than 20 columns
      the rarest are too; of a pair of columns the second is kept.
    - Dropped: columns that never vary, have no value at all, or are text that never repeats (an
      identifier).
    - More than max_features columns become that many leading principal components, or fewer where
      the rest have no variance. They keep their relative sizes; one common factor gives them mean
      square 1, so that contexts are as long as those of standardised columns.

    All rows are used and no labels are: a bandit is taken to know the scale of its contexts.
    """
    import pandas as pd
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    integer(max_features, "max_features", least=1)
    numbers, levels = _split(_frame(x))
    p, q = numbers.shape[1], len(levels)
    if p + q == 0:
        raise ValueError("no column tells the rows apart: each is constant, empty or an identifier")
    standardise = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    one_hot = OneHotEncoder(
        drop="if_binary", min_frequency=2, max_categories=MAX_LEVELS, sparse_output=False
    )
    columns = ColumnTransformer(
        [("numbers", standardise, list(range(p))), ("levels", one_hot, list(range(p, p + q)))]
    )
    typed = pd.concat([pd.DataFrame(numbers), *levels], axis=1)
    features = columns.fit_transform(typed.set_axis(range(p + q), axis=1))
    return features if features.shape[1] <= max_features else _components(features, max_features)


def _components(features: np.ndarray, k: int) -> np.ndarray:
    """The leading k principal components (n, ≤ k), by an exact solver, with mean square 1."""
    from sklearn.decomposition import PCA

    n, p = features.shape
    pca = PCA(min(k, n, p), svd_solver="covariance_eigh" if n > p else "full")
    scores = pca.fit_transform(features)
    variance = pca.explained_variance_
    scores = scores[:, variance > NO_VARIANCE * variance[0]]
    return np.ascontiguousarray(scores / np.sqrt(np.mean(scores**2)))


def _frame(x: Features) -> pd.DataFrame:
    """x as a DataFrame, its shape checked."""
    import pandas as pd

    if hasattr(x, "toarray"):
        raise TypeError(
            "x is a sparse matrix, which would lose its zeros to scaling; pass x.toarray()"
        )
    if not isinstance(x, pd.DataFrame):
        x = np.asarray(x) if hasattr(x, "__array__") else np.asarray(x, dtype=object)
    if x.ndim != 2 or 0 in x.shape:
        raise ValueError(f"x must have rows and columns; got shape {x.shape}")
    return pd.DataFrame(x).reset_index(drop=True)


def _split(frame: pd.DataFrame) -> tuple[np.ndarray, list[pd.Series]]:
    """The columns that vary: numbers (n, p) as float64, and the others as text."""
    import pandas as pd

    frame, numeric, levels = frame.copy(deep=False), [], []
    for j, name in enumerate(frame.columns):
        column = frame.iloc[:, j]
        kind = pd.api.types.infer_dtype(column)
        if kind in NUMBERS:
            numeric.append(j)
        elif kind in LEVELS:
            text = column.astype(object).map(_text, na_action="ignore")
            if kind in ("string", "mixed", "mixed-integer"):
                number = _numbers(name, text)
                if number is not None:
                    frame.isetitem(j, number.to_numpy())
                    numeric.append(j)
                    continue
            counts = text.value_counts(dropna=False)
            if len(counts) > 1 and counts.iloc[0] > 1:
                levels.append(text)
        else:
            raise TypeError(
                f"column {name!r} holds {kind} ({column.dtype}); allowed are numbers, text, "
                "categories and booleans"
            )
    numbers = frame.iloc[:, numeric].to_numpy(dtype=np.float64, na_value=np.nan)
    low, high = np.fmin.reduce(numbers), np.fmax.reduce(numbers)  # NaN only where all are
    beyond = np.flatnonzero((low < -LARGEST_VALUE) | (high > LARGEST_VALUE))
    if len(beyond):
        named = ", ".join(repr(frame.columns[numeric[j]]) for j in beyond[:5])
        raise ValueError(f"values infinite or beyond ±{LARGEST_VALUE:g} in column {named}")
    return numbers[:, low < high], levels


def _numbers(name: Any, text: pd.Series) -> pd.Series | None:
    """A column of text as the numbers that all of it is, with thousands separators; None of one of
    words. An error of one of numbers which a few words, or decimal commas, keep from being read."""
    import pandas as pd

    known = text.dropna().astype(str)
    plain = pd.to_numeric(known, errors="coerce")
    grouped = pd.to_numeric(known.where(known.str.fullmatch(GROUPED)).str.replace(",", ""))
    commas = known.str.replace(".", "", regex=False).str.replace(",", ".", n=1, regex=False)
    separated = grouped.notna().sum() > STRAY * len(known)
    usual = plain.fillna(grouped) if separated else plain
    for number in usual, usual.fillna(pd.to_numeric(commas, errors="coerce")):
        odd = known[usual.isna()]
        meant = number.isna().sum() <= STRAY * len(known) and number.nunique() > MAX_LEVELS
        if meant and len(odd):
            at = np.flatnonzero(np.asarray(text.isin(odd)))[:3].tolist()
            shown = ", ".join(
                f"{value!r} in row {row + 1}" for row, value in zip(at, odd.head(3), strict=True)
            )
            more = f" and {len(odd) - 3} more" if len(odd) > 3 else ""
            raise ValueError(
                f"column {name!r} has numbers, but for {shown}{more}: mend them, or leave them "
                "empty where they are missing"
            )
    return usual.reindex(text.index) if separated and usual.notna().all() else None


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
