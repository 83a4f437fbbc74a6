"""Reference regrets: policies that do not learn, and regression with full information."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from bayesbandit.checks import Array
from bayesbandit.environments.base import Environment

RANDOM, BEST, OFFLINE = "(a random arm)", "(the best arm always)", "(full-information ridge)"
CV_FOLDS = 5
RIDGE_CANDIDATES = np.geomspace(1e-3, 1e4, 15)
MAX_ROUNDS = 20_000  # the most rounds that are used


def baselines(
    environments: Sequence[Environment], horizon: int | None = None, seed: int = 0
) -> pd.DataFrame:
    """Return the regret per round of three references that are not bandits, in each environment.

    - A random arm.
    - The one arm that is best on average.
    - Full-information ridge: five-fold cross-validated ridge regression of all arms' rewards on the
      context, which then chooses greedily on the held-out fold. Arms with features of their own
      share one regression. It is NaN with fewer than ten rounds. A linear bandit rarely does
      better. It can, because it fits an arm where it plays it.

    They are computed on one sample of the environment, of at most 20,000 rounds. Columns:
    environment, bandit (the reference's name), normalised_regret (in units of the rewards).
    """
    rows = []
    for environment in environments:
        drawn = environment.sample(horizon, np.random.default_rng(seed))
        x, reward, mean = (part[:MAX_ROUNDS] for part in (drawn.x, drawn.reward, drawn.mean))
        missed = mean.max(axis=1, keepdims=True) - mean  # (T, K)
        regrets = {RANDOM: missed.mean(), BEST: missed.mean(axis=0).min()}
        regrets[OFFLINE] = _offline(x, reward, missed, seed)
        rows += [
            {"environment": environment.name, "bandit": name, "normalised_regret": float(regret)}
            for name, regret in regrets.items()
        ]
    return pd.DataFrame(rows)


def _offline(x: Array, reward: Array, missed: Array, seed: int) -> float:
    """Return the mean regret of the greedy arm on held-out folds. missed (T, K): arms' regrets."""
    from sklearn.linear_model import RidgeCV
    from sklearn.model_selection import KFold

    if len(x) < 2 * CV_FOLDS:
        return np.nan
    if x.shape[-1] == 0:
        x = np.zeros((len(x), 1))  # without contexts: each arm's mean
    rows = (-1, x.shape[-1])  # of contexts (n, d), or of the features of all arms (n, K, d)
    target = (-1,) if x.ndim == 3 else (-1, reward.shape[1])
    total = 0.0
    for train, test in KFold(CV_FOLDS, shuffle=True, random_state=seed).split(x):
        ridge = RidgeCV(RIDGE_CANDIDATES).fit(x[train].reshape(rows), reward[train].reshape(target))
        predicted = ridge.predict(x[test].reshape(rows)).reshape(missed[test].shape)
        total += missed[test, predicted.argmax(axis=1)].sum()
    return total / len(x)
