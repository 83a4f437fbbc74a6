"""Comparisons of bandits: paired tests, significant wins and losses, and ranks."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import numpy as np
import pandas as pd
from scipy.special import stdtr

from bayesbandit.checks import Array, number, one_of
from bayesbandit.evaluation.results import RUN, SCHEMA, check, last, summary

PAIR_COLUMNS = ["environment", "row", "column"]
# gaps whose standard error is below this share of their mean count as equal
EQUAL_GAP_TOLERANCE = 1e-9
RELATIVE_ROUNDING = 1e-12  # a gap below this share of two regrets is a rounding error


def pairwise(table: pd.DataFrame, level: float = 0.05) -> pd.DataFrame:
    """Return the wins and losses of every bandit against every other, in every environment.

    There is one row for each ordered pair. `row_regret`, `column_regret` are normalised means over
    the `replications` that both played. `difference` is row − column and `difference_se` its
    standard error. Then come the `statistic`, the two-sided `p` and the row's `outcome`, "win",
    "loss" or "draw". A win is p < level and difference < 0. p is not adjusted for the number of
    pairs: expect one p below .05 in twenty comparisons of equal bandits.

    The test is the paired t-test over replications. If all differences are equal, p is from the
    sign test, 2^(1 − R) for R replications. The t-test assumes normal differences. It errs if a
    bandit is slightly better in most runs but sometimes locks on to the wrong arm, because few
    replications may miss the bad runs. Example: two bandits have the same mean regret, with
    differences of −4 in nine of ten runs and 36 in one, ± .3. The test calls the first one better
    with probability .58 for R = 5, .35 for R = 10, and .11 for R = 50.

    One replication allows no test: p is NaN, a draw.
    """
    number(level, "level", above=0, below=1)
    ends = last(check(table))
    pairs = _gaps(ends.assign(value=ends["regret"] / ends["t"]))
    pairs = pairs[pairs["row"] != pairs["column"]].reset_index(drop=True)
    gap, se, R = (
        pairs[name].to_numpy(np.float64) for name in ("difference", "gap_se", "replications")
    )
    t, p = _paired(gap, se, R)
    outcome = np.where(p < level, np.where(gap < 0, "win", "loss"), "draw")
    columns = [*PAIR_COLUMNS, "row_regret", "column_regret", "replications", "difference"]
    return pairs[columns].assign(difference_se=se, statistic=t, p=p, outcome=outcome)


def _paired(gap: Array, se: Array, R: Array) -> tuple[Array, Array]:
    """Return t and the two-sided p of mean gaps, given their standard errors, over R replications.

    p is the t-test's; the sign test's if all gaps are equal; NaN with one replication.
    """
    # R gaps of one sign and size have no variance: by chance all signs agree in 2 of 2^R cases
    alike = (gap != 0) & (se <= EQUAL_GAP_TOLERANCE * np.abs(gap))
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where((gap == 0) & (se == 0), 0.0, gap / se)
    # t = mean gap / (s/√R) has R − 1 degrees of freedom
    p = 2 * stdtr(np.maximum(R - 1, 1), -np.abs(t))
    return t, np.where(alike, 2.0 ** (1 - R), p)


def _gaps(ends: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each ordered pair that played the same replications of an environment.

    ends: environment, bandit, replication and the `value` that is compared.
    """
    ends = ends[[*RUN, "value"]]
    both = ends.merge(ends, on=["environment", "replication"], suffixes=("_row", "_column"))
    both = both.rename(columns={"bandit_row": "row", "bandit_column": "column"})
    row = both["value_row"]
    column = both["value_column"]
    # 0 where they differ by rounding errors only
    alike = (row - column).abs() <= RELATIVE_ROUNDING * (row.abs() + column.abs())
    both["gap"] = (row - column).mask(alike, 0.0)
    return (
        both.groupby(PAIR_COLUMNS, sort=False)
        .agg(
            row_regret=("value_row", "mean"),
            column_regret=("value_column", "mean"),
            difference=("gap", "mean"),
            gap_se=("gap", "sem"),
            replications=("gap", "count"),
        )
        .reset_index()
    )


def differences(
    table: pd.DataFrame, pairs: Iterable[tuple[str, str]], column: str = "regret"
) -> pd.DataFrame:
    """Return the paired differences of a column between two bandits at the end of their runs.

    There is one row for each environment and each pair with two common replications or more. Its
    columns are `one`, `other`, the mean `difference` (one − other), its standard error `se`, the
    number of `replications` and the two-sided `p`. p is that of `pairwise`, not adjusted for the
    number of pairs. Raise ValueError unless `column` has numbers.
    """
    one_of(column, "column", [name for name, kind in SCHEMA.items() if kind != "str"])
    ends = last(check(table))
    met = _gaps(ends.assign(value=ends[column].astype(np.float64)))
    met = met[met["replications"] >= 2]
    wanted = [(place, *pair) for place, pair in product(met["environment"].unique(), pairs)]
    gaps = pd.DataFrame(wanted, columns=PAIR_COLUMNS).merge(met, on=PAIR_COLUMNS)
    names = ["environment", "one", "other", "difference", "se", "replications"]
    frame = gaps[[*PAIR_COLUMNS, "difference", "gap_se", "replications"]].set_axis(names, axis=1)
    return frame.assign(p=_paired(*(frame[name].to_numpy(np.float64) for name in names[3:]))[1])


def ranking(table: pd.DataFrame, level: float = 0.05) -> pd.DataFrame:
    """Return one row for each bandit, the best first.

    Columns: bandit; the means over environments normalised_regret, mean_reward and mean_rank;
    normalised_regret_se, √(Σ se²) / environments with se over replications; wins and losses, the
    numbers of significant ones against the other bandits, by tests at this level as in `pairwise`;
    and environments, their number. Rows are sorted by normalised regret. Rank 1 is best, and ties
    share a rank. Raise ValueError unless every bandit has played every environment.
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
    pairs = pairwise(table, level)
    count = pd.crosstab(pairs["row"], pairs["outcome"])
    count = count.reindex(index=played.index, columns=["win", "loss"], fill_value=0)
    n = len(everywhere)
    ranks = pd.DataFrame(
        {
            "normalised_regret": bandits["normalised_regret"].mean(),
            # a mean of n independent means: √(Σ se²) / n, and NaN if one of them is
            "normalised_regret_se": np.sqrt(bandits["variance"].sum(min_count=n)) / n,
            "mean_reward": bandits["mean_reward"].mean(),
            "mean_rank": bandits["rank"].mean(),
            "wins": count["win"].astype("int64"),
            "losses": count["loss"].astype("int64"),
            "environments": n,
        }
    )
    return ranks.sort_values(["normalised_regret", "mean_rank"], kind="stable").reset_index()
