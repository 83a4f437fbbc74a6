"""Tables in partitions: results that are joined in a tree, and a random sample of the rows.

Each row has a random rank, and the sample is the `MOST` rows with the smallest ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import Name

if TYPE_CHECKING:
    import dask.dataframe as dd
    import pandas as pd

MAX_SAMPLE_ROWS = 100_000  # rows of a sample
RANK_COLUMN = "rank of the row"  # the column by which rows are drawn


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
    try:
        (sample,) = dask.compute(parts[0])
    except KeyError as error:  # of Dask, which does not say which partition it is
        raise ValueError(f"a partition of the table lacks a column: {error.args[0]}") from error
    return sample


def sample(table: pd.DataFrame | dd.DataFrame) -> pd.DataFrame:
    """Return a table in memory as it is; of a dask.dataframe all rows, or 100,000 drawn at random.

    The rows keep their order. The same partitions give the same rows.
    """
    import pandas as pd

    if isinstance(table, pd.DataFrame):
        return table
    return reduced(table, list(table.columns), _ranked, _least).drop(columns=RANK_COLUMN)


def _ranked(frame: pd.DataFrame, number: int) -> pd.DataFrame:
    """Return the rows of partition `number` that may be in the sample, with their ranks.

    The ranks depend only on the number of the partition and on its length.
    """
    rank = np.random.default_rng([number, len(frame)]).random(len(frame))
    return _least(frame.assign(**{RANK_COLUMN: rank}))


def _least(*frames: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    frame = pd.concat(frames, ignore_index=True)
    if len(frame) <= MAX_SAMPLE_ROWS:
        return frame
    return frame.iloc[
        np.sort(np.argpartition(frame[RANK_COLUMN].to_numpy(), MAX_SAMPLE_ROWS)[:MAX_SAMPLE_ROWS])
    ]
