"""Target policies: their probabilities π (n, K) at the contexts of a log."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from inspect import ismethod
from typing import Any

import numpy as np
from scipy.stats import hypergeom

from bayesbandit.bandit.bandit import Bandit
from bayesbandit.bandit.logged import check_encoder
from bayesbandit.checks import PROBABILITY_TOLERANCE, shown
from bayesbandit.ope.logs.columns import distribution
from bayesbandit.ope.logs.log import Log

IDENTIFYING_ROUNDS = 50  # consecutive rounds that identify a log if its rows repeat
MIN_PROBABILITY = 1e-50  # of an arm that was possible
CHANCE_OF_A_PART = 0.001  # below which a history is no part of the log by chance
DISTINCT_ROWS_SHARE = 0.99  # share of different rows above which one row identifies a log


class Unsupported(ValueError):
    """Raised if a target wants arms that the log never chose, or no round counts."""


@dataclass(frozen=True)
class Target:
    """A policy to evaluate.

    pi: its probabilities (n, K); None for the logged policy. trained: how many of the log's rounds
    it was trained on, as far as it has kept its own. forgot: a warning if it has not kept all; "".
    """

    pi: np.ndarray | None
    trained: int = 0
    forgot: str = ""

    def weights(self, log: Log) -> np.ndarray:
        """Return w = π(X, A)/e(X, A), (n,)."""
        if self.pi is None:
            return np.ones(len(log))
        return self.pi[np.arange(len(log)), log.played] / log.propensity

    def density(self, log: Log) -> np.ndarray:
        """Return π (n, K): the target's probabilities, or the logged ones."""
        if self.pi is not None:
            return self.pi
        if log.probabilities is None:
            raise ValueError("this estimate of the logged policy needs probabilities (n, K)")
        return log.probabilities


def target_of(log: Log, target: Any) -> Target:
    """Return a target's probabilities in each round of the log.

    target: an arm's name; probabilities (n, K); a bandit; a function of contexts (n, d) that
    returns names (n,) or probabilities (n, K), such as `bandit.greedy`; or None, the logged policy.
    """
    if target is None:
        return Target(None)
    if isinstance(target, Target):
        return target
    if isinstance(target, str | int | np.integer) and not isinstance(target, bool):
        if target not in log.arms:
            raise ValueError(f"a target must be among {list(log.arms)!r}; got {target!r}")
        return Target(_one_hot(log, np.full(len(log), target)))
    if isinstance(target, Bandit):
        target = target.probabilities
    if callable(target):
        arms = log.arms
        trained = 0
        forgot = ""
        owner = target.__self__ if ismethod(target) else None
        if isinstance(owner, Bandit):
            check_encoder(owner, log)
            frozen = owner.copy()
            frozen.encoder = None  # contexts of a log are numbers already
            target = partial(target.__func__, frozen)
            arms = owner.arms
            trained = trained_on(log, owner)
            kept = len(owner.history)
            if not trained and kept < owner.history.total:
                forgot = (
                    f"the bandit has kept {kept} of its {owner.history.total} rounds: whether it "
                    "learned others of this log is not known"
                )
        probabilities = target(log.x)
        if np.ndim(probabilities) == 1:
            return Target(_one_hot(log, np.asarray(probabilities)), trained, forgot)
        return Target(_placed(log, probabilities, arms), trained, forgot)
    if isinstance(target, tuple) or np.ndim(target) < 2:
        raise TypeError(
            "a target is an arm's name, probabilities (n, K), a bandit, or a pair of these as a "
            f"tuple; got {shown(target)}"
        )
    return Target(_placed(log, target, log.arms))


def _placed(log: Log, p: Any, arms: Any) -> np.ndarray:
    """Return probabilities over a bandit's arms, in the columns of the log."""
    if list(arms) != list(log.arms):
        if unknown := [arm for arm in arms if arm not in log.arms]:
            raise Unsupported(f"the target has arms that the log has not: {unknown!r}")
        pi = np.zeros((len(log), len(log.arms)))
        pi[:, [log.arms.index(arm) for arm in arms]] = p
        p = pi
    return distribution(p, len(log), log.arms, "a target's probabilities")


def _one_hot(log: Log, names: np.ndarray) -> np.ndarray:
    """Return probabilities (n, K) that are 1 for the named arms (n,)."""
    if names.shape != (len(log),):
        raise ValueError(f"a target must name an arm for {len(log)} rounds; got {names.shape}")
    pi = np.zeros((len(log), len(log.arms)))
    for name in set(names.tolist()):
        if name not in log.arms:
            raise ValueError(f"a target must name arms among {list(log.arms)!r}; got {name!r}")
        pi[names == name, log.arms.index(name)] = 1.0
    return pi


def trained_on(log: Log, bandit: Bandit) -> int:
    """Return how many rounds of the log are in the bandit's history.

    Contexts, arms and rewards must be the same. If rows repeat by chance, 50 consecutive rounds
    must be; or no row is in the history more often than in the log, where it hardly would be so by
    chance.
    """
    past = bandit.history
    if not len(past) or log.x.shape[1] != past.layout.n_features:
        return 0
    index = {arm: float(k) for k, arm in enumerate(log.arms)}
    names = np.array([index.get(arm, -1.0) for arm in past.arm.tolist()])
    rounds = np.column_stack([log.x, log.played, log.reward])
    theirs = np.column_stack([past.x, names, past.reward])
    _, number = np.unique(np.vstack([rounds, theirs]), axis=0, return_inverse=True)
    of_log = number.ravel()[: len(rounds)]
    seen = number.ravel()[len(rounds) :]
    distinct = len(np.unique(of_log)) >= DISTINCT_ROWS_SHARE * len(of_log)
    size = 1 if distinct else min(IDENTIFYING_ROUNDS, len(of_log))
    if len(seen) < size:
        return 0
    windows = np.lib.stride_tricks.sliding_window_view
    runs = {run.tobytes() for run in windows(seen, size)}
    matches = np.array([run.tobytes() in runs for run in windows(of_log, size)])
    n_matched = int(np.convolve(matches, np.ones(size)).astype(bool).sum())
    return n_matched if distinct else max(n_matched, shuffled(of_log, seen))


def shuffled(of_log: np.ndarray, seen: np.ndarray) -> int:
    """Return how many rounds of a log a history has in another order: all that it has, if no row
    is there more often than in the log; else 0, as if it may be so by chance.

    of_log, seen: the rows' numbers. By chance: where the history's rows are drawn from those of
    both together. A number of each row is then hypergeometric, and that all are at most half of
    what there is has at most the product of their probabilities, since they are negatively
    associated (Joag-Dev and Proschan 1983).
    """
    size = 1 + max(of_log.max(), seen.max())
    ours = np.bincount(of_log, minlength=size)
    theirs = np.bincount(seen, minlength=size)
    if (theirs > ours).any():
        return 0
    both, rows = np.unique(ours + theirs, return_counts=True)
    total = len(of_log) + len(seen)
    log_chance = rows @ hypergeom.logcdf(both // 2, total, both, len(seen))
    return len(seen) if log_chance < np.log(CHANCE_OF_A_PART) else 0


def supported(log: Log, pi: np.ndarray, on: np.ndarray) -> np.ndarray:
    """Return a mask (n,) of the rounds in which each arm that the target wants was possible.

    A probability below 1e-50 counts as 0: fourth powers of weights must be finite. A propensity
    below 1 where only the chosen arm is known to have been available says that there were others:
    such rounds are not possible for any target.
    """
    if log.probabilities is None:
        pi_A = pi[np.arange(len(log)), log.played]
        could = on & ~((pi_A > 0) & (log.propensity < MIN_PROBABILITY))
        if log.available is None:
            return could
        with_others = log.available.sum(axis=1) > 1
        known = with_others | (log.propensity >= 1.0 - PROBABILITY_TOLERANCE)
        return could & known & ~((pi > 0) & ~log.available).any(axis=1)
    return on & ~((pi > 0) & (log.probabilities < MIN_PROBABILITY)).any(axis=1)
