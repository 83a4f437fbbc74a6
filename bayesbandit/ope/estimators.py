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


def snips_value(w: Array, y: Array, h: Array) -> float:
    """Return the self-normalised mean v = ΣhwY/Σhw; NaN where all weights are 0."""
    total = (h * w).sum()
    return float((h * w * y).sum() / total) if total != 0 else np.nan


def snips(w: Array, y: Array, h: Array) -> Array:
    """Return the scores of self-normalised IPS, Γ = v + w(Y − v) Σh/Σhw with v = ΣhwY/Σhw.

    Their weighted mean is v, and its standard error √Σh²w²(Y − v)²/Σhw.
    """
    v = snips_value(w, y, h)
    return v + w * (y - v) * h.sum() / (h * w).sum() if np.isfinite(v) else np.full_like(y, np.nan)


def dm(pi: Array, m: Array) -> Array:
    """Return the scores Γ = Σ_k π_k m_k of the direct method."""
    return np.einsum("nk,nk->n", pi, m)


def dr(pi: Array, w: Array, y: Array, m: Array, m_A: Array) -> Array:
    """Return the doubly robust scores Γ = Σ_k π_k m_k + w(Y − m_A)."""
    return dm(pi, m) + w * (y - m_A)


def used(name: str, w: Array, clip: float, tau: float, lam: float) -> Array:
    """Return the weights that an estimator gives rewards: w; w ∧ M (clipped IPS); 0 (direct
    method); w 1{w ≤ τ} (SWITCH); or λw/(w² + λ) (shrunk DR)."""
    if name == "clipped":
        return np.minimum(w, clip)
    if name == "switch":
        return np.where(w <= tau, w, 0.0)
    if name == "shrunk":
        return lam * w / (w**2 + lam)
    return np.zeros_like(w) if name == "dm" else w


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
