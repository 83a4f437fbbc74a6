"""Logs from a bandit's history and from tables."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import SILENT_TOLERANCE, Arms, Array, Name, Table, arm_names, same_rows
from bayesbandit.environments.encoding import classes, levels_of
from bayesbandit.history import History, name_array
from bayesbandit.kernels.propensities import chances
from bayesbandit.tables import inputs
from bayesbandit.tables.encoder import Encoder
from bayesbandit.tables.fitting import check_no_identifier
from bayesbandit.tables.role_names import CONTEXT, HISTORY
from bayesbandit.tables.roles import Roles, blamed, names_in, roles_of
from bayesbandit.tables.words import moments, numbers, whole

if TYPE_CHECKING:
    import pandas as pd

READER_OF_ROLE = {
    "reward": numbers, "propensity": numbers, "batch": numbers, "time": moments,
    "reward_time": moments,
}  # fmt: skip


def of_history(history: Any) -> dict[str, Any]:
    """Return the parts of the log of a history: contexts, arms, rewards, probabilities and means.

    The log has only the chosen arms' propensities if rounds came by `update` with a propensity, or
    if arms have changed; of rounds before a change it is not known which other arms were available.
    If arms have features it has no contexts: the history keeps only the chosen arm's.
    """
    if not isinstance(history, History):
        raise TypeError(
            f"Log.of takes a bandit's history or a table; got a {type(history).__name__}"
        )
    if len(history) < 2:
        raise ValueError(f"a log needs at least two rounds; the history has {len(history)}")
    if len(history) < history.total:
        warnings.warn(
            f"the log has the latest {len(history)} of {history.total} rounds; a bandit with "
            "history=None keeps all",
            stacklevel=3,
        )
    now = history.fork()
    layout = now.layout
    rows = now.ordered().copy()
    p = now.propensity
    arms, played = now.by_name()
    K = len(now.layout.arms)
    e = chances(rows, 0, layout.n_columns, K, K)
    inside = played < K
    chosen = e[np.arange(len(rows)), np.where(inside, played, 0)]
    # these are the probabilities of the decision, unless another propensity was given
    is_complete = (
        inside
        & (np.abs(chosen - p) <= SILENT_TOLERANCE)
        & (np.abs(e.sum(axis=1) - 1) <= SILENT_TOLERANCE)
    )
    x = None if layout.of_arms else now.x
    names = name_array(arms)[played]
    parts = {"x": x, "arm": names, "reward": now.reward, "arms": arms}
    if layout.features is not None and x is not None:
        parts["features"] = tuple(layout.features)
    mean = layout.records(rows)["mean"]
    on = mean > -np.inf
    if not is_complete.all() or len(arms) > K:
        available = np.zeros((len(rows), len(arms)), dtype=bool)
        # an update says nothing of other arms; a change of arms takes the means of all before it
        updated = (on.sum(axis=1) == 1) & (p < 1.0)
        available[:, :K] = on | updated[:, None]
        available[np.arange(len(rows)), played] = True
        return {**parts, "propensity": p, "available": available}
    if not layout.of_arms:
        parts["mean"] = np.where(on, mean, 0.0)
    return {**parts, "probabilities": e / e.sum(axis=1, keepdims=True), "available": on}


def roles_in(frame: pd.DataFrame, name: str, *, arms: Arms | None = None, **columns: Any) -> Roles:
    """Return the role of each column of a log. name: what errors call it."""
    if len(frame) < 2:
        raise ValueError(f"a log needs at least two rounds; got {len(frame)} in {name}")
    return roles_of(frame, name, arms=None if arms is None else arm_names(arms), **columns)


def of_frame(
    table: Table,
    name: str = "the table",
    *,
    x: Sequence[str] | None = None,
    arms: Arms | None = None,
    keep: Collection[Name] = (),
    encoder: Encoder | None = None,
    **columns: Any,
) -> dict[str, Any]:
    """Return the parts of the log of a table with a row for each round; see `Log.of`.

    columns: those by role, probabilities and drop, as `roles_of` takes them. arms: the arms' names.
    Default: those with a probability, or those that were chosen. An arm with probability 0 was not
    available.
    """
    import pandas as pd

    frame = inputs.table(table)
    roles = roles_in(frame, name, x=x, keep=keep, encoder=encoder, arms=arms, **columns)
    contexts = frame[list(roles.contexts)]
    if encoder is not None:
        encoded = encoder.transform(contexts[list(encoder.columns)])
        contexts = pd.DataFrame(encoded, columns=list(encoder.features))
    elif roles.of_history:
        contexts = contexts.rename(columns={f"{name}{CONTEXT}": name for name in HISTORY})
    elif x is None:
        to_keep = names_in(keep)
        check_no_identifier([column for column in roles.contexts if column not in to_keep], "x")
    strange = [column for column in contexts if contexts[column].dtype.kind not in "biuf"]
    if strange:
        raise ValueError(
            f"contexts must be numbers; column {strange[0]!r} is not. Name the columns that are, "
            "x=[…], leave it out, drop=[…], or give encoder=bb.Encoder.fit(…)"
        )
    named = roles.named
    each = roles.probabilities
    declared = tuple(each) if arms is None else arm_names(arms)
    k, names = _arms_of(frame[named["arm"]], str(named["arm"]), declared)
    parts: dict[str, Any] = {"arm": name_array(names)[k], "arms": names, "roles": roles}
    if each:
        if {*each} != {*names}:
            raise ValueError(
                f"probabilities must have a column for each arm of {list(names)!r}; got {each!r}"
            )
        p = np.column_stack([numbers(frame[each[arm]], f"P({arm})") for arm in names])
        parts["probabilities"] = p
        if (p == 0).any() and (p[np.arange(len(p)), k] > 0).all():
            parts["available"] = p > 0
    with blamed(roles):
        for role in (role for role in named if role in READER_OF_ROLE):
            parts[role] = READER_OF_ROLE[role](frame[named[role]], role)
    parts["x"] = contexts if roles.contexts else None
    return {**parts, "encoder": encoder, "index": same_rows(table=table)}


def _arms_of(
    column: pd.Series, name: str, declared: tuple[Name, ...]
) -> tuple[Array, tuple[Name, ...]]:
    """Return the numbers (n,) of the chosen arms, and the arms' names."""
    try:
        found_in = classes if column.nunique() > 1 else levels_of
        number, levels = found_in(whole(column))
    except ValueError as error:
        raise ValueError(f"column {name!r} (arm): {error}") from error
    arms = declared or levels
    spoken = {str(arm): k for k, arm in enumerate(arms)}
    if unknown := [arm for arm in levels if str(arm) not in spoken]:
        raise ValueError(
            f"column {name!r} (arm) has {unknown[0]!r}; the arms, of arms= or with a column of "
            f"probabilities, are {list(arms)!r}"
        )
    return np.array([spoken[str(arm)] for arm in levels])[number], arms
