"""Cumulative regret at the end, and the tables that show it."""

from __future__ import annotations

import pandas as pd

from bayesbandit.evaluation.results import check, last
from bayesbandit.evaluation.text import within


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
