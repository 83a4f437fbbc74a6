"""Data sets of a folder, one in memory at a time, with as few features as the paper's."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from pyarrow import ArrowException

from bayesbandit.environments import Classification, Sample
from bayesbandit.environments.datasets import split
from bayesbandit.tables.encoder import MAX_FEATURES

FOLDER_VARIABLE = "BAYESBANDIT_DATA"
ANY_NUMBER = 10**9  # features
NO_VARIANCE = 1e-9  # of a principal component, relative to the first


@dataclass(frozen=True)
class ParquetSet:
    """The rows of a Parquet file in random order: the class in the column `target` pays 1.

    It is read when it is first used. A process keeps only the file that it used last. More than 100
    features are replaced by as many principal components.
    version: changes when the file is overwritten.
    """

    path: Path
    name: str
    version: int = 0

    @property
    def fingerprint(self) -> str:
        """Return a text that distinguishes this data set from others of the same name."""
        return repr(self)

    @property
    def data(self) -> Classification:
        """Return the prepared data."""
        return _read(self.path, self.name, self.version)

    @cached_property
    def _shape(self) -> tuple[tuple[str | int, ...], int]:
        return self.data.arms, self.data.x.shape[1]

    @property
    def arms(self) -> tuple[str | int, ...]:
        return self._shape[0]

    @property
    def n_features(self) -> int:
        return self._shape[1]

    def sample(self, horizon: int | None, rng: np.random.Generator) -> Sample:
        """Return the first `horizon` rows in random order; all n rows if it is None or above n."""
        return self.data.sample(horizon, rng)


@lru_cache(maxsize=1)
def _read(path: Path, name: str, version: int) -> Classification:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        frame = pd.read_parquet(path)
    except (ArrowException, OSError, ValueError) as error:
        raise ValueError(f"{path} is not a whole Parquet file: {error}") from error
    found = Classification(*split(frame, "target", str(path)), name, max_features=ANY_NUMBER)
    if found.n_features > MAX_FEATURES:
        found.x = components(found.x, MAX_FEATURES)
    return found


def folder(directory: str | Path | None = None) -> list[ParquetSet]:
    """Return the Parquet files of a folder as data sets, sorted by name.

    directory: the folder; None: the environment variable BAYESBANDIT_DATA.
    A `manifest.csv` with the columns name (or paper_name) and file lists the files and their names.
    Without it, all *.parquet files are used, with their file names.
    """
    if directory is None and not (directory := os.environ.get(FOLDER_VARIABLE)):
        raise ValueError(f"name a folder, or set the environment variable {FOLDER_VARIABLE}")
    root = Path(directory).resolve()
    if not root.is_dir():
        raise FileNotFoundError(f"there is no folder {root}")
    manifest = root / "manifest.csv"
    files = _listed(manifest) if manifest.is_file() else {p.stem: p for p in root.glob("*.parquet")}
    if not files:
        raise ValueError(f"{root} has no Parquet files")
    return [ParquetSet(files[name], name, files[name].stat().st_mtime_ns) for name in sorted(files)]


def _listed(manifest: Path) -> dict[str, Path]:
    """Return the files that a manifest lists, by name.

    A file is at the path that the manifest states, or beside the manifest.
    """
    try:
        table = pd.read_csv(manifest, dtype=str, keep_default_na=False)
    except ValueError as error:
        raise ValueError(f"{manifest} cannot be read: {error}") from error
    key = "paper_name" if "paper_name" in table else "name"
    if absent := {key, "file"} - set(table):
        raise ValueError(f"{manifest} lacks {sorted(absent)}; its columns are {list(table)}")
    if repeated := sorted(set(table[key][table[key].duplicated()])):
        raise ValueError(f"{manifest} uses a name twice: {', '.join(repeated)}")
    files = {}
    for name, file in zip(table[key], table.file, strict=True):
        stated = manifest.parent / file
        files[str(name)] = stated if stated.is_file() else manifest.parent / stated.name
    if lost := sorted(path.name for path in files.values() if not path.is_file()):
        raise FileNotFoundError(f"{manifest} lists files that are not there: {', '.join(lost[:5])}")
    return files


def components(features: np.ndarray, k: int) -> np.ndarray:
    """Return the scores (n, ≤ k) of the leading principal components that have some variance.

    Components keep their relative sizes. One common factor gives them mean square 1, so that
    contexts are as long as those of standardised columns.
    """
    from sklearn.decomposition import PCA
    from threadpoolctl import threadpool_limits

    n, p = features.shape
    with threadpool_limits(limits=1):  # the same bits in every process
        pca = PCA(min(k, n, p), svd_solver="covariance_eigh" if n > p else "full")
        scores = pca.fit_transform(features)
    variance = pca.explained_variance_
    scores = scores[:, variance > NO_VARIANCE * variance[0]]
    return np.ascontiguousarray(scores / np.sqrt(np.mean(scores**2)))
