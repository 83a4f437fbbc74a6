"""An e-process that tests whether rewards have changed over time, given contexts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesbandit import checks
from bayesbandit.beliefs.half_lives import HALF_LIVES
from bayesbandit.beliefs.linear import Ridge
from bayesbandit.beliefs.shared.belief import Shared
from bayesbandit.history import History
from bayesbandit.kernels import scoring

Array = np.ndarray
CHANGED = 0.01  # the prior weight of the half-lives that forget


@dataclass(frozen=True)
class Surprise:
    """Evidence that rewards have changed over time, given contexts.

    log_e (n,): the log of the e-process after each round: the density of the rewards so far under a
    mixture over half-lives, divided by that under a belief that does not forget. If nothing
    changes, this ratio has mean 1. So it ever reaches 1/level with probability `level` at most,
    however often you look (Ville's inequality).
    half_life: the half-life that predicts best at the end, in rounds; None: never forgets.
    """

    log_e: Array
    level: float
    half_life: float | None

    @property
    def alarm(self) -> bool:
        """Whether the e-process ever reached 1/level."""
        return self.at is not None

    @property
    def at(self) -> int | None:
        """The round, from 0, at which the evidence first reached 1/level; None: never."""
        reached = np.flatnonzero(self.log_e >= -np.log(self.level))
        return int(reached[0]) if len(reached) else None

    @property
    def largest(self) -> float:
        """The largest evidence so far, as a logarithm to base 10; the alarm is at −log10(level)."""
        return float(self.log_e.max(initial=0.0) / np.log(10.0))

    def __repr__(self) -> str:
        said = f"alarm at round {self.at}" if self.alarm else "no alarm"
        return f"Surprise({said}, largest e = 10^{self.largest:.2g}, level = {self.level:g})"


class Evidence:
    """An e-process over rounds that come in parts, in their order.

    n: rewards so far. log_e (n,): the logarithm of the e-process after each of them. model: the
    ridge regression of each arm's rewards. half_lives: the first one is the hypothesis that is
    tested; the others are the alternatives.
    """

    def __init__(self, model: Ridge, half_lives: Sequence[float | None] = HALF_LIVES) -> None:
        model = replace(model, half_life=None, drift=None, clock="rounds")
        if model.variance == "rss":  # a sum of squares, which is no variance of a reward
            model = replace(model, variance="rss/n")
        self.half_lives = tuple(half_lives)
        self.models = [replace(model, half_life=half_life) for half_life in half_lives]
        self.beliefs: list[Any] = []
        self.number: dict[object, int] = {}
        others = max(1, len(half_lives) - 1)
        self.log_weight = np.log([1.0 - CHANGED, *[CHANGED / others] * others])
        self.log_e, self.n = np.empty(0), 0
        self.followed = 0  # rounds of a history

    def add(self, x: Array, arm: Array, reward: Array) -> Array:
        """Learn rounds x (n, d), arms and rewards (n,), one tick after the other; arms may have any
        names. Return the log density (n, M) of each reward before it was learned, by each
        half-life."""
        names = arm.tolist()
        before, ticks = len(self.number), self.n + np.arange(1.0, len(x) + 1.0)
        played = np.array([self.number.setdefault(k, len(self.number)) for k in names], np.int64)
        if not self.beliefs and len(x):
            self.beliefs = [m.belief(len(self.number), x.shape[1]) for m in self.models]
            before = len(self.number)
        for belief in self.beliefs:
            for _ in range(len(self.number) - before):
                belief.add_arm()
        found = [belief.update_scored(ticks, x, played, reward) for belief in self.beliefs]
        scores, log_e = np.reshape(found, (len(self.models), len(x))).T.copy(), np.empty(len(x))
        scoring.evidence(scores, self.log_weight, log_e)
        last = self.log_e[-1] if self.n else 0.0
        self.log_e, self.n = np.append(self.log_e, last + log_e), self.n + len(x)
        return scores

    def follow(self, history: History) -> None:
        """Learn the rounds that a history has got since the last call, as far as it keeps them.

        Arms with features share a model, and are one arm here.
        """
        history = history.fork()
        new = min(history.total - self.followed, len(history))
        self.followed = history.total
        arm = np.zeros(len(history)) if history.layout.of_arms else history.arm
        start = len(history) - new
        self.add(history.x[start:], arm[start:], history.reward[start:])

    def surprise(self, level: float) -> Surprise:
        """Return what the rounds so far say."""
        half_life = self.half_lives[int(self.log_weight.argmax())]
        return Surprise(self.log_e, checks.number(level, "level", above=0, below=1), half_life)


def regression_of(model: object) -> Ridge:
    """Return the ridge regression with which a bandit's rewards are predicted for the test.

    It is the bandit's own model, if that is one, or `Ridge()`.
    """
    own = model.model if isinstance(model, Shared) else model
    return own if isinstance(own, Ridge) else Ridge()
