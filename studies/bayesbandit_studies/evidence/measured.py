"""Measurements of simulated logs: a row for each replication and estimator, sequence or claim."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.stats import norm

from bayesbandit.ope import Estimate, Log, check, estimate
from bayesbandit.ope.sequences import FIRST_VERDICT_ROUND, always_valid_p
from bayesbandit.ope.sequences import Sequence as Bounds
from bayesbandit_studies.evidence.designs import (
    APART,
    BATCH,
    DESIGNS,
    K,
    Logged,
    bernoulli,
    constant,
    linear,
    values,
)

Row = dict[str, str | float]
Target = int | tuple[int, int]  # an arm's value, or how much larger the first one's is
LEVEL, P = 0.95, 0.3  # of intervals; value of the arms that are peeked at
Z = float(norm.ppf((1 + LEVEL) / 2))
TARGETS: dict[str, Target] = {"arm 0": 0, "arm 1": 1, "arm 2": 2, "0 − 1": (0, 1), "0 − 2": (0, 2)}
DEFAULT = "DR, chosen, StableVar (default)"
SAMPLE_MEAN = "sample mean"
CONTEXTUAL = "contextual"
METHODS: dict[str, dict[str, Any]] = {
    "IPS": {"estimator": "ips", "weights": "equal"},
    "SNIPS": {"estimator": "snips", "weights": "equal"},
    "DR, equal weights": {"weights": "equal"},
    "DR, MinVar": {"weights": "minvar"},
    "DR, contextual MinVar": {"weights": CONTEXTUAL},
    "DR, running mean, StableVar": {"mean": "running"},
    "DR, arm means, StableVar": {"mean": "arm"},
    "DR, ridge, StableVar": {"mean": "ridge"},
    "DR, quadratic, StableVar": {"mean": "quadratic"},
    "clipped IPS": {"estimator": "clipped", "weights": "equal"},
    "direct method": {"estimator": "dm", "weights": "equal"},
    "SWITCH": {"estimator": "switch", "weights": "equal"},
    "shrunk DR": {"estimator": "shrunk", "weights": "equal"},
}
ESTIMATORS = (SAMPLE_MEAN, DEFAULT, *METHODS)
CLAIMS = ("true", "1/K", "swapped", "arm means")
LOOKS = tuple(range(FIRST_VERDICT_ROUND, 1001, BATCH))
FIXED, ASYMPTOTIC, EXACT = "ordinary interval", "asymptotic sequence", "exact sequence"
BEST = ("sample means, peeked", "z-test, peeked", "always-valid test")
SHORT = 500  # rounds of a log whose propensities are tested


def coverage(design: str, R: int, seed: np.random.SeedSequence) -> Iterator[Row]:
    """Yield an estimate for each of R logs, target and estimator, less the true value."""
    well, floor = DESIGNS.get(design, (True, constant))
    apart = APART.get(design, 0.0)
    drawn = linear(R, seed, well, floor, snapshots=True, apart=apart)
    for i, (log, full) in enumerate(zip(drawn.logs(), drawn.logs(snapshots=True), strict=True)):
        for target, asked in TARGETS.items():
            truth = true(asked, apart)
            for name, found in estimates(log, full, asked):
                value, low, high = (end - truth for end in found)
                yield {
                    "environment": design, "target": target, "method": name, "replication": i,
                    "t": len(log), "value": value, "low": low, "high": high, "round": np.nan,
                }  # fmt: skip


def true(asked: Target, apart: float) -> float:
    """Return the true value of a target."""
    value = values(apart)
    if isinstance(asked, tuple):
        return float(value[asked[0]] - value[asked[1]])
    return float(value[asked])


def estimates(
    log: Log, full: Log, asked: Target
) -> Iterator[tuple[str, tuple[float, float, float]]]:
    """Yield each estimator's name with its value, low and high end.

    full: the log with snapshots of the policy.
    """
    yield SAMPLE_MEAN, sample_mean(log, asked)
    for name, settings in {DEFAULT: {}, **METHODS}.items():
        data = full if settings.get("weights") == CONTEXTUAL else log
        found = estimate(data, asked, level=LEVEL, force=True, **settings)
        yield name, ends(found)


def ends(found: Estimate) -> tuple[float, float, float]:
    """Return an estimate's value, and the low and the high end of its interval."""
    return found.value, found.low, found.high


def sample_mean(log: Log, asked: Target) -> tuple[float, float, float]:
    """Return an arm's mean reward, or a difference of two, with its interval as if rounds were
    independent.

    Adaptive choices make this interval wrong; it is shown for comparison.
    """
    value, variance = 0.0, 0.0
    for sign, arm in zip((1, -1), asked if isinstance(asked, tuple) else (asked,), strict=False):
        y = log.reward[log.played == arm]
        if len(y) < 2:
            return np.nan, np.nan, np.nan
        value = value + sign * y.mean()
        variance = variance + y.var(ddof=1) / len(y)
    half = Z * np.sqrt(variance)
    return value, value - half, value + half


def peeking(design: str, R: int, seed: np.random.SeedSequence) -> Iterator[Row]:
    """Yield when an analyst who looks every 40 rounds, from round 120 on, is wrong.

    For arm 0's value: the first look at which an interval misses it, and the interval at the end.
    For the best arm: the first look at which one of three equal arms is declared the best.
    """
    for i, log in enumerate(bernoulli(R, seed, P).logs()):
        plain = estimate(log, 0, sequence="asymptotic", level=LEVEL, force=True)
        exact = estimate(log, 0, sequence=(0, 1), level=LEVEL, force=True).sequence
        assert plain.sequence is not None
        assert exact is not None
        low, high = fixed(plain)
        found = {
            FIXED: (low, high),
            ASYMPTOTIC: _at(plain.sequence),
            EXACT: _at(exact),
        }
        every = {ASYMPTOTIC: plain.sequence, EXACT: exact}
        for name, (least, most) in found.items():
            missed = (least > P) | (most < P)
            at = first(missed)
            if name in every:  # they hold at every round, not at looks alone
                sequence = every[name]
                at = first((sequence.low > P) | (sequence.high < P), sequence.rounds + 1)
            yield {
                "environment": design, "target": "arm 0", "method": name, "replication": i,
                "t": len(log), "value": plain.value, "low": least[-1], "high": most[-1],
                "round": at,
            }  # fmt: skip
        for name, at in declared(log).items():
            yield {
                "environment": design, "target": "best arm", "method": name, "replication": i,
                "t": len(log), "value": np.nan, "low": np.nan, "high": np.nan, "round": at,
            }  # fmt: skip


def _at(sequence: Bounds) -> tuple[np.ndarray, np.ndarray]:
    """Return a sequence's ends at the looks; NaN before its first interval."""
    ends = np.full((2, max(LOOKS)), np.nan)
    ends[:, sequence.rounds] = sequence.low, sequence.high
    low, high = ends[:, np.array(LOOKS) - 1]
    return low, high


def first(hit: np.ndarray, rounds: tuple[int, ...] | np.ndarray = LOOKS) -> float:
    """Return the first of the rounds at which `hit` is True; NaN where it never is."""
    return float(np.asarray(rounds)[hit.argmax()]) if hit.any() else np.nan


def moments(found: Estimate) -> tuple[np.ndarray, np.ndarray]:
    """Return the value and its standard error at each look, by the rounds until then."""
    known = found.sums
    rows = np.array(LOOKS) - 1
    assert known is not None
    return (known.S / known.H)[rows], (np.sqrt(known.V) / known.H)[rows]


def fixed(found: Estimate) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of ordinary intervals at the looks."""
    value, se = moments(found)
    return value - Z * se, value + Z * se


def declared(log: Log) -> dict[str, float]:
    """Return by test the first look at which an arm is declared better than all others, or NaN.

    The tests are one-sided, at level .05/(K − 1) against each of the others.
    """
    most = norm.isf((1 - LEVEL) / (K - 1))
    naive, z = np.zeros((2, len(LOOKS), K, K))
    p = np.ones((K, K))
    for a in range(K):
        for b in range(a):
            found = estimate(log, (a, b), level=LEVEL, force=True)
            value, se = moments(found)
            z[:, a, b] = value / se
            naive[:, a, b] = [_studentised(log[:t], (a, b)) for t in LOOKS]
            z[:, b, a], naive[:, b, a] = -z[:, a, b], -naive[:, a, b]
            assert found.sums is not None
            p[a, b], p[b, a] = always_valid_p(found.sums, 1 - LEVEL)
    own = np.eye(K, dtype=bool)
    rounds = [first(((x > most) | own).all(axis=2).any(axis=1)) for x in (naive, z)]
    valid = ((p < (1 - LEVEL) / (K - 1)) | own).all(axis=1).any()
    return dict(zip(BEST, [*rounds, float(len(log)) if valid else np.nan], strict=True))


def _studentised(log: Log, pair: tuple[int, int]) -> float:
    value, low, high = sample_mean(log, pair)
    return 0.0 if not high > low else value / ((high - low) / (2 * Z))


def claimed(e: np.ndarray) -> dict[str, np.ndarray]:
    """Return by claim the probabilities that a log states, where e (n, K) are the true ones."""
    said = (e, np.full_like(e, 1 / K), e[:, [1, 0, 2]], np.broadcast_to(e.mean(axis=0), e.shape))
    return dict(zip(CLAIMS, said, strict=True))


def detection(design: str, R: int, seed: np.random.SeedSequence) -> Iterator[Row]:
    """Yield the round in which the stated propensities of a log of 500 rounds are refuted."""
    well, floor = DESIGNS[design]
    drawn: Logged = linear(R, seed, well, floor, T=SHORT)
    for i, log in enumerate(drawn.logs()):
        assert log.probabilities is not None
        for name, e in claimed(log.probabilities).items():
            found = check(Log(log.x, log.played, log.reward, e))
            yield {
                "environment": design, "target": "propensities", "method": name, "replication": i,
                "t": len(log), "value": found.log_e, "low": np.nan, "high": np.nan,
                "round": np.nan if found.at is None else found.at + 1,
            }  # fmt: skip
