"""The balance table compares each arm's contexts with all rounds', before and after weighting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bayesbandit.checks import column
from bayesbandit.history import History
from bayesbandit.weighting.base import measured

if TYPE_CHECKING:
    import pandas as pd


def balance_table(
    history: History, weight: np.ndarray | None = None, features: Sequence[str] | None = None
) -> pd.DataFrame:
    """Return standardised mean differences: (an arm's mean − all rounds' mean) / all rounds' sd.

    The table has a row for each arm and feature. Its columns are the differences `before` and
    `after` weighting, the arm's `rounds`, and their effective number, `effective` (Kish 1965). A
    constant feature has differences of 0.

    weight: the rounds' weights (n,), > 0; None: `history.weight`.
    features: their names; None: x0, x1, …
    """
    import pandas as pd

    now = history.fork()
    x = now.x
    played = now.played()
    names = now.names()
    n, d = x.shape
    if n == 0:
        raise ValueError("a balance table needs at least one round; the history has none")
    weight = now.weight if weight is None else column(weight, n, "weight")
    if not (weight > 0.0).all():
        raise ValueError(f"weight must be > 0; got {weight.min():g}")
    features = [f"x{j}" for j in range(d)] if features is None else list(features)
    if len(features) != d:
        raise ValueError(f"features must be {d} names; got {len(features)}")
    mean, sd = measured(x)
    in_order = sorted(set(played.tolist()), key=lambda k: (k < 0, abs(k)))
    parts = {}
    for name in dict.fromkeys(names[k] for k in in_order):  # a name that came back: one arm
        mine = np.isin(played, [k for k in in_order if names[k] == name])
        w = weight[mine]
        gaps = {
            "before": (x[mine].mean(axis=0) - mean) / sd,
            "after": (np.average(x[mine], axis=0, weights=w) - mean) / sd,
            "rounds": len(w),
            "effective": w.sum() ** 2 / (w @ w),
        }
        parts[name] = pd.DataFrame(gaps, index=features)
    return pd.concat(parts, names=["arm", "feature"])
