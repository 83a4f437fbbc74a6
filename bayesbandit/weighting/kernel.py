"""Kernel balancing (Kallus 2018, "Balanced policy evaluation and learning").

For every function in a kernel's space, an arm's weighted mean should be the mean over all rounds.
The weights minimise the largest squared error over functions of norm 1, plus the variance from a
noise of variance λ:

    min_w w'(K_aa + λI) w − (2/n) 1'K_{·a} w   subject to Σ w = 1, w ≥ 0,

where n is the number of all rounds and a stands for the arm's rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesbandit.checks import MAX_ABS_VALUE, Array, integer, number, one_of
from bayesbandit.history import History
from bayesbandit.runtime.one_thread import one_thread
from bayesbandit.runtime.savable import savable
from bayesbandit.runtime.shown import settings_repr
from bayesbandit.schedule import Schedule
from bayesbandit.weighting.by_arm import ByArm, standardised

KERNELS = "rbf", "laplacian", "linear", "polynomial"
# most gradient steps; tolerance of weights that average 1
MAX_GRADIENT_STEPS = 5000
WEIGHT_TOLERANCE = 1e-6
MAX_DISTANCE_ROWS = 500  # most rows for the median distance
ROWS_PER_BLOCK = 1000  # rows whose kernel is computed at a time


@savable
@dataclass(frozen=True)
class KernelBalance(ByArm):
    """A balance that makes each arm's rounds represent all rounds, for the functions of a kernel.

    An arm's weights average 1.

    noise: λ > 0, the noise variance relative to the variance of the functions.
    least: the smallest weight, in (0, 1]. Kallus has 0, but a weight is a precision here.
    kernel: "rbf", "laplacian", "linear" or "polynomial", as in scikit-learn. Features are
    standardised over all rounds.
    gamma: the kernel's gamma. None: 1/(2 m²) for "rbf", where m is the median distance, and
    scikit-learn's 1/d for the others.
    landmarks: for an arm with more rounds than this, the kernel is approximated by so many
    landmarks (Nyström).
    refit_every: as in `ResidualBalance`.
    """

    __repr__ = settings_repr

    noise: float = 1.0
    least: float = 1e-3
    kernel: str = "rbf"
    gamma: float | None = None
    landmarks: int = 300
    refit_every: float | int = 0.25

    def __post_init__(self) -> None:
        number(self.noise, "noise", above=0, largest=MAX_ABS_VALUE, smallest=1 / MAX_ABS_VALUE)
        number(self.least, "least", above=0, most=1)
        one_of(self.kernel, "kernel", KERNELS)
        if self.gamma is not None:
            number(self.gamma, "gamma", above=0, largest=MAX_ABS_VALUE)
        integer(self.landmarks, "landmarks", least=1)
        Schedule(self.refit_every)

    def of_arm(self, mine: Array, history: History) -> Array:
        z = standardised(history.x)
        if not z.any():  # all contexts are equal
            return np.ones(len(mine))
        with one_thread():
            return kernel_weights(*self.problem(z, mine), self.noise, self.least)

    def problem(self, z: Array, mine: Array) -> tuple[Callable[[Array], Array], Array]:
        """Return the function W → K_aa W for rows `mine` of z (n, d), and the means (m,) of K_{·a}.

        The means are over all n rows.
        """
        from sklearn.kernel_approximation import Nystroem
        from sklearn.metrics.pairwise import pairwise_kernels

        gamma: dict[str, Any] = {"gamma": self.gamma} if self.kernel != "linear" else {}
        if self.gamma is None and self.kernel == "rbf":
            gamma["gamma"] = 0.5 / max(median_distance(z), 1e-12) ** 2
        if len(mine) > self.landmarks:
            nystroem: Any = Nystroem(
                kernel=self.kernel, n_components=self.landmarks, random_state=0, **gamma
            )
            features = np.asarray(nystroem.fit_transform(z))
            F = features[mine]
            return lambda W: F @ (F.T @ W), F @ features.mean(axis=0)
        K = pairwise_kernels(z[mine], metric=self.kernel, **gamma)
        blocks = [z[i : i + ROWS_PER_BLOCK] for i in range(0, len(z), ROWS_PER_BLOCK)]
        sums = [pairwise_kernels(b, z[mine], metric=self.kernel, **gamma).sum(0) for b in blocks]
        return lambda W: K @ W, sum(sums) / len(z)


def median_distance(z: Array) -> float:
    """Return the median distance of two rows of z (n, d), of MAX_DISTANCE_ROWS rows at most."""
    from scipy.spatial.distance import pdist

    sample = z[np.linspace(0, len(z) - 1, min(len(z), MAX_DISTANCE_ROWS)).astype(int)]
    return float(np.median(pdist(sample))) if len(sample) > 1 else 1.0


def kernel_weights(
    product: Callable[[Array], Array], mean: Array, noise: float, least: float = 0.0
) -> Array:
    """Return weights W (m,) that minimise W'(K + λI)W/(2m) − mean'W, with λ = noise.

    The weights are ≥ least and average 1. product: the function W → K W.
    Accelerated projected gradient steps restart the acceleration where they overshoot.
    """
    m = len(mean)
    # one over the largest curvature of the objective
    step = m / (largest_eigenvalue(product, m) + noise)
    W = ahead = np.ones(m)
    pace = 1.0
    for _ in range(MAX_GRADIENT_STEPS):
        gradient = (product(ahead) + noise * ahead) / m - mean
        new = projected(ahead - step * gradient, least)
        move = new - W
        if np.abs(new - ahead).max() <= WEIGHT_TOLERANCE:
            return new
        # Nesterov's pace t' = (1 + √(1 + 4t²))/2 (Beck & Teboulle 2009, section 4)
        faster = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * pace**2))
        overshot = (ahead - new) @ move > 0.0
        pace, ahead = (1.0, new) if overshot else (faster, new + (pace - 1.0) / faster * move)
        W = new
    return W


def largest_eigenvalue(product: Callable[[Array], Array], m: int) -> float:
    """Return the largest eigenvalue of a positive semi-definite matrix (m, m), up to 1 % more."""
    from scipy.sparse.linalg import LinearOperator, eigsh

    if m < 3:
        return float(np.linalg.eigvalsh([product(e) for e in np.eye(m)])[-1])
    start = np.random.default_rng(0).standard_normal(m)  # a vector of ones may give K 1 = 0
    if not product(start).any():
        return 0.0
    operator = LinearOperator((m, m), product, dtype=np.float64)
    return 1.01 * float(eigsh(operator, k=1, v0=start, tol=1e-3, return_eigenvectors=False)[0])


def projected(W: Array, least: float) -> Array:
    """Return the vector nearest to W (m,) among those that are ≥ least and average 1."""
    descending = np.sort(W)[::-1] - least
    excess = (np.cumsum(descending) - len(W) * (1.0 - least)) / np.arange(1, len(W) + 1)
    last = np.flatnonzero(descending > excess).max(initial=0)  # empty where least is 1
    return np.asarray(least + np.maximum(W - least - excess[last], 0.0))
