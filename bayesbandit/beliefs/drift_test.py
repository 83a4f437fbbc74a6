"""An e-process that tests whether rewards have changed over time, given contexts.

Probit regressions foretell of each reward whether it is the usual one, as 0 is, and if not, whether
it is above a level; so they do if rewards are linear with normal errors. Rewards may be 0 or 1, and
ones may be rare, or amounts that are mostly 0. Regressions of changes, which forget, bet against
those that do not, and their wealth is an e-process: by what is usual, times the mean over several
levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, ndtri_exp

from bayesbandit import checks
from bayesbandit.beliefs.half_lives import prior
from bayesbandit.beliefs.linear import Ridge
from bayesbandit.beliefs.memory import HALF_LIVES, Memory
from bayesbandit.beliefs.ridge_arms import new_arms
from bayesbandit.checks import Array
from bayesbandit.kernels import scoring

PRIOR_OF_CHANGE = 0.01  # the prior weight of the half-lives that forget
# of coefficients of features of sd 1: under a prior too narrow the first regressions would learn
# slowly, and changes beside them win though nothing changes
COEFFICIENT_SDS = (10.0, 3.0, 1.0, 0.3)
CONSTANT_SD = 2.0
CHANGE_SDS = (1.0, 0.3, 0.1)  # of changes, the constant's too
LEVEL_QUANTILES = (0.1, 0.5, 0.9)  # quantiles of the unusual rewards
ROUNDS_OF_SCALES = 50  # they tell the sizes of features and the usual reward, and are no evidence
ROUNDS_OF_ARM = 50  # the first ones of an arm tell its coefficients, and are no evidence


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

    The bets begin once it has happened and not happened: before that no finite coefficients fit
    best.
    """
    log_weight = np.log(prior(len(HALF_LIVES), 1.0 - PRIOR_OF_CHANGE))
    log = np.zeros(len(x))
    told = scores(x, arm, happened, HALF_LIVES)
    firsts = [np.flatnonzero(happened == value)[:1] for value in (0.0, 1.0)]
    m = max(ROUNDS_OF_SCALES, *(int(first[0]) + 1 if len(first) else len(x) for first in firsts))
    scoring.evidence(told[m:], log_weight, log[m:])
    return log, HALF_LIVES[log_weight.argmax()]


def scores(x: Array, arm: Array, happened: Array, half_lives: Sequence[float | None]) -> Array:
    """Return the log probability (n, M) of what happened in each round by each half-life, before it
    was learned, by probit regressions of each arm; NaN in its first rounds.

    x (n, d), arm (n,): any names. happened (n,): 1 or 0; NaN where there is no bet. The first
    half-life has Φ(θ₀ + x'θ). Each other one has Φ(o + δ₀ + x'δ), where Φ(o) is the probability by
    the first. So what forgets returns to what the first one says, and wins by what has changed. If
    it returned to a prior, it would win where arms are many and the prior is near the truth.
    """
    number: dict[object, int] = {}
    asked = np.flatnonzero(~np.isnan(happened))
    played = np.array([number.setdefault(k, len(number)) for k in arm[asked].tolist()], np.int64)
    rows = np.column_stack([x, np.ones(len(x))])[asked], 1.0 + asked, played, happened[asked]
    first = half_lives[0]
    known = mixed(*rows, np.zeros(len(asked)), first, COEFFICIENT_SDS, CONSTANT_SD)
    # the probability of what happened is Φ(o), or 1 − Φ(o) = Φ(−o)
    offset = (2.0 * happened[asked] - 1.0) * ndtri_exp(known)
    changed = [mixed(*rows, offset, half_life, CHANGE_SDS) for half_life in half_lives[1:]]
    told = np.stack([known, *changed], axis=1)
    order = np.argsort(played, kind="stable")
    earlier = np.arange(len(order)) - np.searchsorted(played[order], played[order])  # of the arm
    told[order[earlier < ROUNDS_OF_ARM]] = np.nan
    out = np.full((len(x), len(half_lives)), np.nan)
    out[asked] = told
    return out


def mixed(
    z: Array,
    tick: Array,
    arm: Array,
    happened: Array,
    offset: Array,
    half_life: float | None,
    sds: Sequence[float],
    constant_sd: float | None = None,
) -> Array:
    """Return the log probability (n,) of what happened in each round, before it was learned, by
    probit regressions of each arm beside an offset, as of `scoring.learn_chances`: θ ~ N(0, s²I).

    s is one of `sds`, each as probable as the others at first. constant_sd: that of the last
    coefficient, if it is another.
    """
    rule = Ridge(1.0, variance=1.0, intercept=False)
    settings = rule.settings(z.shape[1], False, Memory(half_life))
    K = int(arm.max(initial=-1)) + 1
    learned = np.empty((len(sds), len(z)))
    for s, told in zip(sds, learned, strict=True):
        scaled = s * z
        if constant_sd is not None:
            scaled[:, -1] = constant_sd
        arms = new_arms(K, settings)
        scoring.learn_chances(arms, settings, tick, scaled, arm, offset, happened, told)
    # log Σ P(what happened so far | s) / S after each round, less what it was before
    total = logsumexp(np.cumsum(learned, axis=1), axis=0) - np.log(len(sds))
    return np.diff(total, prepend=0.0)
