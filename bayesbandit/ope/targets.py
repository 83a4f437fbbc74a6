"""Target policies: their probabilities π (n, K) at the contexts of a log."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from inspect import ismethod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from bayesbandit.bandit.bandit import Bandit
from bayesbandit.bandit.logged import check_encoder
from bayesbandit.checks import PROBABILITY_TOLERANCE, Array, same_rows, shown
from bayesbandit.ope.logs.columns import distribution, numbers_of
from bayesbandit.ope.logs.log import Log

MIN_PROBABILITY = 1e-50  # of an arm that was possible
MAX_CHANCE_OF_COINCIDENCE = 0.001  # below which rounds are not the log's by chance
DISTINCT_ROWS_SHARE = 0.99  # share of different rows above which one row identifies a log


class Unsupported(ValueError):
    """Raised if a target wants arms that the log never chose, or no round counts."""


@dataclass(frozen=True)
class Target:
    """A policy to evaluate.

    pi: its probabilities (n, K); None for the logged policy. trained: how many of the log's rounds
    it was trained on, as far as it has kept its own. forgot: a warning if it has not kept all; "".
    """

    pi: Array | None
    trained: int = 0
    forgot: str = ""

    def weights(self, log: Log) -> Array:
        """Return w = π(X, A)/e(X, A), (n,)."""
        if self.pi is None:
            return np.ones(len(log))
        return self.pi[np.arange(len(log)), log.played] / log.propensity

    def density(self, log: Log) -> Array:
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
        probabilities = target(log.x.copy())
        if np.ndim(probabilities) == 1:
            return Target(_one_hot(log, np.asarray(probabilities)), trained, forgot)
        return Target(_placed(log, probabilities, arms), trained, forgot)
    if isinstance(target, tuple) or np.ndim(target) < 2:
        raise TypeError(
            "a target is an arm's name, probabilities (n, K), a bandit, or a pair of these as a "
            f"tuple; got {shown(target)}"
        )
    return Target(_placed(log, target, log.arms))


def _placed(log: Log, p: Any, arms: Any) -> Array:
    """Return probabilities over a bandit's arms, in the columns of the log."""
    same_rows(log.index, target=p)
    if list(arms) != list(log.arms):
        if unknown := [arm for arm in arms if arm not in log.arms]:
            raise Unsupported(f"the target has arms that the log has not: {unknown!r}")
        pi = np.zeros((len(log), len(log.arms)))
        pi[:, [log.arms.index(arm) for arm in arms]] = p
        p = pi
    return distribution(p, len(log), log.arms, "a target's probabilities").copy()


def _one_hot(log: Log, names: Array) -> Array:
    """Return probabilities (n, K) that are 1 for the named arms (n,)."""
    if names.shape != (len(log),):
        raise ValueError(f"a target must name an arm for {len(log)} rounds; got {names.shape}")
    pi = np.zeros((len(log), len(log.arms)))
    pi[np.arange(len(log)), numbers_of(names, log.arms, "a target")] = 1.0
    return pi


def trained_on(log: Log, bandit: Bandit) -> int:
    """Return how many rounds of the log are in the bandit's history.

    Contexts, arms and rewards must be the same. If rows repeat, consecutive rounds must be the
    same, so many that chance would hardly do that; or nearly every row must be in the log as often
    as in the history, where chance would hardly do that either.
    """
    past = bandit.history
    if not len(past) or log.x.shape[1] != past.layout.n_features:
        return 0
    index = {arm: float(k) for k, arm in enumerate(log.arms)}
    names = np.array([index.get(arm, -1.0) for arm in past.arm.tolist()])
    rounds = np.column_stack([log.x, log.played, log.reward])
    theirs = np.column_stack([past.x, names, past.reward])
    both = np.vstack([rounds, theirs])
    row, decided = (
        np.unique(v, axis=0, return_inverse=True)[1].ravel() for v in (both, both[:, :-1])
    )
    n = len(rounds)
    of_log = row[:n]
    seen = row[n:]
    if len(np.unique(of_log)) >= DISTINCT_ROWS_SHARE * n:
        return int(np.isin(of_log, seen).sum())
    return max(in_order(of_log, seen), in_any_order(row, decided, n))


def in_order(of_log: Array, seen: Array) -> int:
    """Return how many rounds of a log are in stretches that a history has in the same order.

    of_log, seen: the rows' numbers. A stretch counts if chance would hardly make one such pair of
    stretches, under a Markov chain with the transitions of both: long runs of one row tell little.
    """
    size = int(max(of_log.max(), seen.max())) + 1
    # the transitions between rows by their numbers, each as one number
    both = np.concatenate([rows[:-1].astype(np.int64) * size + rows[1:] for rows in (of_log, seen)])
    _, which, count = np.unique(both, return_inverse=True, return_counts=True)
    starts = np.bincount(both // size, minlength=size)
    # −log P(next row | row) of each transition
    surprise = np.log(starts[both // size] / count[which])
    needed = np.log(len(of_log)) + np.log(len(seen)) - np.log(MAX_CHANCE_OF_COINCIDENCE)
    typical = surprise.mean()
    length = 2 + int(2.0 * needed / typical) if typical > 0.0 else len(both)
    length = min(length, len(of_log), len(seen))
    mine = stretches(of_log, length)
    its = stretches(seen, length)
    told = np.concatenate([[0.0], np.cumsum(surprise[: len(of_log) - 1])])
    is_rare = told[length - 1 :] - told[: len(told) - length + 1] > needed
    found = np.flatnonzero(np.isin(mine, its) & is_rare)
    covered = np.zeros(len(of_log) + 1, dtype=np.int64)
    np.add.at(covered, found, 1)
    np.add.at(covered, found + length, -1)
    return int((np.cumsum(covered) > 0).sum())


def stretches(rows: Array, length: int) -> Array:
    """Return a hash for each stretch of so many consecutive rows: equal stretches have one.

    It is Σ c_i w_i mod 2⁶⁴, with a random number c for each row and w for each place.
    """
    rng = np.random.default_rng(0)
    weights = rng.integers(2**63, size=length, dtype=np.uint64)
    code = rng.integers(2**63, size=int(rows.max()) + 1, dtype=np.uint64)[rows]
    return sliding_window_view(code, length) @ weights


def in_any_order(row: Array, decided: Array, n: int) -> int:
    """Return how many rounds of a log a history has in any order: 0 if this may be by chance.

    row: the rows' numbers, of the n rounds of the log and then of the history. decided: the same of
    contexts with arms, whatever the reward. Of N rounds of one context and arm, m are the
    history's. By chance, whatever the policies: where it has m of their N rewards. How often it has
    a row is hypergeometric then, and more often than the log with a probability q. These events are
    negatively associated (Joag-Dev and Proschan 1983). So k of them or fewer have the chance
    min over s > 0 of exp(s k) Π (1 − q + q exp(−s)) at most, as independent ones have (Chernoff).
    """
    from scipy.stats import hypergeom  # takes long to load

    ours = np.bincount(row[:n], minlength=row.max() + 1)
    theirs = np.bincount(row) - ours
    stratum = np.zeros_like(ours)
    stratum[row] = decided
    of_stratum = np.bincount(decided)
    drawn = np.bincount(decided[n:], minlength=len(of_stratum))
    cells = np.stack([of_stratum[stratum], ours + theirs, drawn[stratum]])
    (N, both, m), count = np.unique(cells, axis=1, return_counts=True)
    q = hypergeom.sf(both // 2, N, both, m)
    k = (theirs > ours).sum()
    tilt = np.geomspace(1e-3, 30.0, 200)
    log_chance = (tilt * k + np.log1p(q * np.expm1(-tilt)[:, None]) @ count).min()
    return (
        int(np.minimum(ours, theirs).sum()) if log_chance < np.log(MAX_CHANCE_OF_COINCIDENCE) else 0
    )


def supported(log: Log, pi: Array, on: Array) -> Array:
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
