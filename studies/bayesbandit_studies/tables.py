"""Tables and pictures that several studies share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from bayesbandit import evaluation, plots

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def paired(pairs: list[tuple[str, str]]) -> Callable[[pd.DataFrame], dict[str, pd.DataFrame]]:
    """Return a function from results to one table by its heading: `gaps` of these pairs.

    It is the `details` of a `Study`, or part of them.
    """
    heading = "Differences, replication by replication"
    return lambda results: {heading: gaps(results, pairs)}


def above(reference: str, name: str = "differences") -> Callable[[pd.DataFrame], dict[str, Figure]]:
    """Return a function from results to one picture by its name: regret above a reference's.

    It is the `figures` of a `Study`.
    """
    return lambda results: {name: plots.paired_differences(results, reference)}


def differences(
    results: pd.DataFrame, pairs: Iterable[tuple[str, str]], column: str = "regret", unit: float = 1
) -> pd.DataFrame:
    """Return paired differences ± SE of a column at the end: a row a pair, a column an environment.

    unit: the number by which differences are multiplied. Numbers have a decimal if it is not 1.
    """
    gaps = evaluation.differences(results, pairs, column)
    cells = gaps.assign(value=unit * gaps["difference"], value_se=unit * gaps["se"])
    return by_pair(cells, int(unit != 1))


def by_pair(
    cells: pd.DataFrame, digits: int, column: str = "environment", value: str = "value"
) -> pd.DataFrame:
    """Return a row "one − other" for each pair of a table with the columns `one` and `other`.

    column: its values have a column each. value: the column that is shown ± `value`_se.
    """
    named = cells.assign(difference=cells["one"] + " − " + cells["other"])
    return evaluation.wide(named, digits, "difference", column, value, sign=True)


def mean(values: pd.Series, digits: int, sign: bool = False) -> str:
    """Return a mean ± its standard error as a text."""
    x = values.to_numpy(np.float64)
    error = x.std(ddof=1) / np.sqrt(len(x)) if len(x) > 1 else np.nan
    return evaluation.within(float(x.mean()), float(error), digits, sign)


def medians(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each bandit of `regrets`: its regret ± standard error, and its median."""
    shown = with_errors(table[["bandit", "regret", "regret_se"]], 0)
    return shown.assign(median=table["median"].round())


def share(k: int, n: int, digits: int = 0) -> str:
    """Return the share k / n in % ± its standard error, as text.

    It has more digits if it would be rounded to 0 or 100. For k = 0 and k = n the standard error
    is 0, and the text has Wilson's 95 % limit instead. Of n = 0 it is "–".
    """
    if n == 0:
        return "–"
    p = k / n
    if 0 < k < n:
        while round(100 * p, digits) in (0, 100):
            digits += 1
        return evaluation.within(100 * p, 100 * np.sqrt(p * (1 - p) / n), digits)
    limits = binomtest(k, n).proportion_ci(method="wilson")
    bound = f"≤ {100 * limits.high:.{digits}f}" if k == 0 else f"≥ {100 * limits.low:.{digits}f}"
    return f"{100 * p:.0f} ({bound})"


def gaps(table: pd.DataFrame, pairs: Iterable[tuple[str, str]], digits: int = 0) -> pd.DataFrame:
    """Return paired differences of regret as texts.

    The columns have the pair "one − other", the mean difference ± its standard error, and their
    ratio.
    """
    gap = evaluation.differences(table, pairs)
    return pd.DataFrame(
        {
            "environment": gap["environment"],
            "difference": gap["one"] + " − " + gap["other"],
            "regret": [
                evaluation.within(mean, se, digits, sign=True)
                for mean, se in zip(gap["difference"], gap["se"], strict=True)
            ],
            "in standard errors": (gap["difference"] / gap["se"]).round(1),
            "replications": gap["replications"],
        }
    )


def with_errors(frame: pd.DataFrame, digits: int | Mapping[str, int] = 2) -> pd.DataFrame:
    """Return the frame for printing, with columns `NAME` and `NAME_se` joined as "mean ± error".

    Other numbers are rounded. digits: decimals of all columns, or by column (default 2).
    """
    columns = {}
    for place, name in enumerate(frame.columns):
        values = frame.iloc[:, place]
        error = f"{name}_se"
        n = digits if isinstance(digits, int) else digits.get(str(name), 2)
        if str(name).endswith("_se") and str(name).removesuffix("_se") in frame.columns:
            continue
        columns[name] = values
        if error in frame.columns or values.dtype.kind == "f":
            errors = frame[error] if error in frame.columns else [np.nan] * len(frame)
            pairs = zip(values, errors, strict=True)
            texts = [evaluation.within(mean, se, n) for mean, se in pairs]
            columns[name] = pd.Series(texts, frame.index)
    return pd.DataFrame(columns, index=frame.index)
