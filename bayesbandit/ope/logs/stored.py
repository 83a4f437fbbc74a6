"""The log of a database: a service's decisions, in their order."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import Name
from bayesbandit.store.log import DecisionLog, Time
from bayesbandit.store.records import INACTIVE
from bayesbandit.store.rows import to_microseconds
from bayesbandit.store.settings import Settings
from bayesbandit.tables.encoder import Encoder

if TYPE_CHECKING:
    import pandas as pd

    from bayesbandit.store.reading import Chunk

AT_ONCE = 10_000  # decisions read at a time


def of_decisions(
    log: DecisionLog, since: Time | None = None, until: Time | None = None
) -> dict[str, Any]:
    """Return the parts of the log of a database's decisions.

    Batches are the bandit's versions. If several processes decide, one may be a version behind: its
    rounds then belong to the newest version that had decided before.
    """
    from bayesbandit.store.reading import chunks

    selected = chunks(
        log.ledger, to_microseconds(since, "since"), to_microseconds(until, "until"), AT_ONCE
    )
    parts, is_open = of_chunks(log, selected)
    if len(is_open) < 2:
        raise ValueError(
            f"a log needs at least two rounds; {log} has {len(is_open)} decisions of this time"
        )
    return parts


def of_chunks(log: DecisionLog, chunks: Iterable[Chunk]) -> tuple[dict[str, Any], np.ndarray]:
    """Return the parts of the log of these decisions, and a mask (n,) of open rewards."""
    import pandas as pd

    from bayesbandit.store.reading import table

    begun = log.ledger.begun()
    arms: dict[Name, int] = {}
    tables = list[dict[str, pd.DataFrame]]()
    for chunk in chunks:
        decisions = table(chunk, begun.settings, begun.n_features)
        for names in decisions["arms"].unique():
            for arm in names:
                arms.setdefault(arm, len(arms))
        tables.append(_columns(decisions, arms, begun.settings))
    if not tables:
        return {}, np.empty(0, dtype=np.bool_)
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
    return parts, rounds["open"].to_numpy()


def _columns(
    decisions: pd.DataFrame, arms: dict[Name, int], how: Settings
) -> dict[str, pd.DataFrame]:
    """Return tables of the decisions that were shown: `rounds`, contexts x, and three with a column
    for each of `arms`.

    The reward of an open decision is NaN if it is not known yet: none has come, or others may still
    be added to it or take its place.
    """
    import pandas as pd

    from bayesbandit.store.reading import OPEN_STATE

    shown = decisions["status"] != INACTIVE
    if how.activation:
        shown &= decisions["activated"]
    rounds = decisions[shown].reset_index(drop=True)
    rounds["open"] = rounds["status"] == OPEN_STATE
    if how.aggregate != "first":
        rounds["reward"] = rounds["reward"].where(~rounds["open"])  # more may come
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
    return {"rounds": rounds} | {name: pd.DataFrame(part) for name, part in each.items()}
