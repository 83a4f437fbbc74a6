"""Logs from a bandit's history and from tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bayesbandit.checks import Name, Table
from bayesbandit.history import History, name_array
from bayesbandit.kernels.propensities import all_chances
from bayesbandit.ope.logs.columns import SLACK
from bayesbandit.tables import inputs

ROLES = ("arm", "reward", "propensity", "time", "reward_time", "batch")


def of_history(history: Any) -> dict[str, Any]:
    """Return the parts of the log of a history: contexts, arms, rewards, probabilities and means.

    The log has only the chosen arms' propensities if rounds came by `update` with a propensity, or
    if arms have changed. If arms have features it has no contexts: the history keeps only the
    chosen arm's.
    """
    if not isinstance(history, History):
        raise TypeError(f"Log.of takes a bandit's history or a table; got {history!r}")
    if len(history) < 2:
        raise ValueError(f"a log needs at least two rounds; the history has {len(history)}")
    now = history.fork()
    layout, rows, p = now.layout, now.ordered().copy(), now.propensity
    arms, K = now.names(), len(now.layout.arms)
    played = now.played() % len(arms)
    e = np.empty((len(rows), K))
    all_chances(rows, layout.n_columns, K, e)
    inside = played < K
    own = e[np.arange(len(rows)), np.where(inside, played, 0)]
    # these are the probabilities of the decision, unless another propensity was given
    whole = inside & (np.abs(own - p) <= SLACK) & (np.abs(e.sum(axis=1) - 1) <= SLACK)
    x = None if layout.of_arms else now.x
    names = name_array(arms)[played]
    parts = {"x": x, "arm": names, "reward": now.reward, "arms": arms}
    if layout.features is not None and x is not None:
        parts["features"] = tuple(layout.features)
    if not whole.all() or len(arms) > K:
        return {**parts, "propensity": p}
    mean = layout.records(rows)["mean"]
    on = mean > -np.inf
    if not layout.of_arms:
        parts["mean"] = np.where(on, mean, 0.0)
    return {**parts, "probabilities": e / e.sum(axis=1, keepdims=True), "available": on}


def of_frame(
    table: Table,
    arm: str = "arm",
    reward: str = "reward",
    propensity: str | None = None,
    probabilities: Mapping[Name, str] | None = None,
    x: Sequence[str] | None = None,
    time: str | None = None,
    reward_time: str | None = None,
    batch: str | None = None,
    arms: Any = None,
) -> dict[str, Any]:
    """Return the parts of the log of a table with a row for each round.

    The arguments name the columns with these roles; see `Log.of`.
    """
    frame, _ = inputs.table(table)
    names = list(frame.columns)
    if propensity is None and "propensity" in names:
        propensity = "propensity"
    roles = dict(zip(ROLES, (arm, reward, propensity, time, reward_time, batch), strict=True))
    vectors = dict(probabilities or {})
    check_columns("the table", names, roles, vectors)
    if propensity is None and not vectors:
        raise ValueError(
            "propensity= must name the column of the chosen arms' probabilities, or "
            f"probabilities= a column for each arm; the table has {names!r}"
        )
    taken = {*roles.values(), *vectors.values()}
    features = [name for name in names if name not in taken] if x is None else list(x)
    strange = [name for name in features if frame[name].dtype.kind not in "biuf"]
    if strange:
        raise ValueError(
            f"contexts must be numbers; column {strange[0]!r} is not. Name the columns that are, "
            "x=[…], or encode the table with bb.Encoder"
        )
    if vectors:
        arms = list(vectors) if arms is None else arms
        if set(vectors) != set(arms):
            raise ValueError(
                f"probabilities must have a column for each arm of {list(arms)!r}; got {vectors!r}"
            )
        vectors = {a: vectors[a] for a in arms}
    parts = {
        role: None if column is None else frame[column].to_numpy() for role, column in roles.items()
    }
    return {
        "x": frame[features] if features else None,
        "probabilities": frame[list(vectors.values())].to_numpy() if vectors else None,
        "arms": arms,
        **parts,
    }


def check_columns(
    table: str, there: Sequence[str], roles: Mapping[str, str | None], vectors: Mapping[Name, str]
) -> None:
    """Raise ValueError for a named column that the table has not.

    roles: columns by role. vectors: those of probabilities, by arm.
    """
    named = (*roles.items(), *((f"probability of {arm!r}", c) for arm, c in vectors.items()))
    for role, column in named:
        if column is not None and column not in there:
            raise ValueError(f"{table} has no column {column!r} ({role}); it has {there!r}")
