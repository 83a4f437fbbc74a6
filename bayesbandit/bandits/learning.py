"""Rewards of several rounds, or of a belief that is not compiled: all learned or none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayesbandit.bandits import forks
from bayesbandit.kernels import rounds, rules

if TYPE_CHECKING:
    from bayesbandit.bandits.bandit import Bandit


def learn(bandit: Bandit, rows: np.ndarray) -> None:
    """Weigh rows (n, width) that carry their rewards, update the belief, keep them."""
    layout, balance = bandit.layout, bandit.balance
    trial, tail = bandit, rows[:, layout.tail :]
    if bandit.reweighting is not None:
        trial, t = forks.fork(bandit), max(bandit.t, 1)
        assert trial.reweighting is not None
        trial.reweighting.weigh(rows, trial.belief, bandit.policy, layout, t)
    rounds.weigh_many(rows, layout.n_columns, len(layout.arms), balance.source, balance.clip)
    x, arm = rows[:, : layout.n_features], tail[:, rules.ARM].astype(np.int64)
    reward, weight = tail[:, rules.REWARD], tail[:, rules.WEIGHT].copy()
    regression = getattr(bandit.belief, "regression", None)
    if trial is bandit and regression is not None:
        _stream(bandit, rows, arm, weight, *regression(x, arm, reward))
        return
    trial = forks.fork(bandit) if trial is bandit else trial
    trial.belief.update(x, arm, reward, weight)
    trial.history.extend(rows)
    if trial.reweighting is not None:
        trial.reweighting.settle(rows, trial.belief, trial.history)
    forks.become(bandit, trial)


def _stream(
    bandit: Bandit, rows: np.ndarray, arm: np.ndarray, weight: np.ndarray,
    z: np.ndarray, reward: np.ndarray, arms: np.ndarray, settings: np.ndarray,
) -> None:  # fmt: skip
    """Belief and history in one compiled call, which cannot fail half-way."""
    history = bandit.history
    history.reserve(len(rows))
    rounds.observe_many(rows, z, arm, reward, weight, arms, settings, history.rows, history.count)
