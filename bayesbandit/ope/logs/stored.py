"""The log of a database: what a service decided, in the order of the decisions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bayesbandit.bandit import choosing
from bayesbandit.bandit.bandit import Bandit
from bayesbandit.checks import Name
from bayesbandit.store import versions
from bayesbandit.store.log import DecisionLog, Time
from bayesbandit.store.records import INACTIVE
from bayesbandit.store.rows import Parts
from bayesbandit.tables.encoder import Encoder

Snapshots = Callable[[Any, np.ndarray], np.ndarray]
MOST = 200  # versions of which snapshots are kept in memory


def of_decisions(
    log: DecisionLog, since: Time | None = None, until: Time | None = None, snapshots: bool = True
) -> dict[str, Any]:
    """Return the parts of the log of a database's decisions.

    Batches are the bandit's versions. Where several processes decide, one may be a version behind:
    then a round is of the batch of the newest version that had decided before it. Snapshots are
    there where each round was decided by its batch's version, the arms have not changed, the policy
    is the same in every round, and there are at most 200 versions; snapshots=False leaves them out.
    """
    parts: dict[str, list[np.ndarray]] = {}
    arms: dict[Name, int] = {}
    settings = log.ledger.settings()
    for frame in log.frames(since, until):
        shown = frame["activated"] if settings and settings.activation else True
        frame = frame[shown & (frame["status"] != INACTIVE)]
        for own in frame["arms"].unique():
            for arm in own:
                arms.setdefault(arm, len(arms))
        for name, values in _columns(frame, arms).items():
            parts.setdefault(name, []).append(values)
    n = sum(len(part) for part in parts.get("reward", ()))
    if n < 2:
        raise ValueError(f"a log needs at least two rounds; {log} has {n} decisions of this time")
    known: dict[str, Any] = {
        name: np.concatenate([_widened(part, len(arms), name) for part in values])
        for name, values in parts.items()
    }
    version = known.pop("version")
    known["batch"] = np.maximum.accumulate(version).astype(np.float64)
    known["arms"] = tuple(arms)
    beginning = log.ledger.beginning()
    if beginning["encoder"] is not None:
        known["features"] = tuple(Encoder.from_dict(beginning["encoder"]).features)
    alike = len(np.unique(version)) <= MOST and known["available"].all()
    if snapshots and alike and (version == known["batch"]).all():
        known["snapshots"] = _policies(log, version)
    return known


def _policies(log: DecisionLog, version: np.ndarray) -> Snapshots | None:
    """Return the policies of versions (n,); None where they change from round to round."""
    now = versions.first(log.ledger, Parts())
    if now.bandit.of_arms or now.bandit.param is None:
        return None
    bandits: dict[float, Bandit] = {}
    for number in np.unique(version).tolist():
        now = versions.catch_up(log.ledger, now, number)
        bandits[float(number)] = now.bandit
    return lambda label, x: choosing.probabilities(bandits[float(label)], x)


def _columns(frame: Any, arms: dict[Name, int]) -> dict[str, np.ndarray]:
    """Return the columns of a table of decisions, with those of all arms."""
    n, K = len(frame), len(arms)
    e, mean, on = np.zeros((n, K)), np.zeros((n, K)), np.zeros((n, K), dtype=np.bool_)
    numbers = frame.index.to_numpy()
    for own, some in frame.groupby("arms", sort=False):
        rows = np.searchsorted(numbers, some.index.to_numpy())
        at = np.ix_(rows, [arms[arm] for arm in own])
        e[at] = np.stack(some["probabilities"].to_list())
        predicted = np.stack(some["mean"].to_list())
        on[at] = predicted > -np.inf
        mean[at] = np.where(on[at], predicted, 0.0)
    return {
        "x": np.stack(frame["x"].to_list()) if n else np.empty((0, 0)),
        "arm": frame["arm"].to_numpy(),
        "reward": frame["reward"].to_numpy(),
        "probabilities": e,
        "mean": mean,
        "available": on,
        "time": _seconds(frame["decided_at"]),
        "reward_time": _seconds(frame["rewarded_at"]),
        "version": frame["version"].to_numpy(),
    }


def _seconds(times: Any) -> np.ndarray:
    stamps = times.dt.tz_localize(None).to_numpy()
    seconds = stamps.astype(np.int64) / 1e6
    return np.where(np.isnat(stamps), np.nan, seconds)


def _widened(part: np.ndarray, K: int, name: str) -> np.ndarray:
    """Return the columns of all arms, of which later ones were not there."""
    if name not in ("probabilities", "mean", "available") or part.shape[1] == K:
        return part
    wide = np.zeros((len(part), K), dtype=part.dtype)
    wide[:, : part.shape[1]] = part
    return wide
