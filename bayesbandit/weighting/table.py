"""The balance table compares each arm's contexts with all rounds', before and after weighting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayesbandit.checks import feature_names
from bayesbandit.history import History
from bayesbandit.weighting.base import mean_and_sd

if TYPE_CHECKING:
    import pandas as pd


def balance_table(history: History) -> pd.DataFrame:
    """Return standardised mean differences: (an arm's mean − all rounds' mean) / all rounds' sd.

    The table has a row for each arm and feature. Its columns are the differences `before` and
    `after` weighting, the arm's `rounds`, and their effective number, `effective` (Kish 1965). A
    constant feature has differences of 0.
    """
    import pandas as pd

    now = history.fork()
    x = now.x
    names, arm = now.by_name()
    if not len(x):
        raise ValueError("a balance table needs at least one round; the history has none")
    features = now.layout.features or feature_names(x.shape[1])
    mean, sd = mean_and_sd(x)
    parts = {}
    for k in np.unique(arm).tolist():
        mine = arm == k
        w = now.weight[mine]
        gaps = {
            "before": (x[mine].mean(axis=0) - mean) / sd,
            "after": (np.average(x[mine], axis=0, weights=w) - mean) / sd,
            "rounds": len(w),
            "effective": w.sum() ** 2 / (w @ w),
        }
        parts[names[k]] = pd.DataFrame(gaps, index=list(features))
    return pd.concat(parts, names=["arm", "feature"])
