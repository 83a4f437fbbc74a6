"""Arms and their probabilities for tables of any size, partition by partition."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from bayesbandit import checks
from bayesbandit.bandit.bandit import Bandit
from bayesbandit.checks import Name, name_array
from bayesbandit.policies import changes
from bayesbandit.scale.learning import contexts
from bayesbandit.scale.source import table_of

if TYPE_CHECKING:
    import dask.dataframe as dd
    import pandas as pd

ROOM = 2**25  # numbers at most that are computed at once
PROBABILITY_PREFIX = "probability_"  # begins the columns of the arms' probabilities


def score(
    source: object,
    bandit: Bandit,
    *,
    features: Sequence[Name] | None = None,
    key: Name = 0,
) -> pd.DataFrame | dd.DataFrame:
    """Return a table with an arm that the bandit chooses for each row, and the probabilities.

    The new columns are `arm`, `propensity`, and `probability_ARM` for each arm, so that
    `bb.ope.read_log` and `bayesbandit evaluate` know them. The bandit does not change. All rows are
    decided by its current belief, which does not age meanwhile. So α and a minimum probability must
    be numbers, and no functions of the round.

    source: a table, a dask.dataframe, or Parquet files, as in `learn`. The result is a pandas
        table, or a dask.dataframe that computes nothing yet: `scored.to_parquet("folder")`.
    features: the columns of the contexts, in order. Without it, those of the encoder, or all
        columns.
    key: a name or a number. Each partition gets random numbers of its own, derived from the
        bandit's seed, this key and the number of the partition. The same key gives the same arms.
    """
    if bandit.of_arms:
        raise ValueError(
            "score takes one row for each context, and arms with features have K: use choose(x)"
        )
    if changes(bandit.policy):
        raise ValueError(
            "score decides all rows alike, and this policy changes from round to round: its "
            f"settings must be numbers; got {bandit.policy!r}"
        )
    import pandas as pd

    table = table_of(source)
    columns: list[Name] = list(table.columns)
    if features is None:
        features = columns if bandit.encoder is None else bandit.encoder.columns
    _check(columns, bandit, features)
    frozen = bandit.copy()
    if bandit.belief.clock == "time" and frozen.now is None:
        frozen.now = time.time()
    work = partial(_scored, frozen, tuple(features), checks.arm_name(key))
    return work(table, 0) if isinstance(table, pd.DataFrame) else _on_dask(table, work)


def _check(columns: list[Name], bandit: Bandit, features: Sequence[Name]) -> None:
    """Raise ValueError for missing columns, and for columns that would be overwritten."""
    if missing := [name for name in features if name not in columns]:
        raise ValueError(f"the table has no column {missing[0]!r}; it has {columns!r}")
    if bandit.encoder is None and len(features) != bandit.n_features:
        raise ValueError(f"features must name {bandit.n_features} columns; got {list(features)!r}")
    if taken := [name for name in _new_columns(bandit) if name in columns]:
        raise ValueError(f"the table has a column {taken[0]!r} already: rename it")


def _new_columns(bandit: Bandit) -> list[str]:
    return ["arm", "propensity", *(f"{PROBABILITY_PREFIX}{arm}" for arm in bandit.arms)]


def _scored(
    bandit: Bandit, features: Sequence[Name], key: Name, frame: pd.DataFrame, number: int
) -> pd.DataFrame:
    """Return a partition of a table with the new columns."""
    import pandas as pd

    rng = np.random.default_rng(bandit.copy().reseed(f"{key}, part {number}").seed)
    step = max(1, ROOM // bandit.layout.width)
    parts = (frame.iloc[i : i + step] for i in range(0, len(frame), step))
    probabilities = [bandit.probabilities(contexts(bandit, rows, features)) for rows in parts]
    p = np.concatenate([np.empty((0, len(bandit.arms))), *probabilities])
    reached = p.cumsum(axis=1)
    arm = (reached > rng.random((len(p), 1)) * reached[:, -1:]).argmax(axis=1)
    propensity = p[np.arange(len(p)), arm]
    values = [name_array(bandit.arms)[arm], propensity, *p.T]
    new = dict(zip(_new_columns(bandit), values, strict=True))
    return pd.concat([frame, pd.DataFrame(new, index=frame.index)], axis=1)


def _on_dask(frame: dd.DataFrame, work: partial[pd.DataFrame]) -> dd.DataFrame:
    """Return a dask.dataframe of scored partitions."""
    import dask
    import dask.dataframe as dd

    shared = dask.delayed(work)
    parts = [shared(part, number) for number, part in enumerate(frame.to_delayed())]
    return dd.from_delayed(parts, meta=work(frame._meta, 0), verify_meta=False)
