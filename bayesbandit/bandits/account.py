"""What the log of a bandit says of each arm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayesbandit.history import History

if TYPE_CHECKING:
    import pandas as pd


def summary(history: History) -> pd.DataFrame:
    """A row for each arm: see `Bandit.summary`."""
    import pandas as pd

    now = history.fork()
    played, reward, p = now.played(), now.reward, now.propensity
    rows = []
    for k in range(len(now.layout.arms)):
        r, w = reward[played == k], 1.0 / p[played == k]
        n, total = len(r), w.sum()
        value = w @ r / total if n else np.nan
        rows.append(
            {
                "rounds": n,
                "share": n / len(played) if len(played) else np.nan,
                "mean_reward": r.mean() if n else np.nan,
                "ipw_value": value,
                "ipw_se": np.sqrt(w**2 @ (r - value) ** 2) / total if n > 1 else np.nan,
                "smallest_propensity": p[played == k].min() if n else np.nan,
                "effective": total**2 / (w @ w) if n else 0.0,
            }
        )
    return pd.DataFrame(rows, pd.Index(now.layout.names, name="arm"))
