"""Tables in partitions: results that are joined in a tree, and a random sample of the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from bayesbandit.checks import Name

if TYPE_CHECKING:
    import dask.dataframe as dd
    import pandas as pd

MAX_SAMPLE_ROWS = 100_000  # rows of a sample


def reduced[T](
    table: pd.DataFrame | dd.DataFrame,
    columns: Sequence[Name],
    work: Callable[[pd.DataFrame, int], T],
    join: Callable[[T, T], T],
) -> T:
    """Return what `work` makes of these columns of each partition, joined.

    work: a function of a partition and its number. join: a function of the results of neighbours,
    which it must not change. Results are joined in pairs, pairs of pairs, and so on, where the
    partitions are. The tree depends only on their number. A table in memory is one partition.
    """
    import pandas as pd

    if isinstance(table, pd.DataFrame):
        return work(table[list(columns)], 0)
    import dask

    shared: Any = dask.delayed(work)
    joined: Any = dask.delayed(join)
    parts = [shared(part, i) for i, part in enumerate(table[list(columns)].to_delayed())]
    while len(parts) > 1:
        pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
        parts = [joined(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    found: T = computed(parts[0])
    return found


def computed(delayed: Any) -> Any:
    """Return what Dask computes; raise ValueError for a column that a partition lacks."""
    import dask

    try:
        return dask.compute(delayed)[0]
    except KeyError as error:  # of Dask, which does not say which partition it is
        raise ValueError(f"a partition of the table lacks a column: {error.args[0]}") from error


def sample(table: pd.DataFrame | dd.DataFrame) -> pd.DataFrame:
    """Return a table in memory as it is; of a dask.dataframe all rows, or some 100,000 at random.

    The same partitions give the same rows.
    """
    import pandas as pd

    if isinstance(table, pd.DataFrame):
        return table
    n = len(table)
    drawn = (
        table if n <= MAX_SAMPLE_ROWS else table.sample(frac=MAX_SAMPLE_ROWS / n, random_state=0)
    )
    rows: pd.DataFrame = computed(drawn)
    return rows.reset_index(drop=True)
