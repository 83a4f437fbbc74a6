"""The table of results: its columns, and means and standard errors over replications."""

from __future__ import annotations

import numpy as np
import pandas as pd

from bayesbandit.checks import shown
from bayesbandit.evaluation.text import within

SCHEMA: dict[str, str] = {
    "environment": "str",
    "bandit": "str",
    "replication": "int64",
    "t": "int64",
    "reward": "float64",
    "regret": "float64",
    "propensity": "float64",
    "value": "float64",
    "agreement": "float64",
    "optimal": "bool",
}
"""The results table is tidy: one row for each checkpoint of a run, one meaning for each column.

A run is one (environment, bandit, replication); the runs of an environment end at the same round.

=========== ====================================================================================
environment the environment's name
bandit      the bandit's name
replication number of the replication; bandits of one replication face the same drawn environment
t           rounds played so far, at least 1
reward      sum of the realised rewards of rounds 1..t
regret      sum over rounds 1..t of max_k mean_k − mean_chosen
propensity  mean propensity of the chosen arms in the rounds since the previous checkpoint
value       mean reward of the greedy policy on the environment's test contexts; NaN without them
agreement   share of test contexts where the greedy policy picks a best arm; NaN without them
optimal     whether the greedy policy counts as the optimal assignment at t
=========== ====================================================================================

Derived tables add `normalised_regret` = regret / t and `mean_reward` = reward / t.
"""

RUN = ["environment", "bandit", "replication"]
_CELL = ["environment", "bandit"]


def check(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with the schema's columns and dtypes; raise ValueError if it is invalid."""
    if not isinstance(table, pd.DataFrame):
        raise TypeError(f"a results table, of Experiment(…).run(), is needed; got {shown(table)}")
    missing = [name for name in SCHEMA if name not in table.columns]
    if missing:
        raise ValueError(f"the results table lacks {missing}; it has {list(table.columns)}")
    if table.empty:
        raise ValueError("the results table is empty: no run has reached a checkpoint")
    for name, dtype in SCHEMA.items():
        kind = table[name].dtype
        if dtype != "str" and kind.kind not in ("b" if dtype == "bool" else "iuf"):
            raise ValueError(f"column {name!r} of the results table is {kind}, wanted {dtype}")
    for name in (*RUN, "t", "reward", "regret"):
        if (bad := table[name].isin([np.inf, -np.inf]) | table[name].isna()).any():
            raise ValueError(f"{name} is not finite in {_place(table, bad)} ({bad.sum()} rows)")
    table = table[list(SCHEMA)].astype(SCHEMA).reset_index(drop=True)
    if (early := table["t"] < 1).any():
        raise ValueError(f"t must be at least 1, but is less in {_place(table, early)}")
    if (twice := table.duplicated([*RUN, "t"])).any():
        raise ValueError(f"two rows for the same checkpoint of {_place(table, twice)}")
    for environment, ends in last(table).groupby("environment", sort=False):
        if ends["t"].nunique() > 1:
            rounds = ends.groupby("bandit", sort=False)["t"].unique()
            horizons = ", ".join(f"{name} {sorted(t.tolist())}" for name, t in rounds.items())
            raise ValueError(f"runs of {environment!r} end at different rounds: {horizons}")
    return table


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Return regret and optimality at the last checkpoint, a row for each environment and bandit.

    `normalised_regret` is the mean of regret / t over replications, and `normalised_regret_se` its
    standard error, NaN for one replication. `optimal_at_end` and `optimal_ever` are shares of the
    replications. `first_optimal` is the median of the first optimal round. A run that is never
    optimal counts as infinity. All three are NaN in an environment without test contexts.
    """
    table = check(table)
    first = first_optimal(table)
    ends = last(table).merge(first, on=RUN)
    tested = ends["first_optimal"].notna()
    cells = ends.assign(
        normalised_regret=ends["regret"] / ends["t"],
        mean_reward=ends["reward"] / ends["t"],
        optimal_at_end=ends["optimal"].where(tested).astype("float64"),
        optimal_ever=np.isfinite(ends["first_optimal"]).where(tested).astype("float64"),
    ).groupby(_CELL, sort=False)
    return cells.agg(
        t=("t", "max"),
        replications=("replication", "size"),
        normalised_regret=("normalised_regret", "mean"),
        normalised_regret_se=("normalised_regret", "sem"),
        mean_reward=("mean_reward", "mean"),
        optimal_at_end=("optimal_at_end", "mean"),
        optimal_ever=("optimal_ever", "mean"),
        first_optimal=("first_optimal", "median"),
    ).reset_index()


def first_optimal(table: pd.DataFrame) -> pd.DataFrame:
    """Return each run's first checkpoint with the optimal assignment, `first_optimal`.

    It is inf for a run that is never optimal, and NaN in an environment without test contexts.
    """
    table = check(table)
    tested = table["value"].notna() | table["optimal"]
    hit = table["t"].astype("float64").where(table["optimal"], np.inf).where(tested)
    runs = table.assign(first_optimal=hit).groupby(RUN, sort=False)
    return runs["first_optimal"].min().reset_index()


def curves(table: pd.DataFrame) -> pd.DataFrame:
    """Return means and standard errors over replications, one row for each checkpoint.

    The columns are `regret` (cumulative), `normalised_regret`, `propensity` and `optimal`, the
    share of replications with the optimal assignment (NaN without test contexts). Each has a
    standard error `…_se`.
    """
    table = check(table)
    tested = table["value"].notna() | table["optimal"]
    points = table.assign(
        normalised_regret=table["regret"] / table["t"],
        optimal=table["optimal"].astype("float64").where(tested),
    ).groupby([*_CELL, "t"], sort=False)
    drawn = ("regret", "normalised_regret", "propensity", "optimal")
    columns = {name: points[name].mean() for name in drawn}
    columns |= {f"{name}_se": points[name].sem() for name in drawn}
    return pd.DataFrame({"replications": points.size(), **columns}).reset_index()


def last(table: pd.DataFrame) -> pd.DataFrame:
    """Return the last checkpoint of each run."""
    return table.loc[table.groupby(RUN, sort=False)["t"].idxmax()].reset_index(drop=True)


def regrets(table: pd.DataFrame) -> pd.DataFrame:
    """Return each bandit's regret at the end, one row for each environment and bandit.

    The columns are the mean `regret`, its standard error `regret_se` over replications, the
    `median` and the number of `replications`.
    """
    cells = last(check(table)).groupby(["environment", "bandit"], sort=False)["regret"]
    frame = cells.agg(regret="mean", regret_se="sem", median="median", replications="size")
    return frame.reset_index()


def wide(
    cells: pd.DataFrame,
    digits: int = 0,
    index: str = "environment",
    column: str = "bandit",
    value: str = "regret",
    sign: bool = False,
) -> pd.DataFrame:
    """Return a row for each value of `index` and a column for each value of `column`.

    A cell is `value` ± its standard error, which is taken from the column `value`_se.
    """
    order = [pd.unique(cells[name]).tolist() for name in (index, column)]
    texts = [
        within(mean, se, digits, sign)
        for mean, se in zip(cells[value], cells[f"{value}_se"], strict=True)
    ]
    shown = cells.assign(cell=texts).pivot(index=index, columns=column, values="cell")
    return shown.loc[order[0], order[1]].reset_index().rename_axis(columns=None)


def seed_of(table: pd.DataFrame) -> int:
    """Return the seed of the experiment that made the table; 0 if the table does not have it."""
    return int(table.attrs.get("seed", 0))


def _place(table: pd.DataFrame, rows: pd.Series) -> str:
    row = table[rows].iloc[0]
    return f"environment {row.environment!r}, bandit {row.bandit!r}, replication {row.replication}"
