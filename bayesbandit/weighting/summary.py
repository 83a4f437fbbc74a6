"""The summary of each arm from a bandit's log, with notes on what the log cannot tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayesbandit.checks import number
from bayesbandit.history import History

if TYPE_CHECKING:
    import pandas as pd

# effective rounds that an se needs; rounds that the minimum probability must give an arm
MIN_EFFECTIVE_ROUNDS = 5
WARN_BELOW_ROUNDS = 50  # effective rounds below which an se may be too small


def summary(history: History, min_probability: float | None = None) -> pd.DataFrame:
    """Return a table with a row for each arm: see `Bandit.summary`."""
    import pandas as pd

    now = history.fork()
    reward = now.reward
    p = now.propensity
    names = now.names()
    played = now.played()
    removed = [names[k] for k in np.unique(played[played < 0])[::-1]]
    listed = list(dict.fromkeys((*now.layout.arms, *removed)))  # a name that came back: one arm
    place = {name: i for i, name in enumerate(listed)}
    arm = np.array([place.get(name, -1) for name in names])[played]
    window = f"of the latest {len(now):,} of {now.total:,} rounds" if len(now) < now.total else ""
    lacks = _lacks_floor(_floors(now, p, min_probability))
    rows = []
    for k, name in enumerate(listed):
        r, p_arm = reward[arm == k], p[arm == k]
        known = ~np.isnan(p_arm)
        w = _inverse(p_arm[known])
        r_known = r[known]
        total = w.sum()
        value = w @ r_known / total if total else np.nan
        effective = total**2 / (w @ w) if total else 0.0 if not len(r) else np.nan
        why = _refusal(len(r), len(w), effective, lacks)
        rows.append(
            {
                "rounds": len(r),
                "share": len(r) / len(arm) if len(arm) else np.nan,
                "mean_reward": r.mean() if len(r) else np.nan,
                "ipw_value": value,
                "ipw_se": np.nan if why else np.sqrt(w**2 @ (r_known - value) ** 2) / total,
                "smallest_propensity": p_arm[known].min() if len(w) else np.nan,
                "effective": effective,
                "removed": name not in now.layout.index,
                "note": "; ".join(
                    filter(None, (window, *_remarks(len(r), len(w), effective), why))
                ),
            }
        )
    frame = pd.DataFrame(rows, pd.Index(listed, name="arm"))
    frame.attrs = {"kept": len(now), "observed": now.total}
    return frame


def _floors(history: History, p: np.ndarray, declared: float | None) -> np.ndarray:
    """Return the minimum probability of an arm in each round that has a propensity p (n,).

    It is the policy's, or `declared` if that is larger. Raise ValueError if `declared` is more than
    a logged propensity.
    """
    floors = history.floors()[~np.isnan(p)]
    if declared is None:
        return floors
    floor = number(declared, "min_probability", above=0, most=1)
    if (smallest := p[~np.isnan(p)].min(initial=1.0)) < floor * (1.0 - 1e-9):
        raise ValueError(
            f"min_probability must be at most {smallest:g}, the smallest propensity of the log; "
            f"got {floor:g}"
        )
    return np.maximum(floors, floor)


def _inverse(p: np.ndarray) -> np.ndarray:
    """Return 1/p (n,) divided by the largest, so that no value is infinite."""
    smallest = p.min(initial=1.0)
    return np.divide(smallest, p, out=np.ones_like(p), where=p > smallest)


def _lacks_floor(floors: np.ndarray) -> str:
    """Return why minimum probabilities (n,) do not bound 1/p, or "" if they do.

    They stand in the order of the rounds.
    """
    earlier, later = np.array_split(floors, 2)
    floor = floors.min(initial=1.0)
    if floor <= 0.0:
        return "no min_probability was under all of its decisions"
    if later.min(initial=1.0) < earlier.min(initial=1.0):
        return "the least probability falls"
    if floor * len(floors) < MIN_EFFECTIVE_ROUNDS:
        return f"a least probability of {floor:g} is too small for {len(floors):,} rounds"
    return ""


def _refusal(n: int, n_known: int, effective: float, lacks: str) -> str:
    """Return why an arm has no standard error; n rounds, `n_known` of them with a propensity."""
    if not n_known:
        return "no propensity was logged" if n else "no rounds"
    if lacks:
        return f"no ipw_se: {lacks}"
    if effective < MIN_EFFECTIVE_ROUNDS:
        return f"no ipw_se: fewer than {MIN_EFFECTIVE_ROUNDS} effective rounds"
    return ""


def _remarks(n: int, n_known: int, effective: float) -> tuple[str, str]:
    """Return notes on an arm with n rounds, `n_known` of them with a propensity; "": no note."""
    part = f"{n_known:,} of {n:,} rounds have a propensity" if 0 < n_known < n else ""
    few = "few effective rounds: ipw_se may be too small"
    return part, few if MIN_EFFECTIVE_ROUNDS <= effective < WARN_BELOW_ROUNDS else ""
