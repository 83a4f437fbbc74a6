"""How far each arm's contexts are from those of all rounds, before and after weighing."""

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
    """Standardised mean differences: (an arm's mean − all rounds' mean) / all rounds' sd.

    weight: of the history's rounds (n,), > 0; None: those with which they entered their arm's
    estimate, `history.weight`. features: their names; None: x0, x1, … Rows are arms and features;
    `before` and `after` weighing, `rounds` of the arm, and how many even ones its weights are worth
    (`effective`, Kish 1965). A feature that never changes has differences of 0.
    """
    import pandas as pd

    now = history.fork()
    x, played, names = now.x, now.played(), now.names()
    n, d = x.shape
    if n == 0:
        raise ValueError("a balance table needs at least one round; the history has none")
    weight = now.weight if weight is None else column(weight, n, "weight")
    if not (weight > 0.0).all():
        raise ValueError(f"weight must be > 0; got {weight.min():g}")
    features = [f"x{j}" for j in range(d)] if features is None else list(features)
    if len(features) != d:
        raise ValueError(f"features must be {d} names; got {len(features)}")
    centre, width = measured(x)
    parts = []
    for k in sorted(set(played.tolist()), key=lambda k: (k < 0, abs(k))):
        mine, w = x[played == k], weight[played == k]
        parts.append(
            pd.DataFrame(
                {
                    "before": (mine.mean(axis=0) - centre) / width,
                    "after": (np.average(mine, axis=0, weights=w) - centre) / width,
                    "rounds": len(w),
                    "effective": w.sum() ** 2 / (w @ w),
                },
                index=pd.MultiIndex.from_product([[names[k]], features], names=["arm", "feature"]),
            )
        )
    return pd.concat(parts)
