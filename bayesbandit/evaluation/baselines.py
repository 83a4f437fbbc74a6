"""What regret is to be measured against: no learning at all, and learning with nothing hidden."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from bayesbandit.environments.base import Environment

RANDOM, BEST, OFFLINE = "(a random arm)", "(the best arm always)", "(full-information ridge)"
FOLDS, PENALTIES = 5, np.geomspace(1e-3, 1e4, 15)
MOST = 20_000  # rounds


def baselines(
    environments: Sequence[Environment], horizon: int | None = None, seed: int = 0
) -> pd.DataFrame:
    """Return the regret a round, in each environment, of references that are no bandits.

    A random arm; always the arm that is best on average; and ridge regression of all arms' rewards
    on context, fitted to four fifths of the rounds with every reward known and greedy on the last,
    in turn (NaN of fewer than ten rounds): about the least that a linear bandit can come to, though
    no bound: it fits all contexts alike, and a bandit an arm where it is played. Of one sample of
    the environment, 20,000 rounds at most. Columns: environment, bandit (its name here),
    normalised_regret, in the units of the rewards.
    """
    rows = []
    for environment in environments:
        drawn = environment.sample(horizon, np.random.default_rng(seed))
        x, reward, mean = (part[:MOST] for part in (drawn.x, drawn.reward, drawn.mean))
        missed = mean.max(axis=1, keepdims=True) - mean  # (T, K)
        found = {RANDOM: missed.mean(), BEST: missed.mean(axis=0).min()}
        found[OFFLINE] = _offline(x, reward, missed, seed)
        rows += [
            {"environment": environment.name, "bandit": name, "normalised_regret": float(regret)}
            for name, regret in found.items()
        ]
    return pd.DataFrame(rows)


def _offline(x: np.ndarray, reward: np.ndarray, missed: np.ndarray, seed: int) -> float:
    """Return mean of what the greedy arm misses (T, K), on folds that its regression has not
    seen."""
    from sklearn.linear_model import RidgeCV
    from sklearn.model_selection import KFold

    if len(x) < 2 * FOLDS:
        return np.nan
    if x.shape[1] == 0:
        x = np.zeros((len(x), 1))  # without contexts: each arm's mean
    total = 0.0
    for learned, left in KFold(FOLDS, shuffle=True, random_state=seed).split(x):
        ridge = RidgeCV(PENALTIES).fit(x[learned], reward[learned])
        total += missed[left, ridge.predict(x[left]).argmax(axis=1)].sum()
    return total / len(x)
