"""Scores Γ_t of a policy's value: unbiased ones, E[Γ_t | past] = V(π), and biased ones.

w_t = π(X_t, A_t)/e_t(X_t, A_t); m (n, K) are mean rewards and m_A those of the chosen arms (n,).
Biased scores have less variance. Dudík et al. (2011), Doubly robust policy evaluation and learning;
Wang et al. (2017), SWITCH; Su et al. (2020), shrunk doubly robust; Swaminathan & Joachims (2015),
SNIPS.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bayesbandit.checks import Array


class Tuning(NamedTuple):
    """Settings of biased estimators."""

    clip: float
    tau: float
    lam: float


class Estimator(NamedTuple):
    """An estimator: the weight that it gives rewards, by w (n,).

    modelled: its scores are Σ_k π_k m_k + w(Y − m_A), else wY. biased: it gives no interval.
    """

    weight: Callable[[Array, Tuning], Array]
    modelled: bool = False
    biased: bool = False


ESTIMATORS = {
    "ips": Estimator(lambda w, _: w),
    "snips": Estimator(lambda w, _: w),
    "clipped": Estimator(lambda w, by: np.minimum(w, by.clip), biased=True),
    "dm": Estimator(lambda w, _: np.zeros_like(w), modelled=True, biased=True),
    "dr": Estimator(lambda w, _: w, modelled=True),
    "switch": Estimator(lambda w, by: np.where(w <= by.tau, w, 0.0), modelled=True, biased=True),
    "shrunk": Estimator(lambda w, by: by.lam * w / (w**2 + by.lam), modelled=True, biased=True),
}


def snips(w: Array, y: Array, h: Array) -> tuple[float, float]:
    """Return v = ΣhwY/Σhw and Σh/Σhw; NaN where all weights are 0.

    The scores of self-normalised IPS are Γ = v + w(Y − v) Σh/Σhw. Their weighted mean is v, and its
    standard error √Σh²w²(Y − v)²/Σhw.
    """
    total = (h * w).sum()
    if total == 0:
        return np.nan, np.nan
    return float((h * w * y).sum() / total), float(h.sum() / total)
