"""A random sample of the rows of a table that comes in parts, in one pass.

Each row has a random rank, and the sample is the `MOST` rows with the smallest ranks. A part with
more rows than that keeps only its smallest.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

MOST = 100_000  # rows of a sample
FAN = 8  # samples that become one
RANK = "rank of the row"  # the column by which rows are drawn


def of_dask(frame: Any) -> pd.DataFrame:
    """Return all rows of a dask.dataframe in their order, or 100,000 of them drawn at random.

    The same partitions give the same rows.
    """
    import dask

    parts = [dask.delayed(ranked)(part, i) for i, part in enumerate(frame.to_delayed())]
    while len(parts) > 1:
        parts = [dask.delayed(_least)(parts[i : i + FAN]) for i in range(0, len(parts), FAN)]
    (rows,) = dask.compute(parts[0])
    return rows.drop(columns=RANK)


def ranked(frame: pd.DataFrame, number: int) -> pd.DataFrame:
    """Return the rows of part `number` that may be in the sample, with a column of their ranks.

    The ranks depend only on the number of the part and on its length.
    """
    rank = np.random.default_rng([number, len(frame)]).random(len(frame))
    return _least([frame.assign(**{RANK: rank})])


def least(parts: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Return the rows with the least ranks of all parts, in their order, without their ranks."""
    return reduce(lambda held, part: _least([held, part]), parts).drop(columns=RANK)


def _least(frames: list[pd.DataFrame]) -> pd.DataFrame:
    import pandas as pd

    frame = pd.concat(frames, ignore_index=True)
    if len(frame) <= MOST:
        return frame
    return frame.iloc[np.sort(np.argpartition(frame[RANK].to_numpy(), MOST)[:MOST])]
