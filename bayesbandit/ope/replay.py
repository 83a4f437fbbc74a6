"""What a bandit that learns would have earned, by the rounds of a log in which it chooses alike.

Li, Chu, Langford & Wang (2011), Unbiased offline evaluation of contextual-bandit-based news article
recommendation algorithms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm
from scipy.stats import t as student

from bayesbandit.bandit import transactions
from bayesbandit.bandit.bandit import Bandit
from bayesbandit.bandit.player import Player
from bayesbandit.checks import floats, integer, number, shown
from bayesbandit.ope.check import refuted
from bayesbandit.ope.logs.columns import SLACK
from bayesbandit.ope.logs.log import Log
from bayesbandit.ope.targets import trained_on

FEWEST = 50  # matched rounds to be expected, at least
THINNING = 11  # key of a stream of random numbers


@dataclass(frozen=True, repr=False)
class Replay:
    """What a bandit earned while it learned from the matched rounds of a log.

    value: the mean reward of the matched rounds, with its standard error se and the interval (low,
        high), NaN where it is `refused`: a sentence, "" where it is not. The interval is of what
        this run was to earn on average. Another run of the bandit may learn otherwise, and of that
        one replay knows nothing.
    matched, expected: how many rounds matched, and how many were expected to, n c.
    thinned: rounds that the rejection left. rounds: the matched ones' places in the log (m,);
    arm, reward (m,). bandit: as it is at the end. warnings: sentences.
    """

    value: float
    se: float
    low: float
    high: float
    expected: float
    thinned: int
    rounds: np.ndarray
    arm: np.ndarray
    reward: np.ndarray
    level: float
    bandit: Any = field(repr=False)
    refused: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def matched(self) -> int:
        """How many rounds the bandit has played."""
        return len(self.rounds)

    @cached_property
    def curve(self) -> pd.DataFrame:
        """Return a row a matched round t: its place in the log, its arm and reward, and the mean
        reward of rounds 1 … t with its standard error."""
        t = np.arange(1, self.matched + 1)
        c = self.reward - self.value
        mean = np.cumsum(c) / t
        spread = np.maximum(np.cumsum(c**2) - t * mean**2, 0.0)
        with np.errstate(invalid="ignore"):
            se = np.where(t > 1, np.sqrt(spread / (np.maximum(t - 1, 1) * t)), np.nan)
        return pd.DataFrame(
            {"t": t, "round": self.rounds, "arm": self.arm, "reward": self.reward,
             "mean": self.value + mean, "se": se}
        )  # fmt: skip

    def __repr__(self) -> str:
        said = f", refused: {self.refused}" if self.refused else ""
        return (
            f"Replay({self.value:.4g} ± {self.se:.2g}, [{self.low:.4g}, {self.high:.4g}], "
            f"{self.matched} matched rounds{said})"
        )


def replay(
    data: Log,
    bandit: Player,
    *,
    min_probability: Any = None,
    level: float = 0.95,
    seed: int = 0,
    force: bool = False,
) -> Replay:
    """Let a copy of a bandit play the rounds of a log in which it chooses the arm that was taken.

    First each round is kept with probability c/e(A), where c is the least probability of any arm.
    The arms of the kept rounds are then uniform, whatever the log's policy had learned. The bandit
    plays these rounds in order. It learns from those in which it chooses the arm of the log: n c
    rounds on average, a random part of all. Fewer than 50 are refused.

    A round that does not match has not happened. The bandit is as it was before, its count of
    rounds t and its random numbers included: α(t) and floors by t count matched rounds. A player
    that is no `Bandit` is copied for each kept round.

    bandit: without rounds of the log. It is not changed.
    min_probability: c, a number or one a round (n,), if the log's policy had a declared one; c must
        not depend on the contexts of its own or of later rounds. By default the least in the log.
    force: give an interval although the log's probabilities are refuted.
    """
    if not isinstance(data, Log):
        raise TypeError(f"replay takes a bb.ope.Log; got {data!r}")
    number(level, "level", above=0, below=1)
    _check(data, bandit)
    least, warnings = _least(data, min_probability)
    expected = float(least.sum())
    if expected < FEWEST:
        raise ValueError(
            f"a replay of these {len(data)} rounds would match {expected:.1f} on average, fewer "
            f"than {FEWEST}: the least probability of an arm is {least.min():.3g}"
        )
    rng = np.random.default_rng(
        np.random.SeedSequence(integer(seed, "seed"), spawn_key=(THINNING,))
    )
    kept = np.flatnonzero(rng.random(len(data)) * data.propensity < least)
    rounds, own = _played(data, bandit, kept)
    reward = data.reward[rounds]
    if len(rounds) < 2:
        raise ValueError(f"only {len(rounds)} of {len(kept)} kept rounds matched")
    value, se = float(reward.mean()), float(reward.std(ddof=1) / np.sqrt(len(rounds)))
    why = "" if force else refuted(data)
    half = np.nan if why else float(norm.ppf((1 + level) / 2)) * se
    return Replay(
        value, se, value - half, value + half, expected, len(kept), rounds, data.arm[rounds],
        reward, level, own, why, tuple(warnings),
    )  # fmt: skip


def together(runs: Sequence[Replay], level: float = 0.95) -> tuple[float, float, float, float]:
    """Return the mean value, its standard error, low and high of several replays of a log, by other
    seeds.

    Runs differ by the rounds that the rejection keeps and by what the bandit draws, so that their
    standard deviation s knows that one may learn otherwise than another. They share rounds: with ρ
    the share of a run's rounds that another one has, se = s √((1 + (R − 1)ρ)/R), and the interval
    is Student's.
    """
    return pooled(np.array([run.value for run in runs]), overlap(runs), level)


def pooled(values: np.ndarray, rho: float, level: float) -> tuple[float, float, float, float]:
    """Return mean, standard error, low and high of R values (R,) whose correlation is ρ."""
    R = len(values)
    mean = float(values.mean())
    if R < 2:
        return mean, np.nan, np.nan, np.nan
    se = float(values.std(ddof=1) * np.sqrt((1 + (R - 1) * rho) / R))
    half = float(student.ppf((1 + level) / 2, R - 1)) * se
    return mean, se, mean - half, mean + half


def overlap(runs: Sequence[Replay]) -> float:
    """Return the mean share of a run's rounds that another run of the same log has."""
    count = Counter(np.concatenate([run.rounds for run in runs]).tolist())
    total, R = sum(run.matched for run in runs), len(runs)
    return sum(c * (c - 1) for c in count.values()) / (total * (R - 1)) if R > 1 else 1.0


def _check(log: Log, bandit: Player) -> None:
    if not isinstance(bandit, Player):
        raise TypeError(
            "replay takes a bandit, or a player with `arms`, `n_features`, `choose` and `observe`; "
            f"got {shown(bandit)}"
        )
    if unknown := [arm for arm in bandit.arms if arm not in log.arms]:
        raise ValueError(f"the bandit has arms that the log has not: {unknown!r}")
    if bandit.n_features != log.x.shape[1]:
        raise ValueError(
            f"the bandit has n_features = {bandit.n_features}; the log has {log.x.shape[1]}"
        )
    if isinstance(bandit, Bandit) and bandit.of_arms:
        raise ValueError("a log has no features of arms, which this bandit needs")
    if isinstance(bandit, Bandit) and (known := trained_on(log, bandit)):
        raise ValueError(f"the bandit was trained on {known} of these {len(log)} rounds")
    if (missing := int(np.isnan(log.reward).sum())) > 0:
        raise ValueError(
            f"{missing} of {len(log)} rewards are missing (NaN), and a bandit cannot learn them: "
            "replay the rounds before the first open one, or log.within(delay)"
        )


def _least(log: Log, given: Any) -> tuple[np.ndarray, list[str]]:
    """Return the minimum probability c of each round (n,), and warnings."""
    e, n, warnings = log.probabilities, len(log), list[str]()
    known = log.propensity if e is None else e
    if e is not None:
        could = np.ones_like(e, dtype=bool) if log.available is None else log.available
        never = (could & (e == 0)).any(axis=1)
        if never.any():
            raise ValueError(
                f"arms had probability 0 in {int(never.sum())} of {n} rounds, and a bandit may "
                "choose them: available= of the log says which arms could be taken"
            )
        known = e[could]
    if given is not None:
        least = np.broadcast_to(floats(given, "min_probability"), (n,))
        lowest = log.propensity if e is None else np.where(could, e, np.inf).min(axis=1)
        if not ((least > 0) & (least <= lowest + SLACK)).all():  # NaN: neither
            t = int(np.argmin((least > 0) & (least <= lowest + SLACK)))
            raise ValueError(
                f"min_probability must be above 0 and at most every logged probability; got "
                f"{least[t]:g} in round {t}, which has one of {lowest[t]:g}"
            )
        return least, warnings
    if e is None:
        warnings.append(
            "the least propensity of the arms that were taken stands for that of all arms: "
            "min_probability= of the log's policy, where it is known, is right"
        )
    return np.full(n, known.min()), warnings


def _played(log: Log, bandit: Player, kept: np.ndarray) -> tuple[np.ndarray, Any]:
    """Return the places of the matched rounds, and the bandit after them."""
    names, matched, could = log.arm.tolist(), [], _could(log, bandit)
    own: Any = deepcopy(bandit)
    if isinstance(own, Bandit):
        own.encoder = None  # the contexts of a log are numbers by now
    for t in kept.tolist():
        twin: Any = transactions.fork(own) if isinstance(own, Bandit) else deepcopy(own)
        among = () if could is None else ([a for a in own.arms if could[t, log.arms.index(a)]],)
        decision = twin.choose(log.x[t], *among)
        if decision.arm == names[t]:
            twin.observe(decision, float(log.reward[t]))
            own = twin
            matched.append(t)
    if isinstance(own, Bandit):
        own = own.copy()  # with a lock of its own
        own.encoder = bandit.encoder if isinstance(bandit, Bandit) else None
    return np.array(matched, dtype=np.int64), own


def _could(log: Log, bandit: Player) -> np.ndarray | None:
    """Return which arms could be taken (n, K); None if all could always be taken."""
    if log.available is None or log.available.all():
        return None
    if not isinstance(bandit, Bandit):
        raise TypeError(f"not all arms could always be taken: {shown(bandit)} must be a bb.Bandit")
    return log.available
