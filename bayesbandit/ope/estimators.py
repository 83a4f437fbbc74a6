"""Scores Γ_t of a policy's value: unbiased ones, E[Γ_t | past] = V(π), and biased ones.

w_t = π(X_t, A_t)/e_t(X_t, A_t); m (n, K) are mean rewards and m_A those of the chosen arms (n,).
Biased scores have less variance. Dudík et al. (2011), Doubly robust policy evaluation and learning;
Wang et al. (2017), SWITCH; Su et al. (2020), shrunk doubly robust; Swaminathan & Joachims (2015),
SNIPS.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray
ESTIMATORS = ("ips", "snips", "clipped", "dm", "dr", "switch", "shrunk")
MODELLED = ("dm", "dr", "switch", "shrunk")  # those that need means m
POINTS = ("clipped", "dm", "switch", "shrunk")  # biased: no interval


def ips(w: Array, y: Array) -> Array:
    """Return the scores Γ = wY of inverse propensity weighting."""
    return w * y


def snips(w: Array, y: Array, h: Array) -> Array:
    """Return the scores of self-normalised IPS, Γ = v + w(Y − v) Σh/Σhw with v = ΣhwY/Σhw.

    Their weighted mean is v, and its standard error √Σh²w²(Y − v)²/Σhw.
    """
    total = (h * w).sum()
    if total == 0:
        return np.full_like(y, np.nan)
    v = (h * w * y).sum() / total
    return v + w * (y - v) * h.sum() / total


def clipped(w: Array, y: Array, most: float) -> Array:
    """Return the scores Γ = (w ∧ M)Y of clipped IPS; M = most."""
    return np.minimum(w, most) * y


def dm(pi: Array, m: Array) -> Array:
    """Return the scores Γ = Σ_k π_k m_k of the direct method."""
    return np.einsum("nk,nk->n", pi, m)


def dr(pi: Array, w: Array, y: Array, m: Array, m_A: Array) -> Array:
    """Return the doubly robust scores Γ = Σ_k π_k m_k + w(Y − m_A)."""
    return dm(pi, m) + w * (y - m_A)


def switch(pi: Array, w: Array, y: Array, m: Array, m_A: Array, tau: float) -> Array:
    """Return the scores Γ = Σ_k π_k m_k + w 1{w ≤ τ}(Y − m_A) of SWITCH."""
    return dr(pi, np.where(w <= tau, w, 0.0), y, m, m_A)


def shrunk(pi: Array, w: Array, y: Array, m: Array, m_A: Array, lam: float) -> Array:
    """Return the shrunk doubly robust scores Γ = Σ_k π_k m_k + λw/(w² + λ)(Y − m_A)."""
    return dr(pi, lam * w / (w**2 + lam), y, m, m_A)


def unmodelled(name: str, w: Array, y: Array, h: Array, clip: float) -> Array:
    """Return the scores of an estimator without means; those of IPS for an estimator with means."""
    if name == "snips":
        return snips(w, y, h)
    return clipped(w, y, clip) if name == "clipped" else ips(w, y)


def modelled(
    name: str, pi: Array, w: Array, y: Array, m: Array, m_A: Array,
    clip: float, tau: float, lam: float,
) -> Array:  # fmt: skip
    """Return the scores of an estimator with means m (n, K)."""
    if name == "dm":
        return dm(pi, m)
    if name == "switch":
        return switch(pi, w, y, m, m_A, tau)
    return shrunk(pi, w, y, m, m_A, lam) if name == "shrunk" else dr(pi, w, y, m, m_A)


def average(scores: Array, h: Array) -> tuple[float, float]:
    """Return the mean v = ΣhΓ/Σh of scores, and its standard error √Σh²(Γ − v)²/Σh (martingale
    central limit theorem)."""
    total = h.sum()
    if total == 0:
        return np.nan, np.nan
    v = (h * scores).sum() / total
    return float(v), float(np.sqrt((h**2 * (scores - v) ** 2).sum()) / total)


def ess(w: Array) -> float:
    """Return the effective sample size (Σw)²/Σw² (Kish 1965); 0 where all weights are 0."""
    squares = (w**2).sum()
    return float(w.sum() ** 2 / squares) if squares > 0 else 0.0
