"""Tables that several studies share."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from bayesbandit.evaluation import gaps, with_errors


def paired(pairs: list[tuple[str, str]]) -> Callable[[pd.DataFrame], dict[str, pd.DataFrame]]:
    """Return a function from results to one table by its heading: `gaps` of these pairs.

    It is the `details` of a `Study`, or part of them.
    """
    return lambda results: {"Differences, replication by replication": gaps(results, pairs)}


def medians(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each bandit of `regrets`: its regret ± standard error, and its median."""
    shown = with_errors(table[["bandit", "regret", "regret_se"]], 0)
    return shown.assign(median=table["median"].round())
