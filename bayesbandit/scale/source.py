"""Where a log is: a table in memory, a dask.dataframe, or files."""

from __future__ import annotations

from importlib.util import find_spec
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesbandit.tables import inputs
from bayesbandit.tables.files import is_parquet, only_of_csv, read

if TYPE_CHECKING:
    import dask.dataframe as dd
    import pandas as pd


def table_of(source: object, **form: Any) -> pd.DataFrame | dd.DataFrame:
    """Return a table in memory, or a dask.dataframe, which computes nothing yet.

    source: a table; or the path of a file, or Parquet files by a folder, a pattern with * or an
    address as s3://…, which Dask reads. One Parquet file is read whole where there is no Dask;
    another file, CSV or JSON lines, always, as `form` says: see `tables.files.read`. Raise
    FileNotFoundError if there are none, and TypeError for a table whose columns have no names.
    """
    if isinstance(source, str | PathLike):
        path = Path(source)
        if path.is_file() and not is_parquet(path):
            return read(path, **form)
        only_of_csv(form)
        if path.is_file() and find_spec("dask") is None:
            return read(path)
        return _parquet(fspath(source))
    if inputs.is_dask(source):
        return source
    return inputs.table(source)


def _parquet(path: str) -> dd.DataFrame:
    try:
        import dask.dataframe as dd
    except ImportError as error:
        raise ImportError(
            "Dask reads several Parquet files: pip install 'bayesbandit[dask]', or give one "
            "file, or the table that pandas.read_parquet reads"
        ) from error
    try:
        frame = dd.read_parquet(path)
    except ValueError as error:  # of Dask, and of pyarrow for a file that is none
        raise ValueError(f"{path} cannot be read as Parquet files: {error}") from error
    except FileNotFoundError:
        frame = None
    if frame is None or not len(frame.columns):
        raise FileNotFoundError(f"there are no Parquet files, and no other file, {path!r}")
    return frame
