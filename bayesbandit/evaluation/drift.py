"""Comparison of half-lives on a log."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Protocol, runtime_checkable

import numpy as np
import pandas as pd

from bayesbandit import checks
from bayesbandit.beliefs.drift_test import Forecasts
from bayesbandit.beliefs.linear import Ridge

HALF_LIVES = (None, 8000.0, 4000.0, 2000.0, 1000.0, 500.0, 250.0, 125.0)


@runtime_checkable
class Rounds(Protocol):
    """Rounds in the order of their decisions: a `bb.ope.Log`, or a bandit's `history`."""

    @property
    def x(self) -> np.ndarray: ...

    @property
    def arm(self) -> np.ndarray: ...

    @property
    def reward(self) -> np.ndarray: ...


def drift(
    log: Rounds, model: Ridge | None = None, half_lives: Sequence[float | None] = HALF_LIVES
) -> pd.DataFrame:
    """Return a table of how well regressions with different half-lives predict a log's rewards.

    Each reward is predicted from earlier rounds, then learned. The columns are `half_life` in
    rounds (inf: never forgets); `score`, the sum of the log predictive densities; `gain`, the score
    minus that of the first half-life, per 1,000 rounds; and `se`, the standard error of the gain.
    Take the half-life with the largest score.

    log: a `bb.ope.Log` or a bandit's `history`: contexts x (n, d), arms and rewards (n,). Rounds
    without a reward are left out. model: the ridge regression of each arm's rewards; default
    `Ridge()`. half_lives: in rounds; None never forgets.
    """
    if not isinstance(log, Rounds):
        raise TypeError(
            "log must be a bb.ope.Log or a bandit's history, and bb.ope.Log.of(frame) makes one of "
            f"a table; got {checks.shown(log)}"
        )
    model = Ridge() if model is None else model
    if not isinstance(model, Ridge):
        raise TypeError(f"model must be a bb.Ridge(…); got {checks.shown(model)}")
    if isinstance(half_lives, Real | str) or len(half_lives) == 0:
        raise TypeError(
            f"half_lives must be a list of rounds, or None for never; got {half_lives!r}"
        )
    for half_life in half_lives:
        if half_life is not None:
            checks.number(half_life, "half_life", above=0)
    is_known = ~np.isnan(log.reward)
    regressions = Forecasts(model, half_lives)
    scores = regressions.scores(
        np.asarray(log.x)[is_known], log.arm[is_known], log.reward[is_known]
    )
    finite = scores[~np.isnan(scores).any(axis=1)]
    over = 1000.0 * (finite - finite[:, :1])
    return pd.DataFrame(
        {
            "half_life": [np.inf if h is None else h for h in half_lives],
            "score": finite.sum(axis=0),
            "gain": over.mean(axis=0),
            "se": over.std(axis=0) / np.sqrt(max(len(finite), 1)),
        }
    )
