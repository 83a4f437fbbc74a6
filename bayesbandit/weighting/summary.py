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
        logged = ~np.isnan(propensity[arm == k])
        p = propensity[arm == k][logged]
        missing = "no propensity was logged" if len(r) else "no rounds"
        value = smallest = np.nan
        effective = np.nan if len(r) else 0.0
        if len(p):
            missing = "" if logged.all() else f"{len(p):,} of {len(r):,} rounds have a propensity"
            smallest = p.min(initial=1.0)
            w = np.divide(smallest, p, out=np.ones(len(p)), where=p > smallest)
            value = w @ r[logged] / w.sum()
            effective = w.sum() ** 2 / (w @ w)
        rows.append(
            {
                "rounds": len(r),
                "share": len(r) / len(arm) if len(arm) else np.nan,
                "mean_reward": r.mean() if len(r) else np.nan,
                "ipw_value": value,
                "smallest_propensity": smallest,
                "effective": effective,
                "removed": name not in now.layout.index,
                "note": "; ".join(filter(None, (window, missing))),
            }
        )
    frame = pd.DataFrame(rows, pd.Index(listed, name="arm"))
    frame.attrs = {"kept": len(now), "observed": now.total}
    return frame
