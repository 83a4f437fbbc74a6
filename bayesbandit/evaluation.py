"""Who did best, and is it more than luck? Regret, wins and losses from a table of results."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
from scipy.special import erfc
from scipy.stats import t as student

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
"""The results table, tidy: one row for each checkpoint of a run, one meaning for each column.

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
_PAIR = ["environment", "row", "column"]


def check(table: pd.DataFrame) -> pd.DataFrame:
    """The table with the schema's columns and dtypes, or a ValueError that says what is wrong."""
    missing = [name for name in SCHEMA if name not in table.columns]
    if missing:
        raise ValueError(f"the results table lacks {missing}; it has {list(table.columns)}")
    if table.empty:
        raise ValueError("the results table is empty: no run has reached a checkpoint")
    for name, dtype in SCHEMA.items():
        found = table[name].dtype
        if dtype != "str" and found.kind not in ("b" if dtype == "bool" else "iuf"):
            raise ValueError(f"column {name!r} of the results table is {found}, wanted {dtype}")
    for name in (*RUN, "t", "reward", "regret"):
        if (lost := table[name].isin([np.inf, -np.inf]) | table[name].isna()).any():
            raise ValueError(f"{name} is not finite in {_place(table, lost)} ({lost.sum()} rows)")
    table = table[list(SCHEMA)].astype(SCHEMA).reset_index(drop=True)
    if (early := table["t"] < 1).any():
        raise ValueError(f"t must be at least 1, but is less in {_place(table, early)}")
    if (twice := table.duplicated([*RUN, "t"])).any():
        raise ValueError(f"two rows for the same checkpoint of {_place(table, twice)}")
    for environment, ends in _last(table).groupby("environment", sort=False):
        if ends["t"].nunique() > 1:
            seen = ends.groupby("bandit", sort=False)["t"].unique()
            horizons = ", ".join(f"{name} {sorted(t.tolist())}" for name, t in seen.items())
            raise ValueError(f"runs of {environment!r} end at different rounds: {horizons}")
    return table


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Each bandit in each environment at its last checkpoint: regret, its error, the optimum.

    `normalised_regret` is the mean over replications of regret / t and `normalised_regret_se` its
    standard error, NaN for one replication. `optimal_at_end` and `optimal_ever` are shares of the
    replications; `first_optimal` is the median of the first such round with "never" as infinity,
    so it is inf where half of the runs never arrive. All three are NaN where nothing was tested.
    """
    table = check(table)
    first = first_optimal(table)
    last = _last(table).merge(first, on=RUN)
    tested = last["first_optimal"].notna()
    cells = last.assign(
        normalised_regret=last["regret"] / last["t"],
        mean_reward=last["reward"] / last["t"],
        optimal_at_end=last["optimal"].where(tested).astype("float64"),
        optimal_ever=np.isfinite(last["first_optimal"]).where(tested).astype("float64"),
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
    """For each run, the first checkpoint at the optimal assignment.

    inf where the run never got there, NaN where the environment has no test contexts to judge by.
    """
    table = check(table)
    tested = table["value"].notna() | table["optimal"]
    hit = table["t"].astype("float64").where(table["optimal"], np.inf).where(tested)
    runs = table.assign(first_optimal=hit).groupby(RUN, sort=False)
    return runs["first_optimal"].min().reset_index()


def curves(table: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard error over replications at every checkpoint, one row for each.

    Columns `regret` (cumulative), `normalised_regret`, `propensity` and `optimal` (the share of
    replications at the optimal assignment, NaN untested), each with its `_se`.
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


def pairwise(
    table: pd.DataFrame, bakeoff_compat: bool = False, level: float = 0.05
) -> pd.DataFrame:
    """Wins and losses of every bandit against every other, in every environment.

    One row for each ordered pair: `row_regret`, `column_regret` (normalised, means over the
    replications that both played), `difference` = row − column, the statistic `z`, the two-sided
    `p`, and `outcome`, "win", "loss" or "draw" of the row: a win is p < level and difference < 0.

    Where rewards are 0 or 1 and a best arm earns 1 (classification), e = regret / t is an error
    rate over the n rounds of all replications, and METHODS.md, section 11, reads
    z = (e_row − e_col) / √(e_row(1 − e_row)/n + e_col(1 − e_col)/n), p = 2(1 − Φ(|z|)).
    Two error rates without variance give p = 1 if equal, else p = 0. The rounds count as
    independent, between bandits too: shuffles of one small data set make it optimistic, a stream
    that both bandits face makes it cautious.

    Other rewards: the t-test on the paired differences of the replications, whose statistic stands
    in `z`; with fewer than two replications p is NaN and the outcome a draw.

    `bakeoff_compat` tests error rates as the script of the contextual bandit bake-off (Bietti,
    Agarwal & Langford, 2021) does and its copies do: p = 1 − erf(|z|), without the √2 that makes it
    2(1 − Φ(|z|)), and 1e-6 added to the standard error. It calls "p < .05" what has level .166.
    """
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level}")
    table = check(table)
    last = _last(table)
    counts = last["environment"].isin(_classification(table))  # of errors, but for rounding
    regret = last["regret"].where(~counts, last["regret"].round())
    last = last[[*RUN, "t"]].assign(rate=regret / last["t"])
    both = last.merge(last, on=["environment", "replication"], suffixes=("_row", "_column"))
    both = both[both["bandit_row"] != both["bandit_column"]]
    both = both.rename(columns={"bandit_row": "row", "bandit_column": "column"})
    groups = both.assign(gap=both["rate_row"] - both["rate_column"]).groupby(_PAIR, sort=False)
    pairs = groups.agg(
        row_regret=("rate_row", "mean"),
        column_regret=("rate_column", "mean"),
        difference=("gap", "mean"),
        gap_se=("gap", "sem"),
        replications=("gap", "size"),
        n=("t_row", "sum"),
    ).reset_index()
    binary = pairs["environment"].isin(_classification(table)).to_numpy()
    a, b, n, replications, gap, gap_se = (
        pairs[name].to_numpy(np.float64)
        for name in ("row_regret", "column_regret", "n", "replications", "difference", "gap_se")
    )
    se = np.where(binary, np.sqrt((a * (1 - a) + b * (1 - b)) / n), gap_se)
    se = np.where(binary & bakeoff_compat, se + 1e-6, se)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where((gap == 0) & (se == 0), 0.0, gap / se)
    of_z = erfc(np.abs(z) / (1 if bakeoff_compat else np.sqrt(2)))
    of_t = 2 * student.sf(np.abs(z), np.maximum(replications - 1, 1))
    p = np.where(binary, of_z, of_t)
    outcome = np.where(p < level, np.where(gap < 0, "win", "loss"), "draw")
    return pairs[[*_PAIR, "row_regret", "column_regret"]].assign(
        difference=gap, z=z, p=p, outcome=outcome
    )


def wins_and_losses(pairs: pd.DataFrame) -> pd.DataFrame:
    """How many environments the row bandit wins from and loses to the column bandit.

    Rows are bandits; the columns are three K × K blocks, `["margin"]` (wins − losses), `["wins"]`
    and `["losses"]` (the paper's appendix B, table "W=…, L=…"). `pairs` comes from `pairwise`.
    """
    missing = [name for name in ("row", "column", "outcome") if name not in pairs.columns]
    if missing:
        raise ValueError(f"not a frame made by `pairwise`: it lacks {missing}")
    if pairs.empty:
        raise ValueError("no pair to count: fewer than two bandits have played")
    names = pd.unique(pairs["row"])
    wins, losses = (
        pd.crosstab(won["row"], won["column"]).reindex(index=names, columns=names, fill_value=0)
        for won in (pairs[pairs["outcome"] == outcome] for outcome in ("win", "loss"))
    )
    blocks = pd.concat({"margin": wins - losses, "wins": wins, "losses": losses}, axis=1)
    return blocks.astype("int64").rename_axis(index="bandit")


def ranking(table: pd.DataFrame, bakeoff_compat: bool = False, level: float = 0.05) -> pd.DataFrame:
    """Which bandit does best on this data? One row for each bandit, the best first.

    Means over environments of normalised regret (by which the rows are sorted), of reward and of
    the rank in each environment (1 is best, ties share), and the significant wins and losses
    against all other bandits together. The standard error is that of the replications,
    √(Σ se²) / environments. Every bandit must have played every environment.
    """
    cells = summary(table)
    played = cells.groupby("bandit", sort=False)["environment"].agg(set)
    everywhere = set(cells["environment"])
    for name, seen in played.items():
        if seen != everywhere:
            raise ValueError(f"{name!r} has not played {sorted(everywhere - seen)}: not comparable")
    cells["rank"] = cells.groupby("environment")["normalised_regret"].rank()
    cells["variance"] = cells["normalised_regret_se"] ** 2
    bandits = cells.groupby("bandit", sort=False)
    pairs = pairwise(table, bakeoff_compat, level)
    count = pd.crosstab(pairs["row"], pairs["outcome"])
    count = count.reindex(index=played.index, columns=["win", "loss"], fill_value=0)
    n = len(everywhere)
    ranks = pd.DataFrame(
        {
            "normalised_regret": bandits["normalised_regret"].mean(),
            "normalised_regret_se": np.sqrt(bandits["variance"].sum(min_count=n)) / n,
            "mean_reward": bandits["mean_reward"].mean(),
            "mean_rank": bandits["rank"].mean(),
            "wins": count["win"].astype("int64"),
            "losses": count["loss"].astype("int64"),
            "environments": n,
        }
    )
    return ranks.sort_values(["normalised_regret", "mean_rank"], kind="stable").reset_index()


def markdown(frame: pd.DataFrame, digits: int = 4) -> str:
    """The frame as a Markdown table, numbers to `digits` decimals, "–" for NaN.

    The index is left out if it only counts rows; column levels are joined by a space.
    """
    if not isinstance(frame.index, pd.RangeIndex):
        frame = frame.reset_index()
    columns = []
    for place, name in enumerate(frame.columns):
        head = [level for level in (name if isinstance(name, tuple) else (name,)) if level != ""]
        values = frame.iloc[:, place]
        right = values.dtype.kind in "iuf"
        cells = _numerals(values.to_numpy(np.float64), digits) if right else _words(values)
        cells = [" ".join(_words(head)), *cells]
        width = max(3, *map(len, cells))
        cells = [cell.rjust(width) if right else cell.ljust(width) for cell in cells]
        columns.append([cells[0], "-" * (width - right) + ":" * right, *cells[1:]])
    return "\n".join(f"| {' | '.join(row)} |" for row in zip(*columns, strict=True))


def _last(table: pd.DataFrame) -> pd.DataFrame:
    """The last checkpoint of each run."""
    return table.loc[table.groupby(RUN, sort=False)["t"].idxmax()].reset_index(drop=True)


def _place(table: pd.DataFrame, rows: pd.Series) -> str:
    row = table[rows].iloc[0]
    return f"environment {row.environment!r}, bandit {row.bandit!r}, replication {row.replication}"


def _classification(table: pd.DataFrame) -> list[str]:
    """Environments whose rewards are 0 or 1 and whose best arm always earns 1."""
    reward, regret = table["reward"], table["regret"]
    whole = (reward == reward.round()) & reward.between(0, table["t"])
    binary = whole & ((reward + regret - table["t"]).abs() <= 1e-9 * table["t"])
    kinds = binary.groupby(table["environment"], sort=False).all()
    return kinds.index[kinds].tolist()


def _numerals(values: np.ndarray, digits: int) -> list[str]:
    finite = values[np.isfinite(values)]
    digits = 0 if (finite == np.round(finite)).all() else digits
    texts = (f"{value:.{digits}f}" for value in values)
    return [text.replace("nan", "–").replace("inf", "∞") for text in texts]


def _words(values: Iterable[object]) -> list[str]:
    texts = ("–" if value is None or value != value else str(value) for value in values)
    return [text.replace("|", "\\|").replace("\n", " ") for text in texts]
