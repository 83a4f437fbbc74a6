"""Whole runs: contexts x (T, d) against every arm's reward (T, K), on a fork of the bandit.

Numbers of the chosen arms (T,) and their propensities (T,), in every `every`-th round at least.
"""

from __future__ import annotations

import numpy as np

from bayesbandit.bandits import forks
from bayesbandit.bandits.state import BanditState
from bayesbandit.beliefs.base import kernels_of


def loop(
    bandit: BanditState, x: np.ndarray, reward: np.ndarray, every: int
) -> tuple[np.ndarray, np.ndarray]:
    """In one compiled loop."""
    T, params, done = len(x), forks.params(bandit, len(x)), 0
    chosen, propensity = np.empty(T, dtype=np.int64), np.full(T, np.nan)
    if (check := getattr(bandit.belief, "check_rewards", None)) is not None:
        check(np.repeat(x, reward.shape[1], axis=0), reward.ravel())
    ring = bandit.history.room(T)
    while done < T:
        done = kernels_of(bandit.belief).play(
            x, reward, done, every, bandit.belief.arms, bandit.all_arms, bandit.belief.settings,
            bandit.rule, params, bandit.source, bandit.clip, bandit.stream,
            chosen, propensity, ring,
        )  # fmt: skip
        if done < T:
            forks.refill(bandit)
    bandit.history.count_in(T)
    return chosen, propensity
