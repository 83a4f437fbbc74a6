"""Confidence sequences and tests that hold at all rounds at once: you may look, and stop, any time.

Waudby-Smith et al. (2024), Time-uniform central limit theory and asymptotic confidence sequences;
Waudby-Smith et al. (2024), Anytime-valid off-policy inference for contextual bandits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from bayesbandit.checks import Array
from bayesbandit.ope.tally import Tally

FIRST_VERDICT_ROUND = 120  # the first round in which an asymptotic sequence may have a verdict
MIN_STEADY = 20.0  # the smallest `Tally.steady` for a verdict
TRIED_MEANS = 500  # number of means ν that an exact sequence tries
WEALTH_SHARES = 2.0 ** -np.arange(1, 15)  # c_j, shares of the wealth
ROUNDS_PER_CHUNK = 64  # rounds at a time


@dataclass(frozen=True)
class Sequence:
    """A confidence sequence: an interval after each round, from the first verdict on.

    All intervals hold simultaneously with probability `level`. rounds, low, high: (m,). kind:
    "asymptotic" or "exact". refused: why ends are NaN, or "". An exact sequence is NaN where it
    rejects every mean, which happens with probability 1 − level at most. The value of the logged
    policy, which changes, is its average so far.
    """

    rounds: Array
    low: Array
    high: Array
    kind: str
    level: float
    refused: str = ""

    def unless(self, why: str) -> Sequence:
        """Return the sequence; if there is a reason why it is refused, with ends that are NaN."""
        if not why:
            return self
        unknown = np.full_like(self.low, np.nan)
        return replace(self, low=unknown, high=unknown, refused=why)

    def __repr__(self) -> str:
        if not len(self.rounds):
            return f"Sequence({self.kind}, no verdict yet)"
        if self.refused:
            return f"Sequence({self.kind}, {len(self.rounds)} rounds, refused: {self.refused})"
        return (
            f"Sequence({self.kind}, {len(self.rounds)} rounds, at the end "
            f"[{self.low[-1]:.4g}, {self.high[-1]:.4g}])"
        )


def begin(tally: Tally) -> int | None:
    """Return the position of the first round with a verdict, or None.

    It is at least round 120, and `steady` has reached 20.
    """
    ready = (tally.steady >= MIN_STEADY) & (tally.V > 0)
    ready[: FIRST_VERDICT_ROUND - 1] = False
    return int(ready.argmax()) if ready.any() else None


def tuned(tally: Tally, first: int, alpha: float, planned: int | None) -> float:
    """Return ρ² for which a sequence is tightest at half of the planned rounds, by the variance at
    the first verdict."""
    half = (len(tally.V) if planned is None else planned) / 2
    V = float(tally.V[first]) * half / (first + 1)
    return float((-2 * np.log(alpha) + np.log(-2 * np.log(alpha)) + 1) / V)


def asymptotic(tally: Tally, rounds: Array, alpha: float, planned: int | None = None) -> Sequence:
    """Return the asymptotic confidence sequence at the rounds (m,) of a tally."""
    if (first := begin(tally)) is None:
        return Sequence(rounds[:0], tally.H[:0], tally.H[:0], "asymptotic", 1 - alpha)
    r = tuned(tally, first, alpha, planned)
    v, H, V = (of[first:] for of in (tally.value, tally.H, tally.V))
    # √((V + 1/ρ²) log((Vρ² + 1)/α²))/H, with r = ρ²
    half = np.sqrt((V + 1 / r) * np.log((V * r + 1) / alpha**2)) / H
    return Sequence(rounds[first:], v - half, v + half, "asymptotic", 1 - alpha)


def log_e(S: Array, V: Array, r: Any) -> Array:
    """Return log E of the one-sided e-process against "E[d] ≤ 0", with S = Σhd and r = ρ²:

    E = 2(1 + ρ²V)^−½ exp(ρ²S²/(2(1 + ρ²V))) Φ(ρS/√(1 + ρ²V))
    """
    scale = 1 + r * V
    return np.log(2) - np.log(scale) / 2 + r * S**2 / (2 * scale) + log_ndtr(S * np.sqrt(r / scale))


def always_valid_p(
    tally: Tally, alpha: float, planned: int | None = None, moves: bool = False
) -> tuple[float, float]:
    """Return the always-valid p-values of "E[d] ≤ 0" and of "E[d] ≥ 0": p = min(1, 1/max_t E_t).

    moves: whether the mean may change from round to round. Then the p-values are of its average so
    far, and only the last E counts, since earlier ones are of other averages: p = min(1, 1/E_n).
    """
    if (first := begin(tally)) is None:
        return 1.0, 1.0
    r = tuned(tally, first, alpha, planned)
    if moves:
        first = len(tally.V) - 1
    S, V = tally.S[first:], tally.V[first:]
    above, below = (float(np.exp(-max(log_e(s, V, r).max(), 0.0))) for s in (S, -S))
    return above, below


def rejected(phi: Array, k: float, alpha: float) -> Array:
    """Return the largest mean that bets on scores φ (m,) have rejected after each, (m,).

    The wealth of bets that the mean of the scores exceeds ν is, for each ν on a grid in (0, 1],

        W_t(ν) = mean_j Π_{s≤t} (1 + c_j((φ_s + k)/(ν + k) − 1)),  φ ≥ −k.

    W decreases in ν. A mean ν is rejected, permanently, once W reaches 2/α. The result is the lower
    end of an interval, at most one grid step too low; 0 if no mean is rejected.
    """
    enough = 2 / alpha * len(WEALTH_SHARES)
    nu = np.arange(1, TRIED_MEANS + 1) / TRIED_MEANS
    log_wealth = np.zeros((TRIED_MEANS, len(WEALTH_SHARES)))
    low = 0.0
    ends = np.empty(len(phi))
    for start in range(0, len(phi), ROUNDS_PER_CHUNK):
        part = phi[start : start + ROUNDS_PER_CHUNK]
        # the factor of the wealth: a bet of the share c_j that E[φ] > ν
        gain = (part[:, None] + k) / (nu + k) - 1
        path = np.log1p(WEALTH_SHARES * gain[..., None])
        path[0] += log_wealth
        np.cumsum(path, axis=0, out=path)
        with np.errstate(over="ignore"):  # infinite wealth also rejects
            wealth = np.exp(path).sum(axis=2)
        rich = np.maximum.accumulate(wealth >= enough, axis=0)
        gone = np.logical_and.accumulate(rich, axis=1).sum(axis=1)  # decreasing in ν
        ends[start : start + len(part)] = np.append(low, nu)[gone]
        low = float(ends[start + len(part) - 1])
        n_gone = gone[-1]
        nu = nu[n_gone:]
        log_wealth = path[-1, n_gone:]
        if not len(nu):
            ends[start + len(part) :] = low
            break
    return ends


def averaged(phi: Array, k: float, alpha: float) -> Array:
    """Return the lower end (m,) of an interval for the average of E[φ_s | past] over s ≤ t.

    These means may change, as the value of a policy that learns. With ξ = (φ − m̂)/(1 + k) ≥ −1 and
    m̂ the average of earlier scores, within [0, 1], for each c in (0, 1)

        E_t = exp(c Σ_{s≤t} (φ_s − E[φ_s | past])/(1 + k) + (log(1 − c) + c) Σ_{s≤t} ξ_s²)

    is a supermartingale, since exp(cξ + (log(1 − c) + c) ξ²) ≤ 1 + cξ (Howard et al. 2021,
    Time-uniform, nonparametric, nonasymptotic confidence sequences, section A.8).
    """
    t = np.arange(1, len(phi) + 1)
    total = np.cumsum(phi)
    before = np.clip((0.5 + total - phi) / t, 0.0, 1.0)  # m̂, which begins at ½
    squares = np.cumsum(((phi - before) / (1 + k)) ** 2)
    needed = np.log(2 / alpha * len(WEALTH_SHARES))  # E of one of the c reaches it
    low = np.zeros(len(phi))
    for c in WEALTH_SHARES:
        reach = (needed - (np.log1p(-c) + c) * squares) / c
        low = np.maximum(low, (total - (1 + k) * reach) / t)
    return low


def bet_scores(
    pi: Array, e: Array | None, p: Array, played: Array,
    r: Array, m: Array, k: float,
) -> Array:  # fmt: skip
    """Return φ = w(r − min(m_A, k/w_A)) + Σ_j π_j min(m_j, k/w_j) ≥ −k, (n,), with mean V(π).

    r and m lie within [0, 1]. k = 0, for unknown probabilities e (n, K): φ = wr (IPS).
    """
    rows = np.arange(len(r))
    pi_A = pi[rows, played]
    w = pi_A / p
    if k == 0 or e is None:
        return w * r
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        least = np.where(pi > 0, np.minimum(m, k * e / pi), 0.0)
    return w * (r - least[rows, played]) + (pi * least).sum(axis=1)


def exact(
    above: Array, below: Array, k: float, alpha: float, rounds: Array, moves: bool
) -> tuple[Array, Array]:
    """Return the ends (m,) in [0, 1] of the exact confidence sequence.

    above: scores (n,) with the mean that is asked for. below: scores with 1 minus that mean. Both
    are ≥ −k. moves: whether the mean may change from round to round; then its average so far is
    asked for. NaN where every mean is rejected, which happens with probability α at most. A mean
    that does not move is rejected for ever.
    """
    end = averaged if moves else rejected
    low = end(above[rounds], k, alpha)
    high = 1 - end(below[rounds], k, alpha)
    empty = low > high
    return np.where(empty, np.nan, low), np.where(empty, np.nan, high)
