"""An e-process that tests whether rewards have changed over time, given contexts.

Probit regressions (`Bettors`) foretell of each reward whether it is the usual one, as 0 is, and if
not, whether it is above a level in the middle of the others. If rewards are linear with normal
errors, this follows a probit regression, too. So rewards may be 0 or 1, and ones may be rare, or
amounts that are mostly 0. In both parts regressions that forget bet against one that does not: the
wealth of each part, and their product, is an e-process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from bayesbandit import checks
from bayesbandit.beliefs.linear import Ridge
from bayesbandit.beliefs.memory import HALF_LIVES
from bayesbandit.beliefs.ridge_arms import RidgeArms, new_arms
from bayesbandit.checks import Array, name_array
from bayesbandit.history import History
from bayesbandit.kernels import scoring

PRIOR_OF_CHANGE = 0.01  # the prior weight of the half-lives that forget
COEFFICIENT_SDS = (3.0, 1.0, 0.3, 0.1, 0.03)  # of features of sd 1
CONSTANT_SD = 1.0
ROUNDS_OF_SCALES = 50  # they tell the sizes of features and the usual reward, and are no evidence


@dataclass(frozen=True)
class DriftTest:
    """Evidence that rewards have changed over time, given contexts.

    log_e (n,): the log of the e-process after each round. If nothing changes, and probit
    regressions tell whether a reward is the usual one and whether it is above a level, then its
    mean is 1 at most, but for what is not yet known of the coefficients. So it ever reaches 1/level
    with probability `level` at most, however often you look (Ville's inequality).
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
        verdict = f"alarm at round {self.at}" if self.alarm else "no alarm"
        return f"DriftTest({verdict}, largest e = 10^{self.largest:.2g}, level = {self.level:g})"


class Bettors:
    """Probit regressions of each arm that bet against the first half-life, which is the hypothesis.

    The chance of what they bet on is Φ(θ₀ + x'θ). Each half-life has several priors: the constant
    is θ₀ ~ N(0, CONSTANT_SD²) and θ ~ N(0, s²I). s is one of `COEFFICIENT_SDS`, each as probable as
    the others at first: a prior too wide would let what forgets, and so returns to 0, win where θ
    is about 0.

    n: rounds so far, which come in parts, in their order. number: the arms' numbers, by name.
    log_s (M, S): the log probabilities of the s, by each half-life. log_weight (M,): those of the
    half-lives. log: the logarithm of the wealth of their mixture after the last round.
    """

    def __init__(self, half_lives: Sequence[float | None]) -> None:
        model = Ridge(1.0, variance=1.0, intercept=False)
        self.models = [
            replace(model, half_life=half_life) for half_life in half_lives for _ in COEFFICIENT_SDS
        ]
        self.beliefs: list[RidgeArms] = []
        self.number: dict[object, int] = {}
        self.n = 0
        self.sds = COEFFICIENT_SDS * len(half_lives)
        M, S = len(half_lives), len(COEFFICIENT_SDS)
        self.log_s = np.full((M, S), -np.log(S))
        weight = np.full(M, PRIOR_OF_CHANGE / max(1, M - 1))
        weight[0] = 1.0 - PRIOR_OF_CHANGE
        self.log_weight, self.log = np.log(weight), 0.0

    def wealth(self, x: Array, arm: Array, happened: Array) -> Array:
        """Learn rounds x (n, d), arms (n,), and 1 or 0 (n,), whether it happened; NaN: no bet.

        Return the logarithm of the wealth (n,) after each.
        """
        log = np.empty(len(x))
        scoring.evidence(self.scores(x, arm, happened), self.log_weight, log)
        log += self.log
        self.log = float(log[-1]) if len(log) else self.log
        return log

    def scores(self, x: Array, arm: Array, happened: Array) -> Array:
        """Learn rounds as `wealth`. Return the log probability (n, M) of what happened by each
        half-life, before it was learned; NaN where there is no bet."""
        ticks = self.n + np.arange(1.0, len(x) + 1.0)
        self.n += len(x)
        numbers = [self.number.setdefault(k, len(self.number)) for k in arm.tolist()]
        played = np.array(numbers, np.int64)
        if not self.beliefs:
            rules = [model.settings(x.shape[1] + 1, normalize=False) for model in self.models]
            self.beliefs = [RidgeArms(new_arms(0, rule), rule) for rule in rules]
        asked = ~np.isnan(happened)
        rows = played[asked], happened[asked]
        x, ticks = x[asked], ticks[asked]
        learned = np.empty((len(self.beliefs), len(x)))
        for belief, s, out in zip(self.beliefs, self.sds, learned, strict=True):
            while len(belief.arms) < len(self.number):
                belief.add_arm()
            design = np.column_stack([s * x, np.full(len(x), CONSTANT_SD)])
            scoring.learn_chances(belief.arms, belief.settings, ticks, design, *rows, out)
        scores = np.full((len(asked), len(self.log_s)), np.nan)
        scores[asked] = self._weigh(learned.T.reshape(-1, *self.log_s.shape))
        return scores

    def _weigh(self, scores: Array) -> Array:
        """Update the probabilities of the s by the log probabilities (n, M, S) of what happened;
        return how probable all s together make it (n, M)."""
        sums = np.cumsum([self.log_s, *scores], axis=0)
        total = logsumexp(sums, axis=2)  # (1 + n, M)
        self.log_s = sums[-1] - total[-1][:, None]
        return np.diff(total, axis=0)


class EProcess:
    """An e-process over rounds that come in parts, in their order.

    log_e (n,): the logarithm of the e-process after each reward. half_lives: the first one is the
    hypothesis that is tested; the others are the alternatives.
    n: rewards so far.

    The first rounds are no evidence. They tell the mean and the standard deviation of each feature,
    by which it is centred and scaled, the usual reward, which is the most frequent one, or 0 if all
    differ, and the median of the others.
    """

    def __init__(self, half_lives: Sequence[float | None] = HALF_LIVES) -> None:
        self.half_lives = tuple(half_lives)
        self.parts = Bettors(half_lives), Bettors(half_lives)
        self.log_e = np.empty(0)
        self.n = 0
        self.early: list[tuple[Array, Array, Array]] = []
        self.centre, self.unit = np.empty(0), np.empty(0)  # of features
        self.usual = 0.0  # the most frequent reward
        self.middle = 0.0  # of the others
        self.followed = 0  # rounds of a history

    def add(self, x: Array, arm: Array, reward: Array) -> None:
        """Learn rounds x (n, d), arms and rewards (n,)."""
        if self.n >= ROUNDS_OF_SCALES:
            z, happened = self._questions(x, reward)
            bets = zip(self.parts, happened, strict=True)
            self._note(np.sum([part.wealth(z, arm, told) for part, told in bets], axis=0))
            return
        self.early.append((x, arm, reward))
        x, arm, reward = (np.concatenate(column) for column in zip(*self.early, strict=True))
        self._note(np.zeros(min(len(x), ROUNDS_OF_SCALES) - self.n))
        if len(x) >= ROUNDS_OF_SCALES:
            m = ROUNDS_OF_SCALES
            self.early = []
            self._begin(x[:m], reward[:m])
            z, happened = self._questions(x[:m], reward[:m])
            for part, told in zip(self.parts, happened, strict=True):
                part.scores(z, arm[:m], told)
            self.add(x[m:], arm[m:], reward[m:])

    def _note(self, log_e: Array) -> None:
        """Keep the values of the e-process after the next rewards."""
        self.n += len(log_e)
        self.log_e = np.append(self.log_e, log_e)

    def _begin(self, x: Array, reward: Array) -> None:
        """Learn the centres and sizes of features x (n, d) and of rewards (n,)."""
        from_first = x - x[0]  # a constant is exactly 0
        sd = from_first.std(axis=0)
        self.centre, self.unit = x[0] + from_first.mean(axis=0), np.where(sd > 0.0, sd, 1.0)
        values, counts = np.unique(reward, return_counts=True)
        self.usual = float(values[counts.argmax()]) if counts.max() > 1 else 0.0
        others = reward[reward != self.usual]
        self.middle = float(np.median(others)) if len(others) else self.usual

    def _questions(self, x: Array, reward: Array) -> tuple[Array, tuple[Array, Array]]:
        """Return scaled features (n, d), and what the parts bet on: 1 or 0 (n,), NaN for no bet.

        These are whether a reward is not the usual one, and if so, whether it is above the middle;
        one in the middle is on neither side.
        """
        unusual = reward != self.usual
        above = np.where(unusual & (reward != self.middle), reward > self.middle, np.nan)
        return (x - self.centre) / self.unit, (unusual.astype(float), above)

    def follow(self, history: History) -> None:
        """Learn the rounds that a history has got since the last call, as far as it keeps them.

        Arms with features share a model, and are one arm here.
        """
        history = history.fork()
        new = min(history.total - self.followed, len(history))
        self.followed = history.total
        layout = history.layout
        rows = history.ordered()[len(history) - new :]
        log = layout.records(rows)
        arm = log["arm"].astype(np.int64)
        names = np.zeros(new) if layout.of_arms else name_array(history.names())[arm]
        self.add(rows[:, : layout.n_features].copy(), names, log["reward"].copy())

    def test(self, level: float) -> DriftTest:
        """Return what the rounds so far say."""
        most = max(self.parts, key=lambda part: part.log)
        half_life = self.half_lives[int(most.log_weight.argmax())]
        return DriftTest(self.log_e, checks.number(level, "level", above=0, below=1), half_life)
