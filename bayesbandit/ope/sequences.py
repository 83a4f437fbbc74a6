"""Intervals and tests that hold at every round at once, so that one may look, and stop.

Waudby-Smith et al. (2024), Time-uniform central limit theory and asymptotic confidence sequences;
Waudby-Smith et al. (2024), Anytime-valid off-policy inference for contextual bandits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_ndtr

START = 120  # the round before which an asymptotic sequence has no verdict
GRID = 500  # means that an exact sequence tries
BETS = 2.0 ** -np.arange(1, 15)  # c_j, shares of the wealth
CHUNK = 64  # rounds at a time


@dataclass(frozen=True)
class Sequence:
    """Intervals for each round from `start` on; all hold at once with probability `level`.

    rounds, low, high: (m,). kind: "asymptotic" or "exact".
    """

    rounds: np.ndarray
    low: np.ndarray
    high: np.ndarray
    kind: str
    level: float

    def __repr__(self) -> str:
        if not len(self.rounds):
            return f"Sequence({self.kind}, no verdict before round {START})"
        return (
            f"Sequence({self.kind}, {len(self.rounds)} rounds, at the end "
            f"[{self.low[-1]:.4g}, {self.high[-1]:.4g}])"
        )


@dataclass(frozen=True)
class Sums:
    """Running sums over rounds that count: H = Σh, S = Σhd, V = Σh²(d − v)², each (m,)."""

    rounds: np.ndarray
    H: np.ndarray
    S: np.ndarray
    V: np.ndarray


def sums(scores: np.ndarray, h: np.ndarray) -> Sums:
    """Return the sums after each round with h > 0."""
    rounds = np.flatnonzero(h > 0)
    d, h = scores[rounds], h[rounds]
    shift = (h @ d) / h.sum() if len(d) else 0.0  # for the arithmetic alone
    c = d - shift
    H, S, A = np.cumsum(h), np.cumsum(h * c), np.cumsum(h**2 * c)
    v = S / H
    V = np.cumsum(h**2 * c**2) - 2 * v * A + v**2 * np.cumsum(h**2)
    return Sums(rounds, H, S + shift * H, np.maximum(V, 0.0))


def rho2(V: float, alpha: float) -> float:
    """Return ρ², with which the sequence is tightest where the variance is V."""
    return float((-2 * np.log(alpha) + np.log(-2 * np.log(alpha)) + 1) / V)


def tuned(known: Sums, alpha: float, planned: int) -> float | None:
    """Return ρ² for half of the planned rounds, from the variance at round 120; None before it, or
    where nothing varies."""
    if len(known.V) < START or known.V[START - 1] <= 0:
        return None
    return rho2(float(known.V[START - 1]) * (planned / 2) / START, alpha)


def asymptotic(
    scores: np.ndarray, h: np.ndarray, alpha: float, planned: int | None = None
) -> Sequence:
    """Return the asymptotic confidence sequence v ± √((V + 1/ρ²) log((Vρ² + 1)/α²))/H."""
    known = sums(scores, h)
    r = tuned(known, alpha, len(known.V) if planned is None else planned)
    late = slice(START - 1, None) if r is not None else slice(0, 0)
    H, v, V = known.H[late], known.S[late] / known.H[late], known.V[late]
    half = np.sqrt((V + 1 / r) * np.log((V * r + 1) / alpha**2)) / H if r is not None else v
    return Sequence(known.rounds[late], v - half, v + half, "asymptotic", 1 - alpha)


def log_e(S: np.ndarray, V: np.ndarray, r: Any) -> np.ndarray:
    """Return log E of the one-sided e-process of "E[d] ≤ 0", S = Σhd:

    E = 2(1 + ρ²V)^−½ exp(ρ²S²/(2(1 + ρ²V))) Φ(ρS/√(1 + ρ²V))
    """
    scale = 1 + r * V
    return np.log(2) - np.log(scale) / 2 + r * S**2 / (2 * scale) + log_ndtr(S * np.sqrt(r / scale))


def always_valid_p(
    scores: np.ndarray, h: np.ndarray, alpha: float, planned: int | None = None
) -> tuple[float, float]:
    """Return always-valid p of "E[d] ≤ 0" and of "E[d] ≥ 0": p = 1/max_t E_t, at most 1."""
    known = sums(scores, h)
    r = tuned(known, alpha, len(known.V) if planned is None else planned)
    if r is None:
        return 1.0, 1.0
    S, V = known.S[START - 1 :], known.V[START - 1 :]
    above, below = (float(np.exp(-max(log_e(s, V, r).max(), 0.0))) for s in (S, -S))
    return above, below


class Wealth:
    """Wealth of bets that a mean exceeds ν, for ν on a grid in (0, 1]:

    W_t(ν) = mean_j Π_{s≤t} (1 + c_j((φ_s + k)/(ν + k) − 1)), φ ≥ −k with the mean asked for.

    W is decreasing in ν, and a mean ν is rejected for good once it reaches 2/α. The lower end is
    the largest ν that is rejected: a step of the grid too low at most.
    """

    def __init__(self, k: float, alpha: float, grid: int = GRID) -> None:
        self.k, self.enough = k, 2 / alpha * len(BETS)
        self.nu = np.arange(1, grid + 1) / grid
        self.log = np.zeros((grid, len(BETS)))
        self.low = 0.0

    def add(self, phi: np.ndarray) -> np.ndarray:
        """Bet on scores (m,); return the lower end after each, (m,)."""
        ends = np.empty(len(phi))
        for start in range(0, len(phi), CHUNK):
            part = phi[start : start + CHUNK]
            gain = (part[:, None] + self.k) / (self.nu + self.k) - 1
            path = np.log1p(BETS * gain[..., None])
            path[0] += self.log
            np.cumsum(path, axis=0, out=path)
            with np.errstate(over="ignore"):  # infinitely rich is rich
                wealth = np.exp(path).sum(axis=2)
            rich = np.maximum.accumulate(wealth >= self.enough, axis=0)
            gone = np.logical_and.accumulate(rich, axis=1).sum(axis=1)  # decreasing in ν
            ends[start : start + len(part)] = np.concatenate([[self.low], self.nu])[gone]
            if gone[-1]:
                self.low = float(self.nu[gone[-1] - 1])
            self.nu, self.log = self.nu[gone[-1] :], path[-1, gone[-1] :]
            if not len(self.nu):
                ends[start + len(part) :] = self.low
                break
        return ends


def bet_scores(
    pi: np.ndarray, e: np.ndarray | None, p: np.ndarray, played: np.ndarray,
    r: np.ndarray, m: np.ndarray, k: float,
) -> np.ndarray:  # fmt: skip
    """Return φ = w(r − m_A ∧ k/w_A) + Σ_j π_j (m_j ∧ k/w_j) ≥ −k, whose mean is V(π).

    r and m within [0, 1]. k = 0: φ = wr (IPS), where the probabilities e (n, K) are not known.
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
    above: np.ndarray, below: np.ndarray, k: float, alpha: float, rounds: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return ends (m,) in [0, 1] of the exact confidence sequence: scores `above` have the mean,
    `below` one less the mean, both ≥ −k."""
    low = Wealth(k, alpha).add(above[rounds])
    high = 1 - Wealth(k, alpha).add(below[rounds])
    return low, high
