"""The log of a database: a service's decisions, in their order."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import Name
from bayesbandit.history import name_array
from bayesbandit.store.log import DecisionLog, Time
from bayesbandit.store.records import INACTIVE
from bayesbandit.store.rows import moment
from bayesbandit.store.settings import Settings
from bayesbandit.tables.encoder import Encoder

if TYPE_CHECKING:
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

    found = chunks(log.ledger, moment(since, "since"), moment(until, "until"), AT_ONCE)
    parts, is_open = of_chunks(log, found)
    if len(is_open) < 2:
        raise ValueError(
            f"a log needs at least two rounds; {log} has {len(is_open)} decisions of this time"
        )
    return parts


def of_chunks(log: DecisionLog, chunks: Iterable[Chunk]) -> tuple[dict[str, Any], np.ndarray]:
    """Return the parts of the log of these decisions, and a mask (n,) of open rewards."""
    parts: dict[str, list[np.ndarray]] = {}
    arms: dict[Name, int] = {}
    begun = log.ledger.begun()
    for chunk in chunks:
        for row in chunk.decisions:
            for arm in row.arms:
                arms.setdefault(arm, len(arms))
        for name, values in columns_of(chunk, arms, begun.settings, begun.n_features).items():
            parts.setdefault(name, []).append(values)
    if not parts:
        return {}, np.empty(0, dtype=np.bool_)
    known: dict[str, Any] = {
        name: np.concatenate([_widened(part, len(arms), name) for part in values])
        for name, values in parts.items()
    }
    erased = np.isnan(known["x"]).any(axis=1)
    if erased.any():
        n = int(erased.sum())
        warnings.warn(f"the contexts of {n} decisions are erased: they are left out", stacklevel=3)
        known = {name: values[~erased] for name, values in known.items()}
    known["batch"] = np.maximum.accumulate(known.pop("version")).astype(np.float64)
    known["arms"] = tuple(arms)
    if begun.encoder is not None:
        known["encoder"] = Encoder.from_dict(begun.encoder)
        known["features"] = tuple(known["encoder"].features)
    return known, known.pop("open")


def columns_of(
    chunk: Chunk, arms: dict[Name, int], how: Settings, n_features: int
) -> dict[str, np.ndarray]:
    """Return the columns of some decisions, by name, with a column for each of `arms`.

    Decisions that were not shown are left out. The reward of an open decision is NaN if it is not
    known yet: none has come, or others may still be added to it or take its place.
    """
    from bayesbandit.store.reading import OPEN_STATE, joined_rewards, moments

    rows = chunk.decisions
    reward, at, status = joined_rewards(chunk, how)
    is_open = np.array([one == OPEN_STATE for one in status])
    if how.aggregate != "first":
        reward[is_open] = np.nan  # more may come
    n, K = len(rows), len(arms)
    e = np.zeros((n, K))
    mean = np.zeros((n, K))
    on = np.zeros((n, K), dtype=np.bool_)
    for which, own, means, _ in moments(rows):
        place = np.ix_(which, [arms[arm] for arm in own])
        e[place] = np.stack([rows[i].probabilities for i in which])
        on[place] = means > -np.inf
        mean[place] = np.where(on[place], means, 0.0)
    came = np.array(at, dtype=np.int64)
    columns = {
        "x": np.array([row.row[:n_features] for row in rows]),
        "arm": name_array(tuple(row.arm for row in rows)),
        "reward": reward,
        "probabilities": e,
        "mean": mean,
        "available": on,
        "time": np.array([row.decided_at for row in rows]) / 1e6,
        "reward_time": np.where(came < 0, np.nan, came / 1e6),
        "version": np.array([row.version for row in rows]),
        "open": is_open,
    }
    shown = np.array([one != INACTIVE for one in status])
    if how.activation:
        shown &= np.array([row.id in chunk.activated for row in rows])
    return {name: values[shown] for name, values in columns.items()}


def _widened(part: np.ndarray, K: int, name: str) -> np.ndarray:
    """Return columns (n, K) of all arms from columns (n, k) of the first k arms."""
    if name not in ("probabilities", "mean", "available") or part.shape[1] == K:
        return part
    wide = np.zeros((len(part), K), dtype=part.dtype)
    wide[:, : part.shape[1]] = part
    return wide
