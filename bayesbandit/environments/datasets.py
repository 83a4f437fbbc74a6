"""Real data sets as environments: scikit-learn's, a DataFrame, a file, OpenML."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bayesbandit.checks import PACKAGE_FOLDER, Name, Sparse, one_of
from bayesbandit.environments.rows import Classification, apart, errors_of
from bayesbandit.tables.encoder import MAX_FEATURES
from bayesbandit.tables.files import read, stem_of

if TYPE_CHECKING:
    import pandas as pd

BUNDLED = ("iris", "wine", "breast_cancer", "digits")


def bundled(name: str) -> Classification:
    """Return one of scikit-learn's data sets, with scikit-learn's names for the classes."""
    one_of(name, "a bundled data set", BUNDLED)
    from sklearn import datasets

    loaded = vars(datasets)[f"load_{name}"](as_frame=True)
    return Classification(loaded.data, np.asarray(loaded.target_names)[loaded.target], name)


def from_frame(
    df: pd.DataFrame,
    target: str,
    name: str | None = None,
    *,
    drop: Collection[Name] = (),
    keep: Collection[Name] = (),
    max_features: int = MAX_FEATURES,
) -> Classification:
    """Return a data set from a table. Rows without a class are dropped with a warning.

    target: the column of the class.
    name: the data set's name; None: the target's.
    drop, keep: columns to leave out, and columns to use although they look like dates or
    identifiers (`Encoder.fit`).
    max_features: the largest number of features.
    """
    name = str(target) if name is None else name
    table = split(df, target, name)
    return Classification(*table, name, drop=drop, keep=keep, max_features=max_features)


def from_csv(
    path: str | Path,
    target: str,
    name: str | None = None,
    *,
    drop: Collection[Name] = (),
    keep: Collection[Name] = (),
    max_features: int = MAX_FEATURES,
    sep: str | None = None,
    decimal: str | None = None,
    dates: str | None = None,
) -> Classification:
    """Return a data set from a CSV file with a header, from JSON lines or from a Parquet file.

    The file may be compressed, as mine.csv.gz. In the target, "NA" and "None" are classes.

    name: None: the file's name. target, drop, keep, max_features: as in `from_frame`.
    sep: the separator of a CSV file. None: a comma; a tab for .tsv.
    decimal: its decimal mark, "." or ",". None: ".".
    dates: the format of its dates, such as "%d/%m/%Y". Dates as 2026-11-22 need none.
    """
    name = stem_of(path) if name is None else name
    table = read(path, sep=sep, decimal=decimal, dates=dates, text=[target])
    return from_frame(table, target, name, drop=drop, keep=keep, max_features=max_features)


def openml(
    name_or_id: str | int, *, drop: Collection[Name] = (), keep: Collection[Name] = ()
) -> Classification:
    """Return a data set of openml.org by name (its oldest active version) or by id.

    scikit-learn caches the download. The class is OpenML's default target. A data set found by id
    (an int, or a string of digits) has the name "name (id)", because versions share a name.
    drop, keep: as in `from_frame`.
    """
    from sklearn.datasets import fetch_openml

    by_name = not str(name_or_id).isdecimal()
    key = {"name": name_or_id} if by_name else {"data_id": int(name_or_id)}
    what = f"OpenML data set {name_or_id!r}"
    try:
        loaded = fetch_openml(**key, as_frame="auto")
    except (OSError, HTTPException) as error:
        raise ConnectionError(f"{what} could not be fetched: {error}") from error
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from error
    if np.ndim(loaded.target) != 1:
        raise ValueError(f"{what} does not have one target column; use from_frame")
    name = str(name_or_id) if by_name else f"{loaded.details['name']} ({name_or_id})"
    x = loaded.data.toarray() if isinstance(loaded.data, Sparse) else loaded.data
    return Classification(*labelled(x, loaded.target, name), name, drop=drop, keep=keep)


def split(df: pd.DataFrame, target: str, name: str) -> tuple[pd.DataFrame, pd.Series]:
    """Return a table's features and labels. Rows without a label are dropped with a warning."""
    with errors_of(name):
        x, y = apart(df, [target])
    return labelled(x, y[target], name)


def labelled[X: (pd.DataFrame, np.ndarray)](x: X, y: pd.Series, name: str) -> tuple[X, pd.Series]:
    """Return the rows that have a label. The others are dropped with a warning.

    Whole numbers that pandas stored as floats because of missing labels become integers again.
    """
    has_label = np.asarray(y.notna())
    if has_label.all():
        return x, y
    warnings.warn(
        f"{name}: dropped {np.sum(~has_label)} of {len(has_label)} rows, which have no label",
        skip_file_prefixes=PACKAGE_FOLDER,
    )
    return x[has_label], y[has_label].convert_dtypes()
