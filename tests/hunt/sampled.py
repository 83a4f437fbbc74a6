"""Draws held against the log density that they should come from.

A step of Metropolis changes no expectation under the right distribution: with θ a draw, θ* a
symmetric proposal from it and h bounded, E[min(1, p(θ*)/p(θ)) (h(θ*) − h(θ))] = 0. Every term is
bounded, so that tails and funnels do no harm, and nothing is asked of the density but its value.
"""

from __future__ import annotations

import math

import numpy as np
from arviz_stats.base import array_stats
from scipy.stats import norm

from tests.hunt.exact import Wrong, has_digits
from tests.hunt.truth import Truth

FALSE = 1e-5  # probability of a false alarm, over all statistics of a case; a second run confirms
CERTAIN = 1e-30  # one look is enough
MOST = 3000  # draws looked at


def deviation(truth: Truth, chains: np.ndarray, rng: np.random.Generator) -> tuple[float, str]:
    """The p-value of the most suspicious statistic of draws (C, S, D), corrected for their number,
    and what it is. 0 where a draw is impossible."""
    C, S, D = chains.shape
    step = max(1, C * S // MOST)
    chains = chains[:, ::step]
    S = chains.shape[1]
    flat = chains.reshape(-1, D)
    logs = truth.logps(flat)
    if not np.isfinite(logs).all():
        share = 1.0 - np.isfinite(logs).mean()
        return 0.0, f"{share:.1%} of the draws have zero density"
    middle, spread = np.median(flat, axis=0), scale(flat)
    has_digits(truth, middle)
    covariance = np.atleast_2d(np.cov(np.clip((flat - middle) / spread, -3, 3), rowvar=False))
    L = np.linalg.cholesky(covariance + 1e-6 * np.eye(D)) * spread[:, None]
    log_middle, log_spread = np.median(logs), scale(logs[:, None])[0]
    total = np.zeros((len(flat), 2 * D + 1))
    for whole in (True, False):
        size = np.exp(0.8 * rng.normal(size=(len(flat), 1)))
        if whole:
            moves = (2.4 / math.sqrt(D)) * size * (rng.normal(size=flat.shape) @ L.T)
        else:
            moves = np.zeros_like(flat)
            which = rng.integers(D, size=len(flat))
            moves[np.arange(len(flat)), which] = (
                1.5 * size[:, 0] * rng.normal(size=len(flat)) * spread[which]
            )
        proposed = flat + moves
        new = truth.logps(proposed)
        with np.errstate(over="ignore"):
            accepted = np.exp(np.minimum(new - logs, 0.0))[:, None]
        total += accepted * (
            features(proposed, new, middle, spread, log_middle, log_spread)
            - features(flat, logs, middle, spread, log_middle, log_spread)
        )
    names = [
        *(f"location of {k}" for k in labels(truth)),
        *(f"scale of {k}" for k in labels(truth)),
    ]
    worst, why = 1.0, "nothing"
    for j, name in enumerate([*names, "log density"]):
        t = total[:, j]
        if (np.abs(t) > 1e-9).sum() < 50:
            continue
        series = t.reshape(C, S)
        ess = float(array_stats.ess(series, chain_axis=0, draw_axis=1, method="mean"))
        if not math.isfinite(ess):
            ess = t.size / 10.0
        z = t.mean() / (t.std() / math.sqrt(min(ess, t.size)))
        p = min(1.0, 2.0 * norm.sf(abs(z)) * (2 * D + 1))
        if p < worst:
            worst, why = p, f"{name}: a step of Metropolis moves it, z = {z:.1f}"
    return worst, why


def features(
    theta: np.ndarray, logs: np.ndarray, middle: np.ndarray, spread: np.ndarray,
    log_middle: float, log_spread: float,
) -> np.ndarray:  # fmt: skip
    """Bounded functions of states θ (S, D) and their log densities: (S, 2 D + 1)."""
    z = (theta - middle) / spread
    level = np.tanh((np.maximum(logs, -1e300) - log_middle) / log_spread)
    return np.column_stack([np.tanh(z), z**2 / (1.0 + z**2), level])


def scale(flat: np.ndarray) -> np.ndarray:
    """A robust spread of each column, never 0."""
    low, high = np.quantile(flat, [0.16, 0.84], axis=0)
    spread = (high - low) / 2.0
    fallback = np.maximum(flat.std(axis=0), 1e-12 * (1.0 + np.abs(flat).max(axis=0)))
    return np.where(spread > 0.0, spread, fallback)


def labels(truth: Truth) -> list[str]:
    """A name for each coordinate of θ."""
    return [
        f"{name}[{i}]" if size > 1 else name
        for name, size in zip(truth.names, truth.sizes, strict=True)
        for i in range(size)
    ]


def judge(truth: Truth, chains: np.ndarray, rng: np.random.Generator) -> None:
    """Raises `Wrong` where draws (C, S, D) of θ are not of the log density."""
    p, why = deviation(truth, chains, rng)
    if p < FALSE:
        raise Wrong(f"{why} (certain)" if p < CERTAIN else why)
