"""Tables and rows that users pass: pandas, what narwhals reads, dicts."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from bayesbandit.checks import Name, Table, column_names
from bayesbandit.checks import Row as NamedRow

if TYPE_CHECKING:
    import dask.dataframe as dd
    import pandas as pd

    from bayesbandit.tables.columns import Row

MAX_NAMES_IN_ERROR = 20  # names at most in an error


def named(names: Sequence[Any]) -> str:
    """Return names as an error lists them."""
    return listed([repr(name) for name in names])


def listed(names: Sequence[Any]) -> str:
    """Return names in one line; of many the first, and how many more there are."""
    first = names[:MAX_NAMES_IN_ERROR]
    more = f", … and {len(names) - len(first)} more" if len(names) > len(first) else ""
    return ", ".join(map(str, first)) + more


def frame_of(x: object) -> pd.DataFrame | None:
    """Return a table as a pandas DataFrame; None for anything else."""
    import narwhals as nw
    import pandas as pd

    if isinstance(x, pd.DataFrame):
        return x
    native = nw.from_native(x, pass_through=True, eager_only=True)
    if not isinstance(native, nw.DataFrame):
        return None
    from narwhals import selectors

    frame = native.to_pandas()
    # Polars numbers the levels of a category as it meets them: they have no order of their own
    for name in native.select(selectors.categorical()).columns:
        levels = frame[name].cat.categories
        frame[name] = frame[name].cat.reorder_categories(sorted(levels))
    return frame


def is_dask(x: object) -> TypeGuard[dd.DataFrame]:
    """Return whether a table is a dask.dataframe, without loading Dask."""
    dask = sys.modules.get("dask.dataframe")
    return dask is not None and isinstance(x, dask.DataFrame)


def rows_of(x: object) -> list[Row]:
    """Return the rows of a list of dicts, which must have the same names; [] for anything else."""
    if not (isinstance(x, list | tuple) and all(isinstance(row, Mapping) for row in x)):
        return []
    names = list(dict.fromkeys(name for row in x for name in row))
    for i, row in enumerate(x):
        if lost := [name for name in names if name not in row]:
            raise ValueError(f"row {i} lacks {named(lost)}; other rows have {named(names)}")
    return list(x)


def table(x: object) -> pd.DataFrame:
    """Return a table as a DataFrame with a plain index; raise an error for one without rows."""
    import pandas as pd

    rows = rows_of(x)
    frame = pd.DataFrame(rows) if rows else frame_of(x)
    if frame is None:
        raise TypeError(
            f"a table must have columns with names; got {_what(x)}: pandas.read_csv(…), or "
            "pandas.DataFrame(…, columns=[…]), makes one"
        )
    if 0 in frame.shape:
        raise ValueError(f"a table must have rows and columns; got shape {frame.shape}")
    return frame.set_axis(names_of(frame), axis=1).reset_index(drop=True)


def is_name(name: object) -> bool:
    """Return whether a column may have this name."""
    return isinstance(name, str | Integral) and not isinstance(name, bool)


def names_of(frame: pd.DataFrame) -> list[Name]:
    """Return the columns' names: texts or integers, all different."""
    if strange := [name for name in frame.columns if not is_name(name)]:
        raise TypeError(
            f"a column's name must be a text or an integer; got {strange[0]!r}: "
            "frame.columns = [str(name) for name in frame.columns]"
        )
    names: list[Name] = [
        str(name) if isinstance(name, str) else int(name) for name in frame.columns
    ]
    if len(set(names)) < len(names):
        twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        raise ValueError(f"columns of one name: {named(twice)}")
    return names


def is_row(x: object) -> bool:
    """Return whether x is one row with names: a dict or a pandas Series."""
    import pandas as pd

    return isinstance(x, Mapping | pd.Series)


def read(x: object, needed: Sequence[Name], ignored: Collection[Name]) -> list[Row] | pd.DataFrame:
    """Return a table as a DataFrame, or the rows of a list of dicts or of one row.

    needed: the columns that must be there. ignored: others that may be.
    """
    import pandas as pd

    if isinstance(x, Mapping | pd.Series):
        if isinstance(x, pd.Series) and not x.index.is_unique:
            raise ValueError(f"a row has a name more than once: {named(list(x.index))}")
        x = [dict(x.items())]
    if rows := rows_of(x):
        if rows[0].keys() != {*needed}:
            check_names(list(rows[0]), needed, ignored)
        return rows
    frame = frame_of(x)
    if frame is None:
        raise TypeError(
            f"the encoder knows columns by name, and got {_what(x)} without names: give a "
            f"DataFrame, or a dict for one row, with the columns {named(needed)}; or a log of "
            "encoded contexts whole, bandit.update(log)"
        )
    check_names(list(frame.columns), needed, ignored)
    return frame


def _what(x: object) -> str:
    if isinstance(x, np.ndarray):
        return f"an array of shape {x.shape}"
    return f"a {type(x).__name__}"


def check_names(names: list[Any], needed: Sequence[Name], ignored: Collection[Name]) -> None:
    """Raise an error unless every column is there once and none is unknown."""
    fitted = f"the fit was on {named([*needed])}"
    if missing := [name for name in needed if name not in names]:
        raise ValueError(f"the table lacks the column {named(missing)}; {fitted}")
    allowed = {*needed, *ignored}
    if unknown := [name for name in names if name not in allowed]:
        raise ValueError(f"the table has the unknown column {named(unknown)}; {fitted}")
    if twice := [name for name in needed if names.count(name) > 1]:
        raise ValueError(f"the table has the column {named(twice)} more than once")


def in_order(x: Any, features: Sequence[Name]) -> Any:
    """Return contexts with the columns in the order of the fit, where they have names.

    Without names, columns go by position. A pandas Series whose index has none of the names goes by
    position too.
    """
    table = isinstance(x, Table)
    if table:
        names = column_names(x)
    elif isinstance(x, NamedRow) and x.ndim == 1 and not {*x.index}.isdisjoint(features):
        names = list(x.index)
    else:
        return x
    check_names(names, features, ())
    if names == list(features):
        return x
    named_values: Any = frame_of(x) if table else x
    return named_values[list(features)]
