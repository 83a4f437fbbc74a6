"""How well each arm's mean reward is known: squared bias, variance, and coverage of intervals.

Of R replications that were asked at the same contexts. Squared bias and variance are no means over
replications, and come as R pseudo-values of the jackknife (Tukey 1958): R s − (R − 1) s₋ᵢ, with s₋ᵢ
the statistic without replication i. Their mean is s itself, their standard error is that of s, and
two bandits that face the same replications are compared by the differences of theirs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from bayesbandit.evaluation.results import seed_of

Array = np.ndarray
NORMAL_95 = 1.959963984540054  # half the width of a 95 % interval, in standard deviations
FEWEST = 3  # replications: without one of them two are left, which have a variance


def replays(replications: int, most: int) -> int:
    """Return how many replications estimates are judged by: as many as there are, up to a number,
    and enough for the jackknife."""
    return max(FEWEST, min(replications, most))


def replayed(table: pd.DataFrame, most: int) -> tuple[int, int, int]:
    """Return the replications (at most so many), rounds and seed of an experiment's table, for
    what is estimated beside its runs."""
    n = int(table["replication"].nunique())
    return replays(n, most), int(table["t"].max()), seed_of(table)


def accuracy(estimated: Array, truth: Array, sd: Array | None = None) -> pd.DataFrame:
    """Return a row for each replication and arm number, means over contexts: `squared_error`, which
    is `squared_bias` + `variance` in the mean over replications; and `coverage`, the share of
    contexts where mean ± 1.96 sd has the truth.

    estimated, sd (R, m, K): of R ≥ 3 replications at m contexts; truth (m, K). Without sd, coverage
    is NaN. Squared bias is without its own bias, (mean − truth)² − variance / R, and can be < 0.
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
    """Return the squared bias of errors (R, m, K), without its own bias, mean over contexts:
    (K,)."""
    return np.asarray((error.mean(axis=0) ** 2).mean(axis=0) - variance(error) / len(error))


def pseudo_values(statistic: Callable[[Array], Array], values: Array) -> Array:
    """Return the pseudo-values (R, K) of a statistic (K,) of values (R, …)."""
    R, whole = len(values), statistic(values)
    without = [statistic(np.delete(values, i, axis=0)) for i in range(R)]
    return np.asarray(R * whole - (R - 1) * np.stack(without))


def root(square: float, se: float) -> tuple[float, float]:
    """Return the root of an estimate that cannot be below 0 but for noise, and its standard error,
    which is se / 2√square where that is small, and finite at 0."""
    found = np.sqrt(max(square, 0.0))
    return float(found), float(np.sqrt(max(square, 0.0) + se) - found)
