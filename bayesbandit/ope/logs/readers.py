"""Logs from a bandit's history and from tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import EXACT, Name, Table, arm_names
from bayesbandit.history import History, name_array
from bayesbandit.kernels.propensities import all_chances
from bayesbandit.tables import inputs
from bayesbandit.tables.dates import moments
from bayesbandit.tables.encoder import Encoder
from bayesbandit.tables.recognition import check_no_identifier
from bayesbandit.tables.role_names import CONTEXT, HISTORY
from bayesbandit.tables.roles import names_in, roles_of

if TYPE_CHECKING:
    import pandas as pd

TIMES = ("time", "reward_time")
STORED = {"decision_id", "decided_at", "probabilities", "status"}  # columns of `DecisionLog.frame`


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
    whole = inside & (np.abs(own - p) <= EXACT) & (np.abs(e.sum(axis=1) - 1) <= EXACT)
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
    arm: str | None = None,
    reward: str | None = None,
    propensity: str | None = None,
    probabilities: Mapping[Name, str] | None = None,
    x: Sequence[str] | None = None,
    time: str | None = None,
    reward_time: str | None = None,
    batch: str | None = None,
    weight: str | None = None,
    arms: Any = None,
    drop: Collection[str] = (),
    keep: Collection[str] = (),
    encoder: Encoder | None = None,
) -> dict[str, Any]:
    """Return the parts of the log of a table with a row for each round.

    The arguments name the columns with these roles; see `Log.of`.
    """
    frame, _ = inputs.table(table)
    not_stored(frame, "the table")
    named: dict[str, Any] = {"arm": arm, "reward": reward, "propensity": propensity, "time": time}
    named |= {"reward_time": reward_time, "batch": batch, "weight": weight}
    roles = roles_of(
        frame, "the table", probabilities=probabilities, x=x, drop=drop, keep=keep,
        encoder=encoder, arms=None if arms is None else arm_names(arms), **named,
    )  # fmt: skip
    if x is None and encoder is None and not roles.of_history:
        kept = names_in(keep)
        check_no_identifier([name for name in roles.contexts if name not in kept], "x")
    contexts = frame[list(roles.contexts)]
    strange = [name for name in contexts if contexts[name].dtype.kind not in "biuf"]
    if encoder is None and strange:
        raise ValueError(
            f"contexts must be numbers; column {strange[0]!r} is not. Name the columns that are, "
            "x=[…], leave it out, drop=[…], or give encoder=bb.Encoder.fit(…)"
        )
    vectors = dict(roles.probabilities)
    if vectors:
        arms = list(vectors) if arms is None else list(arm_names(arms))
        if set(vectors) != set(arms):
            raise ValueError(
                f"probabilities must have a column for each arm of {arms!r}; got {vectors!r}"
            )
        vectors = {a: vectors[a] for a in arms}
    if encoder is not None:
        contexts = encoded(contexts, encoder)
    elif roles.of_history:
        contexts = contexts.rename(columns={f"{name}{CONTEXT}": name for name in HISTORY})
    parts = {role: frame[column].to_numpy() for role, column in roles.named.items()}
    parts |= {
        role: moments(frame[roles.named[role]], role) for role in TIMES if role in roles.named
    }
    return {
        "x": contexts if roles.contexts else None,
        "probabilities": frame[list(vectors.values())].to_numpy() if vectors else None,
        "arms": arms,
        "encoder": encoder,
        "roles": roles,
        **parts,
    }


def not_stored(frame: pd.DataFrame, name: str) -> None:
    """Raise ValueError for a table of `DecisionLog.frame()`."""
    if {*map(str, frame.columns)} >= STORED:
        raise ValueError(
            f"{name} is one of DecisionLog.frame(), which does not say which rewards are settled: "
            "bb.ope.Log.of(log) reads the log itself"
        )


def encoded(frame: pd.DataFrame, encoder: Encoder) -> pd.DataFrame:
    """Return contexts as numbers, in columns with the names of the encoder's features."""
    import pandas as pd

    x = encoder.transform(frame[list(encoder.columns)])
    return pd.DataFrame(x, columns=list(encoder.features))
