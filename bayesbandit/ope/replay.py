"""Replay: the rewards of a bandit that learns from those rounds of a log in which it agrees.

Li, Chu, Langford & Wang (2011), Unbiased offline evaluation of contextual-bandit-based news article
recommendation algorithms.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

from bayesbandit.bandit import transactions
from bayesbandit.bandit.bandit import Bandit
from bayesbandit.bandit.logged import check_encoder
from bayesbandit.bandit.player import Player
from bayesbandit.checks import PROBABILITY_TOLERANCE, floats, integer, number, shown
from bayesbandit.ope.check import refuted
from bayesbandit.ope.logs.log import Log
from bayesbandit.ope.targets import trained_on

MIN_MATCHED_ROUNDS = 50  # smallest expected number of matched rounds
THINNING_STREAM = 11  # key of a stream of random numbers


@dataclass(frozen=True, repr=False)
class Replay:
    """The result of a replay: what a bandit earned while it learned from a log's matched rounds.

    value: the mean reward of the matched rounds, with its standard error `se` and an interval (low,
        high). The interval is for the expected mean reward of this run. It does not cover how much
        other runs of the same bandit would differ.
    refused: why there is no interval (low and high are NaN), or "". warnings: sentences.
    matched, expected: how many rounds matched, and how many were expected to, Σc.
    thinned: how many rounds the rejection step kept.
    rounds: the matched rounds' positions in the log (m,). arm, reward: theirs (m,).
    bandit: the copy that played, after the last matched round.
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
    bandit: Player = field(repr=False)
    refused: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def matched(self) -> int:
        """How many rounds matched: the bandit has played these."""
        return len(self.rounds)

    def __repr__(self) -> str:
        refusal = f", refused: {self.refused}" if self.refused else ""
        return (
            f"Replay({self.value:.4g} ± {self.se:.2g}, [{self.low:.4g}, {self.high:.4g}], "
            f"{self.matched} matched rounds{refusal})"
        )


def replay(
    data: Log,
    bandit: Player,
    *,
    min_probability: ArrayLike | None = None,
    level: float = 0.95,
    seed: int = 0,
    force: bool = False,
) -> Replay:
    """Let a copy of a bandit play those rounds of a log in which it chooses the logged arm.

    First each round is kept with probability c/e(A), where c is the smallest probability of any
    arm. In the kept rounds the logged arm is uniform, even if the log's policy has learned. The
    bandit plays the kept rounds in order. It learns from a round if it chooses the logged arm. So
    Σc rounds match on average, and they are a random part of all rounds. Raise ValueError if fewer
    than 50 are expected.

    A round that does not match leaves the bandit unchanged, including its count of rounds t and its
    random numbers. So settings that change with t count matched rounds only. A player that is not a
    `Bandit` is copied for each kept round.

    bandit: it must not have learned rounds of this log. It is not changed.
    min_probability: c, a number or one for each round (n,), if the log's policy had a declared
        minimum. c must not depend on contexts of the same or later rounds. Default: the smallest
        probability in the log.
    force: give an interval even if the log's probabilities are refuted.
    """
    if not isinstance(data, Log):
        raise TypeError(f"replay takes a bb.ope.Log; got {data!r}")
    number(level, "level", above=0, below=1)
    _check(data, bandit)
    least, warnings = _least(data, min_probability)
    expected = float(least.sum())
    if expected < MIN_MATCHED_ROUNDS:
        raise ValueError(
            f"a replay of these {len(data)} rounds would match {expected:.1f} on average, fewer "
            f"than {MIN_MATCHED_ROUNDS}: the least probability of an arm is {least.min():.3g}"
        )
    rng = np.random.default_rng(
        np.random.SeedSequence(integer(seed, "seed"), spawn_key=(THINNING_STREAM,))
    )
    candidates = np.flatnonzero(rng.random(len(data)) * data.propensity < least)
    rounds, player = _played(data, bandit, candidates)
    reward = data.reward[rounds]
    if len(rounds) < 2:
        raise ValueError(f"only {len(rounds)} of {len(candidates)} kept rounds matched")
    value = float(reward.mean())
    se = float(reward.std(ddof=1) / np.sqrt(len(rounds)))
    why = "" if force else refuted(data)
    half = np.nan if why else float(norm.ppf((1 + level) / 2)) * se
    return Replay(
        value, se, value - half, value + half, expected, len(candidates), rounds, data.arm[rounds],
        reward, level, player, why, tuple(warnings),
    )  # fmt: skip


def _check(log: Log, bandit: Player) -> None:
    """Raise TypeError or ValueError if the bandit cannot play the log."""
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
    if isinstance(bandit, Bandit):
        check_encoder(bandit, log)
    if isinstance(bandit, Bandit) and (trained := trained_on(log, bandit)):
        raise ValueError(f"the bandit was trained on {trained} of these {len(log)} rounds")
    if (missing := int(np.isnan(log.reward).sum())) > 0:
        raise ValueError(
            f"{missing} of {len(log)} rewards are missing (NaN), and a bandit cannot learn them: "
            "replay the rounds before the first open one, or log.within(delay)"
        )


def _least(log: Log, declared: ArrayLike | None) -> tuple[np.ndarray, list[str]]:
    """Return the minimum probability c of each round (n,), and warnings."""
    e = log.probabilities
    n = len(log)
    lowest = log.propensity
    if e is not None:
        could = np.ones_like(e, dtype=bool) if log.available is None else log.available
        lowest = np.where(could, e, np.inf).min(axis=1)
        if never := int((lowest == 0).sum()):
            raise ValueError(
                f"arms had probability 0 in {never} of {n} rounds, and a bandit may choose them: "
                "available= of the log says which arms could be chosen"
            )
    if declared is None:
        warning = "the least propensity of the arms that were chosen stands for that of all arms: "
        warning += "min_probability= of the log's policy, where it is known, is right"
        return np.full(n, lowest.min()), [warning] if e is None else []
    least = np.broadcast_to(floats(declared, "min_probability"), (n,))
    fits = (least > 0) & (least <= lowest + PROBABILITY_TOLERANCE)  # NaN does not
    if not fits.all():
        t = int(np.argmin(fits))
        raise ValueError(
            f"min_probability must be above 0 and at most every logged probability; got "
            f"{least[t]:g} in round {t}, which has one of {lowest[t]:g}"
        )
    return least, []


def _played(log: Log, bandit: Player, candidates: np.ndarray) -> tuple[np.ndarray, Player]:
    """Return the places of the matched rounds, and the bandit after them."""
    names = log.arm.tolist()
    matched = []
    could = _could(log, bandit)
    player = deepcopy(bandit)
    if isinstance(player, Bandit):
        player.encoder = None  # the contexts of a log are numbers by now
    for t in candidates.tolist():
        twin = transactions.fork(player) if isinstance(player, Bandit) else deepcopy(player)
        if isinstance(twin, Bandit) and could is not None:
            available = [a for a in player.arms if could[t, log.arms.index(a)]]
            decision = twin.choose(log.x[t], available)
        else:
            decision = twin.choose(log.x[t])
        if decision.arm == names[t]:
            twin.observe(decision, float(log.reward[t]))
            player = twin
            matched.append(t)
    if isinstance(player, Bandit):
        player = player.copy()  # with a lock of its own
        player.encoder = bandit.encoder if isinstance(bandit, Bandit) else None
    return np.array(matched, dtype=np.int64), player


def _could(log: Log, bandit: Player) -> np.ndarray | None:
    """Return which arms could be chosen (n, K); None if all could always be chosen."""
    if log.available is None or log.available.all():
        return None
    if not isinstance(bandit, Bandit):
        raise TypeError(f"not all arms could always be chosen: {shown(bandit)} must be a bb.Bandit")
    return log.available
