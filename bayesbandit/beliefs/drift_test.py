"""An e-process that tests whether rewards have changed over time, given contexts.

A reward is foretold in two parts: whether it is the usual one, as 0 is, by probit regressions
(`Chances`), and how large it is if not, by ridge regressions (`Amounts`). So rewards may be 0 or 1,
and ones may be rare, or amounts that are mostly 0. In both parts regressions that forget bet
against one that does not: the wealth of each part, and their product, is an e-process.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
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
MAX_LOG_RATIO = 30.0  # by which one amount speaks against a prior: outliers have no say
MIN_ERRORS = 10  # of fewer, a mean square may by chance be far too small
MAX_WIDTH = 2.0  # a reward's variance over its noise's, where mean and noise are as uncertain


@dataclass(frozen=True)
class DriftTest:
    """Evidence that rewards have changed over time, given contexts.

    log_e (n,): the log of the e-process after each round. If nothing changes, whether a reward is
    the usual one follows a probit regression, and the others have errors that are symmetric about a
    linear mean, then its mean is 1 at most, but for what is not yet known of the coefficients. So
    it ever reaches 1/level with probability `level` at most, however often you look (Ville's
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
        verdict = f"alarm at round {self.at}" if self.alarm else "no alarm"
        return f"DriftTest({verdict}, largest e = 10^{self.largest:.2g}, level = {self.level:g})"


class Bettors(ABC):
    """Regressions of each arm that bet against the first half-life, which is the hypothesis.

    Each half-life has several priors of its coefficients. The constant is θ₀ ~ N(0, CONSTANT_SD²)
    and θ ~ N(0, s²I), in units of the noise. s is one of `COEFFICIENT_SDS`, each as probable as the
    others at first: a prior too wide would let what forgets, and so returns to 0, win where θ is
    about 0.

    n: rewards so far, which come in parts, in their order. number: the arms' numbers, by name.
    log_s (M, S): the log probabilities of the s, by each half-life. log_weight (M,): those of the
    half-lives. log: the logarithm of the wealth of their mixture after the last reward.
    """

    def __init__(self, half_lives: Sequence[float | None]) -> None:
        model = Ridge(1.0, variance=1.0, intercept=False)
        self.half_lives = tuple(half_lives)
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

    def begin(self, x: Array, arm: Array) -> tuple[Array, Array]:
        """Count rounds x (n, d), one tick after the other; return their ticks and the numbers of
        their arms (n,), which may have any names."""
        ticks = self.n + np.arange(1.0, len(x) + 1.0)
        self.n += len(x)
        numbers = [self.number.setdefault(k, len(self.number)) for k in arm.tolist()]
        played = np.array(numbers, np.int64)
        if not self.beliefs:
            rules = [model.settings(x.shape[1], normalize=False) for model in self.models]
            self.beliefs = [RidgeArms(new_arms(0, rule), rule) for rule in rules]
        for belief in self.beliefs:
            while len(belief.arms) < len(self.number):
                belief.add_arm()
        return ticks, played

    @abstractmethod
    def scores(self, x: Array, arm: Array, reward: Array) -> Array:
        """Learn rounds as `wealth`; return each half-life's score (n, M) before it learned."""

    def wealth(self, x: Array, arm: Array, reward: Array) -> Array:
        """Learn rounds x (n, d), arms and rewards (n,), NaN where they are the usual one.

        Return the logarithm of the wealth (n,) after each.
        """
        log = np.empty(len(x))
        scoring.evidence(self.scores(x, arm, reward), self.log_weight, log)
        log += self.log
        self.log = float(log[-1]) if len(log) else self.log
        return log

    def _learned(
        self, kernel: Callable[..., None], width: tuple[int, ...], x: Array, arm: Array,
        there: Array, *told: Array,
    ) -> Array:  # fmt: skip
        """Learn the rounds that are `there` (n,) by a kernel, in order, by what is told of them.

        Return what the kernel says of each, (n, M, S, *width).
        """
        ticks, played = self.begin(np.column_stack([x, np.ones(len(x))]), arm)
        x = x[there]
        rows = [np.ascontiguousarray(column[there]) for column in (ticks, played, *told)]
        scores = np.empty((len(self.beliefs), len(x), *width))
        for belief, s, out in zip(self.beliefs, self.sds, scores, strict=True):
            design = np.column_stack([s * x, np.full(len(x), CONSTANT_SD)])
            kernel(belief.arms, belief.settings, rows[0], design, *rows[1:], out)
        return np.moveaxis(scores, 0, 1).reshape(-1, *self.log_s.shape, *width)

    def _weigh(self, scores: Array) -> tuple[Array, Array]:
        """Update the probabilities of the s by the log densities (n, M, S) of rewards; return their
        logarithms before each reward, and how probable all are together: (n, M, S), (n, M)."""
        sums = np.cumsum([self.log_s, *scores], axis=0)
        total = logsumexp(sums, axis=2, keepdims=True)  # (1 + n, M, 1)
        self.log_s = sums[-1] - total[-1]
        return sums[:-1] - total[:-1], np.diff(total[..., 0], axis=0)


class Chances(Bettors):
    """Probit regressions of whether a reward is not the usual one: its chance is Φ(θ₀ + x'θ)."""

    def scores(self, x: Array, arm: Array, reward: Array) -> Array:
        """Learn rounds as `wealth`. Return the log probability (n, M) of whether each reward is the
        usual one, before it was learned, by each half-life."""
        happened = (~np.isnan(reward)).astype(float)
        every = np.ones(len(x), np.bool_)
        learned = self._learned(scoring.learn_chances, (), x, arm, every, happened)
        return np.ascontiguousarray(self._weigh(learned)[1])


class Amounts(Bettors):
    """Ridge regressions of each arm's rewards that are not the usual one, by several half-lives.

    A half-life bets that the hypothesis's error e has the sign of the difference δ of their means:
    by exp(λe − λ²e²/2), with λ = δ/v and v the variance that the hypothesis foretells. If v is
    right this is on average the ratio of their normal densities. Its mean is 1 at most for any
    error that is symmetric about 0, however heavy its tails, and whatever v is (de la Peña 1999,
    Annals of Probability 27, 537–564).

    The noise variance is the mean square of earlier errors whose mean varies less than the noise.
    """

    def __init__(self, half_lives: Sequence[float | None]) -> None:
        super().__init__(half_lives)
        self.squares = 0.0  # their sum
        self.errors = 0  # their number

    def scores(self, x: Array, arm: Array, reward: Array) -> Array:
        """Learn rounds as `wealth`. Return the logarithms (n, M) of what each half-life gained by
        each reward; NaN where it is the usual one, or while the noise is not known."""
        out = np.full((len(x), len(self.half_lives)), np.nan)
        is_known = ~np.isnan(reward)
        one = np.ones(len(x))
        learned = self._learned(scoring.learn_foretold, (2,), x, arm, is_known, reward, one)
        if not is_known.any():
            return out
        error, width = np.moveaxis(learned, 3, 0)  # (n, M, S)
        noise = self._noise(error[:, 0, 0], width[:, 0, 0])
        score = -0.5 * (np.log(width) + error**2 / (width * noise[:, None, None]))
        score = np.maximum(score - score.max(axis=2, keepdims=True), -MAX_LOG_RATIO)
        weight = np.exp(self._weigh(np.where(np.isnan(score), 0.0, score))[0])
        error = (weight * error).sum(axis=2)
        width = (weight * width)[:, 0].sum(axis=1)
        first = error[:, :1]  # of the hypothesis
        bet = first * (first - error) / (width * noise)[:, None]
        out[is_known] = bet - 0.5 * bet**2
        return out

    def _noise(self, error: Array, width: Array) -> Array:
        """Return the noise variance (n,) as known before each error; NaN where it is not."""
        sure = width <= MAX_WIDTH
        squares = np.cumsum([self.squares, *np.where(sure, error**2 / width, 0.0)])
        errors = np.cumsum([self.errors, *sure])
        self.squares, self.errors = float(squares[-1]), int(errors[-1])
        has_noise = (errors >= MIN_ERRORS) & (squares > 0.0)
        return np.where(has_noise, squares / np.maximum(errors, 1), np.nan)[:-1]


class EProcess:
    """An e-process over rounds that come in parts, in their order.

    log_e (n,): the logarithm of the e-process after each reward. half_lives: the first one is the
    hypothesis that is tested; the others are the alternatives.
    n: rewards so far.

    The first rounds are no evidence. They tell the mean and the standard deviation of each feature,
    by which it is centred and scaled, the usual reward, which is the most frequent one, or 0 if all
    differ, and the mean of the others, by which they are centred.
    """

    def __init__(self, half_lives: Sequence[float | None] = HALF_LIVES) -> None:
        self.half_lives = tuple(half_lives)
        self.parts: tuple[Bettors, ...] = Chances(half_lives), Amounts(half_lives)
        self.log_e = np.empty(0)
        self.n = 0
        self.early: list[tuple[Array, Array, Array]] = []
        self.centre, self.unit = np.empty(0), np.empty(0)  # of features
        self.usual = 0.0  # the most frequent reward
        self.mean = 0.0  # of the others
        self.followed = 0  # rounds of a history

    def add(self, x: Array, arm: Array, reward: Array) -> None:
        """Learn rounds x (n, d), arms and rewards (n,)."""
        if self.n >= ROUNDS_OF_SCALES:
            x, arm, reward = self._scaled(x, arm, reward)
            self._note(np.sum([part.wealth(x, arm, reward) for part in self.parts], axis=0))
            return
        self.early.append((x, arm, reward))
        x, arm, reward = (np.concatenate(column) for column in zip(*self.early, strict=True))
        self._note(np.zeros(min(len(x), ROUNDS_OF_SCALES) - self.n))
        if len(x) >= ROUNDS_OF_SCALES:
            m = ROUNDS_OF_SCALES
            self.early = []
            self._begin(x[:m], reward[:m])
            for part in self.parts:
                part.scores(*self._scaled(x[:m], arm[:m], reward[:m]))
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
        self.mean = float(others.mean()) if len(others) else self.usual

    def _scaled(self, x: Array, arm: Array, reward: Array) -> tuple[Array, Array, Array]:
        """Return rounds with scaled features, and rewards that are NaN where they are the usual."""
        reward = np.where(reward == self.usual, np.nan, reward - self.mean)
        return (x - self.centre) / self.unit, arm, reward

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
