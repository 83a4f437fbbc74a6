"""Cumulative regret at the end, and the tables that show it."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from bayesbandit.evaluation.contests import differences
from bayesbandit.evaluation.results import check, last
from bayesbandit.evaluation.text import within


def regrets(table: pd.DataFrame) -> pd.DataFrame:
    """For each environment and bandit: mean and median `regret` at the end, its standard error
    `regret_se` over replications, and their number."""
    cells = last(check(table)).groupby(["environment", "bandit"], sort=False)["regret"]
    found = cells.agg(regret="mean", regret_se="sem", median="median", replications="size")
    return found.reset_index()


def wide(regrets: pd.DataFrame, digits: int = 0) -> pd.DataFrame:
    """A row for each environment, a column for each bandit: regret ± standard error."""
    order = [pd.unique(regrets[name]).tolist() for name in ("environment", "bandit")]
    cells = [
        within(mean, se, digits)
        for mean, se in zip(regrets["regret"], regrets["regret_se"], strict=True)
    ]
    shown = regrets.assign(cell=cells).pivot(index="environment", columns="bandit", values="cell")
    return shown.loc[order[0], order[1]].reset_index().rename_axis(columns=None)


def gaps(table: pd.DataFrame, pairs: Iterable[tuple[str, str]], digits: int = 0) -> pd.DataFrame:
    """`differences` of regret to be read: "one − other", their mean ± standard error, and how many
    standard errors that is."""
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
