"""Tables that are kept as they are computed, so that a killed experiment goes on where it stopped.

A table is kept by a key, a digest of all that determines it. What was computed with other settings,
code or versions has another key: it stays in the folder, and is not used.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from bayesbandit.runtime.files import replacing

if TYPE_CHECKING:
    import pandas as pd

RECORDED_LIBRARIES = (
    "bayesbandit",
    "numpy",
    "numba",
    "scipy",
    "scikit-learn",
    "pandas",
    "pymc",
    "pytensor",
    "nutpie",
)


def key(**settings: object) -> str:
    """Return the key of a table: a digest of its settings and the libraries' versions."""
    text = json.dumps([settings, versions()], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def versions() -> dict[str, str]:
    """Return the versions of the libraries that determine numbers."""
    return {library: version(library) for library in RECORDED_LIBRARIES}


class Cache:
    """Tables by key. With a `folder`, each has a Parquet file there, as soon as it is known.

    Several runs may write into the folder. None: tables are in memory only.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.tables: dict[str, pd.DataFrame] = {}

    def __contains__(self, key: str) -> bool:
        if key not in self.tables and self.folder is not None:
            file = self.folder / f"{key}.parquet"
            if file.is_file():
                self.tables[key] = _read(file)
        return key in self.tables

    def __getitem__(self, key: str) -> pd.DataFrame:
        return self.tables[key]

    def __setitem__(self, key: str, table: pd.DataFrame) -> None:
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            write(self.folder / f"{key}.parquet", table)
        self.tables[key] = table


def write_results(
    folder: Path, table: pd.DataFrame, settings: Mapping[str, object], seconds: float
) -> None:
    """Write results.parquet, and run.json: how they were made. seconds: what this run took."""
    write(folder / "results.parquet", table)
    record = {
        "settings": dict(settings),
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "python": platform.python_version(),
        "versions": versions(),
        "seconds": round(seconds, 1),
    }
    with replacing(folder / "run.json") as temporary:
        temporary.write_text(json.dumps(record, indent=2) + "\n")


def write(file: Path, frame: pd.DataFrame) -> None:
    """Write a table with a checksum for each page."""
    with replacing(file) as temporary:
        frame.to_parquet(temporary, index=False, write_page_checksum=True)


def _read(file: Path) -> pd.DataFrame:
    """Return the table of a file."""
    import pandas as pd

    try:
        return pd.read_parquet(file, page_checksum_verification=True)
    except Exception as error:  # the reader may raise anything for a broken file
        raise ValueError(f"{file} is broken: {error}; delete it to go on") from error
