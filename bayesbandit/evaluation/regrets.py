"""Cumulative regret at the end, and the tables that show it."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from bayesbandit.evaluation.contests import differences
from bayesbandit.evaluation.results import check, last
from bayesbandit.evaluation.text import within


def regrets(table: pd.DataFrame) -> pd.DataFrame:
    """Return for each environment and bandit mean and median `regret` at the end, its standard
    error `regret_se` over replications, and their number."""
    cells = last(check(table)).groupby(["environment", "bandit"], sort=False)["regret"]
    found = cells.agg(regret="mean", regret_se="sem", median="median", replications="size")
    return found.reset_index()


def wide(
    cells: pd.DataFrame,
    digits: int = 0,
    index: str = "environment",
    column: str = "bandit",
    value: str = "regret",
    sign: bool = False,
) -> pd.DataFrame:
    """Return a row for each value of `index`, a column for each of `column`: `value` ± its standard
    error, which is in column `value`_se."""
    order = [pd.unique(cells[name]).tolist() for name in (index, column)]
    texts = [
        within(mean, se, digits, sign)
        for mean, se in zip(cells[value], cells[f"{value}_se"], strict=True)
    ]
    shown = cells.assign(cell=texts).pivot(index=index, columns=column, values="cell")
    return shown.loc[order[0], order[1]].reset_index().rename_axis(columns=None)


def gaps(table: pd.DataFrame, pairs: Iterable[tuple[str, str]], digits: int = 0) -> pd.DataFrame:
    """Return `differences` of regret as texts: "one − other", their mean ± standard error, and
    how many standard errors that is."""
    found = differences(table, pairs)
    return pd.DataFrame(
        {
            "environment": found["environment"],
            "difference": found["one"] + " − " + found["other"],
            "regret": [
                within(mean, se, digits, sign=True)
                for mean, se in zip(found["difference"], found["se"], strict=True)
            ],
            "in standard errors": (found["difference"] / found["se"]).round(1),
            "replications": found["replications"],
        }
    )
