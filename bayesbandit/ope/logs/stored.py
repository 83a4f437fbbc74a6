"""The log of a database: a service's decisions, in their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.bandit import choosing
from bayesbandit.bandit.bandit import Bandit
from bayesbandit.checks import Name
from bayesbandit.history import name_array
from bayesbandit.store import versions
from bayesbandit.store.log import DecisionLog, Time
from bayesbandit.store.records import INACTIVE
from bayesbandit.store.rows import Parts, moment
from bayesbandit.store.settings import Settings
from bayesbandit.tables.encoder import Encoder

if TYPE_CHECKING:
    from bayesbandit.store.reading import Chunk

Snapshots = Callable[[Any, np.ndarray], np.ndarray]
AT_ONCE = 10_000  # decisions read at a time
MOST = 200  # largest number of snapshots in memory, one for each version


def of_decisions(
    log: DecisionLog, since: Time | None = None, until: Time | None = None, snapshots: bool = True
) -> dict[str, Any]:
    """Return the parts of the log of a database's decisions.

    Batches are the bandit's versions. If several processes decide, one may be a version behind: its
    rounds then belong to the newest version that had decided before. There are snapshots if each
    round was decided by the version of its batch, arms and policy never changed, and there are at
    most 200 versions. snapshots: False leaves them out.
    """
    from bayesbandit.store.reading import chunks

    parts: dict[str, list[np.ndarray]] = {}
    arms: dict[Name, int] = {}
    begin, end = moment(since, "since"), moment(until, "until")
    settings = log.ledger.settings()
    how = settings or Settings()
    beginning = log.ledger.beginning() or {}
    for chunk in chunks(log.ledger, begin, end, AT_ONCE):
        for row in chunk.decisions:
            for arm in row.arms:
                arms.setdefault(arm, len(arms))
        for name, values in columns_of(chunk, arms, how, beginning["n_features"]).items():
            parts.setdefault(name, []).append(values)
    n = sum(len(part) for part in parts.get("reward", ()))
    if n < 2:
        raise ValueError(f"a log needs at least two rounds; {log} has {n} decisions of this time")
    known: dict[str, Any] = {
        name: np.concatenate([_widened(part, len(arms), name) for part in values])
        for name, values in parts.items()
    }
    version = known.pop("version")
    del known["open"]
    known["batch"] = np.maximum.accumulate(version).astype(np.float64)
    known["arms"] = tuple(arms)
    if beginning["encoder"] is not None:
        known["encoder"] = Encoder.from_dict(beginning["encoder"])
        known["features"] = tuple(known["encoder"].features)
    alike = len(np.unique(version)) <= MOST and known["available"].all()
    if snapshots and alike and (version == known["batch"]).all():
        known["snapshots"] = _policies(log, version)
    return known


def _policies(log: DecisionLog, version: np.ndarray) -> Snapshots | None:
    """Return the policies of versions (n,), or None if they change from round to round."""
    now = versions.first(log.ledger, Parts())
    if now.bandit.of_arms or now.bandit.param is None:
        return None
    bandits: dict[float, Bandit] = {}
    for number in np.unique(version).tolist():
        now = versions.catch_up(log.ledger, now, Parts(), number)
        bandits[float(number)] = now.bandit
    return lambda label, x: choosing.probabilities(bandits[float(label)], x)


def columns_of(
    chunk: Chunk, arms: dict[Name, int], how: Settings, n_features: int
) -> dict[str, np.ndarray]:
    """Return the columns of some decisions, by name, with a column for each of `arms`.

    Decisions that were not shown are left out. The reward of an open decision is NaN if it is not
    known yet: none has come, or others may still be added to it or take its place.
    """
    from bayesbandit.store.reading import OPEN, joined_rewards, moments

    rows = chunk.decisions
    reward, at, status = joined_rewards(chunk, how)
    is_open = np.array([one == OPEN for one in status])
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
