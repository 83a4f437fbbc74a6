"""The summary of each arm from a bandit's log, with notes on what the log cannot tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayesbandit.history import History

if TYPE_CHECKING:
    import pandas as pd


def summary(history: History) -> pd.DataFrame:
    """Return a table with a row for each arm: see `Bandit.summary`."""
    import pandas as pd

    now = history.fork()
    listed, arm = now.by_name()
    reward = now.reward
    propensity = now.propensity
    window = f"of the latest {len(now):,} of {now.total:,} rounds" if len(now) < now.total else ""
    rows = []
    for k, name in enumerate(listed):
        r = reward[arm == k]
        p = propensity[arm == k]
        has_propensity = ~np.isnan(p)
        smallest = p[has_propensity].min(initial=1.0)
        w = np.divide(
            smallest,
            p[has_propensity],
            out=np.ones(has_propensity.sum()),
            where=p[has_propensity] > smallest,
        )
        missing = "no propensity was logged" if len(r) else "no rounds"
        if has_propensity.any():
            missing = f"{has_propensity.sum():,} of {len(r):,} rounds have a propensity"
        rows.append(
            {
                "rounds": len(r),
                "share": len(r) / len(arm) if len(arm) else np.nan,
                "mean_reward": r.mean() if len(r) else np.nan,
                "ipw_value": w @ r[has_propensity] / w.sum() if has_propensity.any() else np.nan,
                "smallest_propensity": smallest if has_propensity.any() else np.nan,
                "effective": w.sum() ** 2 / (w @ w)
                if has_propensity.any()
                else np.nan
                if len(r)
                else 0.0,
                "removed": name not in now.layout.index,
                "note": "; ".join(
                    filter(None, (window, "" if has_propensity.all() and len(r) else missing))
                ),
            }
        )
    frame = pd.DataFrame(rows, pd.Index(listed, name="arm"))
    frame.attrs = {"kept": len(now), "observed": now.total}
    return frame
