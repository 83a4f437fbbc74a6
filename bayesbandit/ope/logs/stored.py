"""The log of a database: a service's decisions, in their order."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import Name
from bayesbandit.store.log import DecisionLog, Time
from bayesbandit.store.records import INACTIVE
from bayesbandit.tables.encoder import Encoder

if TYPE_CHECKING:
    import pandas as pd

AT_ONCE = 2_000  # decisions read at a time: 10 kB each meanwhile
COLUMNS = ["arm", "reward", "decided_at", "rewarded_at", "version"]


def of_decisions(
    log: DecisionLog, since: Time | None = None, until: Time | None = None
) -> dict[str, Any]:
    """Return the parts of the log of a database's decisions.

    Batches are the bandit's versions. If several processes decide, one may be a version behind: its
    rounds then belong to the newest version that had decided before.
    """
    import pandas as pd

    begun = log.ledger.begun()
    arms: dict[Name, int] = {}
    tables = list[dict[str, pd.DataFrame]]()
    for decisions in log.frames(since, until, AT_ONCE):
        for names in decisions["arms"].unique():
            for arm in names:
                arms.setdefault(arm, len(arms))
        tables.append(_columns(decisions, arms, begun.settings.activation))
    n = sum(len(each["rounds"]) for each in tables)
    if n < 2:
        raise ValueError(f"a log needs at least two rounds; {log} has {n} decisions of this time")
    joined = {name: pd.concat([each[name] for each in tables]) for name in tables[0]}
    has_context = joined["x"].notna().all(axis=1).to_numpy()
    if erased := int((~has_context).sum()):
        warnings.warn(
            f"the contexts of {erased} decisions are erased: they are left out", stacklevel=3
        )
    parts: dict[str, Any] = {name: each[has_context] for name, each in joined.items()}
    rounds = parts.pop("rounds")
    for name in ("probabilities", "mean", "available"):  # a later arm had none of them before
        parts[name] = parts[name].fillna(0.0).to_numpy()
    parts |= {"x": parts["x"].to_numpy(), "arms": tuple(arms)}
    parts |= {name: rounds[name].to_numpy() for name in ("arm", "reward")}
    parts |= {"time": rounds["decided_at"], "reward_time": rounds["rewarded_at"]}
    parts["batch"] = np.maximum.accumulate(rounds["version"].to_numpy(np.float64))
    if begun.encoder is not None:
        parts["encoder"] = Encoder.from_dict(begun.encoder)
        parts["features"] = tuple(parts["encoder"].features)
    return parts


def _columns(
    decisions: pd.DataFrame, arms: dict[Name, int], activation: bool
) -> dict[str, pd.DataFrame]:
    """Return tables of the decisions that were shown: `rounds`, contexts x, and three with a column
    for each of `arms`."""
    import pandas as pd

    shown = decisions["status"] != INACTIVE
    if activation:
        shown &= decisions["activated"]
    rounds = decisions[shown].reset_index(drop=True)
    e, mean, on = np.zeros((3, len(rounds), len(arms)))
    kinds, several = pd.factorize(rounds["arms"])
    for k, names in enumerate(several):
        which = np.flatnonzero(kinds == k)
        place = np.ix_(which, [arms[arm] for arm in names])
        means = np.stack(rounds["mean"].iloc[which].to_list())
        e[place] = np.stack(rounds["probabilities"].iloc[which].to_list())
        on[place] = means > -np.inf
        mean[place] = np.where(on[place], means, 0.0)
    each = {"probabilities": e, "mean": mean, "available": on, "x": np.array(rounds["x"].to_list())}
    found = {name: pd.DataFrame(part) for name, part in each.items()}
    return found | {"rounds": rounds[COLUMNS].copy()}  # no view of the whole table
