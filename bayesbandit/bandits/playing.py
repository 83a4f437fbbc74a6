"""Whole runs: contexts x (T, d) against every arm's reward (T, K), on a fork of the bandit.

Numbers of the chosen arms (T,) and their propensities (T,), in every `every`-th round at least.
"""

from __future__ import annotations

import numpy as np

from bayesbandit.bandits import forks
from bayesbandit.bandits.state import BanditState
from bayesbandit.kernels import rounds


def loop(
    bandit: BanditState, x: np.ndarray, reward: np.ndarray, every: int
) -> tuple[np.ndarray, np.ndarray]:
    """In one compiled loop."""
    T, params, done = len(x), forks.params(bandit, len(x)), 0
    chosen, propensity = np.empty(T, dtype=np.int64), np.full(T, np.nan)
    ring = bandit.history.room(T)
    while done < T:
        done = rounds.play(
            x, reward, done, every, bandit.belief.arms, bandit.all_arms, bandit.belief.settings,
            bandit.rule, params, bandit.source, bandit.clip, bandit.stream,
            chosen, propensity, ring,
        )  # fmt: skip
        if done < T:
            forks.refill(bandit)
    bandit.history.count_in(T)
    return chosen, propensity
