"""Accuracy of estimated mean rewards: squared bias, variance, and coverage of intervals.

All R replications are evaluated at the same contexts. Squared bias and variance are not means over
replications. They are given as R pseudo-values of the jackknife (Tukey 1958), R s − (R − 1) s₋ᵢ,
with s₋ᵢ the statistic without replication i. Their mean is s, and their standard error is that of
s. Two bandits with the same replications are compared by paired differences.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from bayesbandit.evaluation.results import seed_of

Array = np.ndarray
NORMAL_95 = 1.959963984540054  # half the width of a 95 % interval, in standard deviations
FEWEST = 3  # replications: the jackknife leaves one out, and a variance needs two


def replays(replications: int, most: int) -> int:
    """Return how many replications to use: at most `most`, and enough for the jackknife."""
    return max(FEWEST, min(replications, most))


def replayed(table: pd.DataFrame, most: int) -> tuple[int, int, int]:
    """Return the replications (see `replays`), rounds and seed with which to repeat an experiment.

    table: the experiment's results.
    """
    n = int(table["replication"].nunique())
    return replays(n, most), int(table["t"].max()), seed_of(table)


def accuracy(estimated: Array, truth: Array, sd: Array | None = None) -> pd.DataFrame:
    """Return squared errors and coverage, one row for each replication and arm number.

    estimated, sd (R, m, K): of R ≥ 3 replications at m contexts. truth (m, K).
    The columns are means over contexts. The mean of `squared_error` over replications is that of
    `squared_bias` + `variance`. `coverage` is the share of contexts where
    mean ± 1.96 sd contains the truth; NaN without sd. Squared bias is corrected for its bias,
    (mean − truth)² − variance / R, and can be < 0.
    """
    R = len(estimated)
    if R < FEWEST:
        raise ValueError(f"the jackknife needs at least {FEWEST} replications; got {R}")
    if estimated.shape[1:] != truth.shape or not (sd is None or sd.shape == estimated.shape):
        other = "" if sd is None else f", sd {sd.shape}"
        raise ValueError(f"shapes differ: {estimated.shape}, truth {truth.shape}{other}")
    error = estimated - truth
    covered = np.full_like(error, np.nan) if sd is None else np.abs(error) <= NORMAL_95 * sd
    columns = {
        "squared_error": (error**2).mean(axis=1),
        "squared_bias": pseudo_values(squared_bias, error),
        "variance": pseudo_values(variance, error),
        "coverage": covered.mean(axis=1),
    }
    replication, arm = np.indices(columns["variance"].shape)
    rows = {"replication": replication, "arm": arm} | columns
    return pd.DataFrame({name: values.ravel() for name, values in rows.items()})


def variance(error: Array) -> Array:
    """Return the variance over replications of errors (R, m, K), mean over contexts: (K,)."""
    return np.asarray(error.var(axis=0, ddof=1).mean(axis=0))


def squared_bias(error: Array) -> Array:
    """Return the bias-corrected squared bias of errors (R, m, K), mean over contexts: (K,)."""
    return np.asarray((error.mean(axis=0) ** 2).mean(axis=0) - variance(error) / len(error))


def pseudo_values(statistic: Callable[[Array], Array], values: Array) -> Array:
    """Return the jackknife pseudo-values (R, K) of a statistic (K,) of values (R, …)."""
    R, s = len(values), statistic(values)
    leave_one_out = [statistic(np.delete(values, i, axis=0)) for i in range(R)]
    return np.asarray(R * s - (R - 1) * np.stack(leave_one_out))


def root(square: float, se: float) -> tuple[float, float]:
    """Return the square root of an estimate, and its standard error √(square + se) − √square.

    A negative estimate counts as 0. The error is near se / 2√square if that is small, and is
    finite at 0.
    """
    value = np.sqrt(max(square, 0.0))
    return float(value), float(np.sqrt(max(square, 0.0) + se) - value)
