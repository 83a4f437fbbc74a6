"""The log of a database: a service's decisions, in their order."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from bayesbandit.checks import Name
from bayesbandit.forms import picked
from bayesbandit.store.log import DecisionLog, Time
from bayesbandit.store.records import INACTIVE
from bayesbandit.tables.encoder import Encoder

AT_ONCE = 2_000  # decisions read at a time: 10 kB each meanwhile
COLUMNS = ["arm", "reward", "decided_at", "rewarded_at", "version"]
OF_ARMS = ["probabilities", "mean"]  # columns with a value for each arm of a decision


def of_decisions(
    log: DecisionLog, since: Time | None = None, until: Time | None = None
) -> dict[str, Any]:
    """Return the parts of the log of a database's decisions that were shown.

    Batches are the bandit's versions. If several processes decide, one may be a version behind: its
    rounds then belong to the newest version that had decided before.
    """
    import pandas as pd

    begun = log.ledger.begun()
    arms: dict[Name, int] = {}
    n = 0
    tables = list[pd.DataFrame]()
    blocks = []  # probabilities and means of decisions about the same arms, and their places
    contexts = [np.empty((0, begun.n_features))]
    for decisions in log.frames(since, until, AT_ONCE):
        for names in decisions["arms"].unique():
            for arm in names:
                arms.setdefault(arm, len(arms))
        shown = decisions["status"] != INACTIVE
        if begun.settings.activation:
            shown &= decisions["activated"]
        rows = decisions[shown]
        tables.append(rows[COLUMNS].copy())  # no view of the whole table
        for alike in rows.groupby("arms", sort=False).indices.values():
            alike = np.asarray(alike)
            place = np.ix_(n + alike, [arms[arm] for arm in rows["arms"].iloc[alike[0]]])
            p, mean = (np.stack(rows[name].iloc[alike].to_list()) for name in OF_ARMS)
            blocks.append((place, p, mean))
        n += len(rows)
        contexts.append(np.reshape(rows["x"].to_list(), (len(rows), begun.n_features)))
    if n < 2:
        raise ValueError(f"a log needs at least two rounds; {log} has {n} decisions of this time")
    x = np.concatenate(contexts)
    rounds = pd.concat(tables, ignore_index=True)
    probabilities, means, available = np.zeros((3, n, len(arms)))
    for place, p, mean in blocks:
        probabilities[place] = p
        means[place] = np.where(mean > -np.inf, mean, 0.0)
        available[place] = mean > -np.inf
    parts: dict[str, Any] = {
        "x": x,
        "arm": rounds["arm"].to_numpy(),
        "reward": rounds["reward"].to_numpy(),
        "probabilities": probabilities,
        "mean": means,
        "available": available,
        "time": rounds["decided_at"],
        # clocks may differ: a reward may be dated before its decision
        "reward_time": rounds["rewarded_at"].clip(lower=rounds["decided_at"]),
        "batch": np.maximum.accumulate(rounds["version"].to_numpy(np.float64)),
    }
    has_context = ~np.isnan(x).any(axis=1)
    if erased := int((~has_context).sum()):
        warnings.warn(
            f"the contexts of {erased} decisions are erased: they are left out", stacklevel=3
        )
        parts = picked(parts, has_context)
    parts["arms"] = tuple(arms)
    if begun.encoder is not None:
        parts["encoder"] = Encoder.from_dict(begun.encoder)
        parts["features"] = tuple(parts["encoder"].features)
    return parts
