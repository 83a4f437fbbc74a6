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
WIDE = 2.0  # the variance of a reward over that of its noise, where mean and noise are as uncertain


@dataclass(frozen=True)
class Surprise:
    """Evidence that rewards have changed over time, given contexts.

    log_e (n,): the log of the e-process after each round: the density of the rewards so far under a
    mixture over half-lives, divided by that under a belief that does not forget. If nothing
    changes, and errors are normal, this ratio has mean 1, but for the estimate of their variance.
    So it ever reaches 1/level with probability `level` at most, however often you look (Ville's
    inequality).
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


class Regressions:
    """Ridge regressions of each arm's rewards, by several half-lives, over rounds that come in
    parts, in their order.

    n: rewards so far. number: the arms' numbers, by their names.
    """

    def __init__(self, model: Ridge, half_lives: Sequence[float | None]) -> None:
        model = replace(model, half_life=None, drift=None, clock="rounds")
        if model.variance == "rss":  # a sum of squares, which is no variance of a reward
            model = replace(model, variance="rss/n")
        self.half_lives = tuple(half_lives)
        self.models = [replace(model, half_life=half_life) for half_life in half_lives]
        self.beliefs: list[Any] = []
        self.number: dict[object, int] = {}
        self.n = 0

    def begin(self, x: Array, arm: Array) -> tuple[Array, Array]:
        """Count rounds x (n, d), one tick after the other; return their ticks and the numbers of
        their arms (n,), which may have any names."""
        before, ticks = len(self.number), self.n + np.arange(1.0, len(x) + 1.0)
        names, self.n = arm.tolist(), self.n + len(x)
        played = np.array([self.number.setdefault(k, len(self.number)) for k in names], np.int64)
        if not self.beliefs and len(x):
            self.beliefs = [m.belief(len(self.number), x.shape[1]) for m in self.models]
            before = len(self.number)
        for belief in self.beliefs:
            for _ in range(len(self.number) - before):
                belief.add_arm()
        return ticks, played

    def scores(self, x: Array, arm: Array, reward: Array) -> Array:
        """Learn rounds x (n, d), arms and rewards (n,). Return the log density (n, M) of each
        reward before it was learned, by each half-life."""
        ticks, played = self.begin(x, arm)
        found = [belief.update_scored(ticks, x, played, reward) for belief in self.beliefs]
        return np.reshape(found, (len(self.models), len(x))).T.copy()


class Evidence(Regressions):
    """An e-process over rounds that come in parts, in their order.

    log_e (n,): the logarithm of the e-process after each reward. model: the ridge regression of
    each arm's rewards. half_lives: the first one is the hypothesis that is tested; the others are
    the alternatives.

    All half-lives foretell a normal reward with the variance that the hypothesis foretells, so that
    they differ in means: with variances of their own, what forgets is less certain and wins by
    outliers alone. Its noise is the model's, if that is known. Else it is estimated from errors of
    the hypothesis, and rewards are taken as differences from the first one. The estimate of all
    arms is of errors whose mean varies less than the noise: a weak penalty makes others small.
    """

    def __init__(self, model: Ridge, half_lives: Sequence[float | None] = HALF_LIVES) -> None:
        self.variance = None if isinstance(model.variance, str) else float(model.variance)
        super().__init__(replace(model, variance=1.0), half_lives)
        others = max(1, len(half_lives) - 1)
        self.log_weight = np.log([1.0 - CHANGED, *[CHANGED / others] * others])
        self.log_e, self.origin, self.seen = np.empty(0), 0.0, np.zeros((1, 2))
        self.followed = 0  # rounds of a history

    def add(self, x: Array, arm: Array, reward: Array) -> Array:
        """Learn rounds x (n, d), arms and rewards (n,). Return the log density (n, M) of each
        reward before it was learned, by each half-life; NaN while the noise is not known."""
        if self.variance is None and not self.n and len(x):
            self.origin = float(reward[0])
        (ticks, played), reward = self.begin(x, arm), reward - self.origin
        found = [belief.update_foretold(ticks, x, played, reward) for belief in self.beliefs]
        error2, width = np.reshape(found, (len(self.models), len(x), 2)).transpose(2, 1, 0)
        own, width = width[:, 0], width[:, :1]  # of the hypothesis
        noise = np.full(len(x), self.variance or 0.0)
        if self.variance is None:
            new = np.zeros((1 + len(self.number) - len(self.seen), 2))
            self.seen = np.concatenate([self.seen, new])
            seen = error2[:, 0] / np.where(own < np.inf, np.minimum(own, WIDE), np.nan)
            scoring.put_noise(seen, own <= WIDE, played, self.seen, noise)
        noise = np.where(noise > 0.0, noise, np.nan)[:, None]
        scores = -0.5 * (np.log(2.0 * np.pi * noise) + np.log(width) + error2 / width / noise)
        log_e = np.empty(len(x))
        scoring.evidence(scores, self.log_weight, log_e)
        last = self.log_e[-1] if len(self.log_e) else 0.0
        self.log_e = np.append(self.log_e, last + log_e)
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
