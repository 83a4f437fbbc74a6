"""An e-process that tests whether rewards have changed over time, given contexts.

Probit regressions foretell of each reward whether it is the usual one, as 0 is, and if not, whether
it is above a level; so they do if rewards are linear with normal errors. Rewards may be 0 or 1, and
ones may be rare, or amounts that are mostly 0. Regressions that forget bet against one that does
not, and their wealth is an e-process: by what is usual, times the mean over several levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from bayesbandit import checks
from bayesbandit.beliefs.half_lives import prior
from bayesbandit.beliefs.linear import Ridge
from bayesbandit.beliefs.memory import HALF_LIVES
from bayesbandit.beliefs.ridge_arms import new_arms
from bayesbandit.checks import Array
from bayesbandit.kernels import scoring

PRIOR_OF_CHANGE = 0.01  # the prior weight of the half-lives that forget
COEFFICIENT_SDS = (3.0, 1.0, 0.3, 0.1, 0.03)  # of features of sd 1
CONSTANT_SD = 1.0
ROUNDS_AT_ONCE = 10_000
LEVEL_QUANTILES = (0.1, 0.5, 0.9)  # quantiles of the unusual rewards
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


def e_process(x: Array, arm: Array, reward: Array, level: float) -> DriftTest:
    """Return what rounds x (n, d), arms and rewards (n,) say, in their order.

    level: of the alarm, in (0, 1). The first of `HALF_LIVES` is the hypothesis that is tested; the
    others are the alternatives.

    The first rounds are no evidence. They tell the mean and the standard deviation of each feature,
    by which it is centred and scaled, the usual reward, which is the most frequent one, or 0 if all
    differ, and levels of the others, at their quantiles.
    """
    checks.number(level, "level", above=0, below=1)
    m = ROUNDS_OF_SCALES
    if len(x) < m:
        return DriftTest(np.zeros(len(x)), level, HALF_LIVES[0])
    from_first = x[:m] - x[0]  # a constant is exactly 0
    sd = from_first.std(axis=0)
    z = (x - (x[0] + from_first.mean(axis=0))) / np.where(sd > 0.0, sd, 1.0)
    values, counts = np.unique(reward[:m], return_counts=True)
    usual = values[counts.argmax()] if counts.max() > 1 else 0.0
    unusual = reward != usual
    others = reward[:m][unusual[:m]]
    at = np.quantile(others if len(others) else usual, LEVEL_QUANTILES)[:, None]
    # a reward at a level is on neither side
    above = np.where(unusual & (reward != at), reward > at, np.nan)
    parts = [wealth(z, arm, happened) for happened in (unusual.astype(float), *above)]
    logs = np.array([log for log, _ in parts])
    _, half_life = max(parts, key=lambda part: part[0][-1])
    # a mean of e-processes is one
    log_e = logs[0] + logsumexp(logs[1:], axis=0) - np.log(len(LEVEL_QUANTILES))
    return DriftTest(log_e, level, half_life)


def wealth(x: Array, arm: Array, happened: Array) -> tuple[Array, float | None]:
    """Return the logarithm of the wealth (n,) of half-lives that bet against the first one on what
    happened, and the most probable half-life. Arguments are as of `scores`.
    """
    log_weight = np.log(prior(len(HALF_LIVES), 1.0 - PRIOR_OF_CHANGE))
    log = np.zeros(len(x))
    m = ROUNDS_OF_SCALES
    scoring.evidence(scores(x, arm, happened, HALF_LIVES)[m:], log_weight, log[m:])
    return log, HALF_LIVES[log_weight.argmax()]


def scores(x: Array, arm: Array, happened: Array, half_lives: Sequence[float | None]) -> Array:
    """Return the log probability (n, M) of what happened in each round by each half-life, before it
    was learned, by probit regressions of each arm: Φ(θ₀ + x'θ).

    x (n, d), arm (n,): any names. happened (n,): 1 or 0; NaN where there is no bet.

    Each half-life has several priors: the constant is θ₀ ~ N(0, CONSTANT_SD²) and θ ~ N(0, s²I). s
    is one of `COEFFICIENT_SDS`, each as probable as the others at first: a prior too wide would let
    what forgets, and so returns to 0, win where θ is about 0.
    """
    number: dict[object, int] = {}
    played = np.array([number.setdefault(k, len(number)) for k in arm.tolist()], np.int64)
    model = Ridge(1.0, variance=1.0, intercept=False)
    sds = COEFFICIENT_SDS * len(half_lives)
    rules = [
        replace(model, half_life=half_life).settings(x.shape[1] + 1, normalize=False)
        for half_life in half_lives
        for _ in COEFFICIENT_SDS
    ]
    regressions = [new_arms(len(number), rule) for rule in rules]
    log_s = np.full((len(half_lives), len(COEFFICIENT_SDS)), -np.log(len(COEFFICIENT_SDS)))
    out = np.full((len(x), len(half_lives)), np.nan)
    asked = np.flatnonzero(~np.isnan(happened))
    for rows in np.split(asked, range(ROUNDS_AT_ONCE, len(asked), ROUNDS_AT_ONCE)):
        learned = np.empty((len(rules), len(rows)))
        for arms, rule, s, told in zip(regressions, rules, sds, learned, strict=True):
            z = np.column_stack([s * x[rows], np.full(len(rows), CONSTANT_SD)])
            scoring.learn_chances(arms, rule, 1.0 + rows, z, played[rows], happened[rows], told)
        # log P(s) and log P(what happened so far | s): sums over the rounds before each, and the
        # last; by all s together, less what they were before the round, is its log probability
        sums = np.cumsum([log_s, *learned.T.reshape(-1, *log_s.shape)], axis=0)
        total = logsumexp(sums, axis=2)
        log_s = sums[-1] - total[-1][:, None]
        out[rows] = np.diff(total, axis=0)
    return out
