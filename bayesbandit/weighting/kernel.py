"""Balancing in a space of functions (Kallus 2018, "Balanced policy evaluation and learning").

An arm's weighed rows should give the mean over all rounds, not of the features alone but of every
function that a kernel knows. The largest squared error over those of norm 1, and the variance of
noise λ times as large:

    min_w w'(K_aa + λI) w − (2/n) 1'K_{·a} w   subject to Σ w = 1, w ≥ 0,

where n is the number of all rounds and a are the arm's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesbandit.checks import LARGEST, integer, number, one_of
from bayesbandit.history import History
from bayesbandit.runtime.one_thread import one_thread
from bayesbandit.runtime.savable import savable
from bayesbandit.schedule import Schedule
from bayesbandit.weighting.by_arm import ByArm, standardised

Array = np.ndarray
KERNELS = "rbf", "laplacian", "linear", "polynomial"
STEPS, ACCURATE = 5000, 1e-6  # gradient steps at most; change of weights, 1 on the average
SAMPLE = 500  # rows from which the median distance is taken
BLOCK = 1000  # rows whose kernel is computed at a time


@savable
@dataclass(frozen=True)
class KernelBalance(ByArm):
    """Weights by which each arm's rounds speak for all rounds, over the functions of a kernel.

    noise: λ > 0, the variance of noise against that of the functions. least: the smallest weight,
    of 1 on the average: > 0, since a weight is a precision, where the paper has 0.
    kernel: "rbf", "laplacian", "linear" or "polynomial", of features in standard deviations over
    all rounds, as in scikit-learn. gamma: its width; None: 1/(2 m²) for "rbf", m the median
    distance, and scikit-learn's 1/d for the others.
    landmarks: of arms with more rounds the kernel is that of so many of them (Nyström).
    refit_every: as of `ResidualBalance`. An arm's weights have mean 1.
    """

    noise: float = 1.0
    least: float = 1e-3
    kernel: str = "rbf"
    gamma: float | None = None
    landmarks: int = 300
    refit_every: float | int = 0.25

    def __post_init__(self) -> None:
        number(self.noise, "noise", above=0, largest=LARGEST, smallest=1 / LARGEST)
        number(self.least, "least", above=0, most=1)
        one_of(self.kernel, "kernel", KERNELS)
        if self.gamma is not None:
            number(self.gamma, "gamma", above=0, largest=LARGEST)
        integer(self.landmarks, "landmarks", least=1)
        Schedule(self.refit_every)

    def of_arm(self, mine: Array, history: History) -> Array:
        z = standardised(history.x)
        if not z.any():  # all rounds are alike
            return np.ones(len(mine))
        with one_thread():
            return kernel_weights(*self.known(z, mine), self.noise, self.least)

    def known(self, z: Array, mine: Array) -> tuple[Callable[[Array], Array], Array]:
        """W → K_aa W for an arm's rows among all rows z (n, d), and the means of K_{·a} (m,)."""
        from sklearn.kernel_approximation import Nystroem
        from sklearn.metrics.pairwise import pairwise_kernels

        how: dict[str, Any] = {"gamma": self.gamma} if self.kernel != "linear" else {}
        if self.gamma is None and self.kernel == "rbf":
            how["gamma"] = 0.5 / max(median_distance(z), 1e-12) ** 2
        if len(mine) > self.landmarks:
            made: Any = Nystroem(
                kernel=self.kernel, n_components=self.landmarks, random_state=0, **how
            )
            features = np.asarray(made.fit_transform(z))
            own = features[mine]
            return lambda W: own @ (own.T @ W), own @ features.mean(axis=0)
        K = pairwise_kernels(z[mine], metric=self.kernel, **how)
        parts = [z[i : i + BLOCK] for i in range(0, len(z), BLOCK)]
        sums = [pairwise_kernels(part, z[mine], metric=self.kernel, **how).sum(0) for part in parts]
        return lambda W: K @ W, sum(sums) / len(z)


def median_distance(z: Array) -> float:
    """The median distance of two rows z (n, d), of `SAMPLE` of them at most."""
    from scipy.spatial.distance import pdist

    some = z[np.linspace(0, len(z) - 1, min(len(z), SAMPLE)).astype(int)]
    return float(np.median(pdist(some))) if len(some) > 1 else 1.0


def kernel_weights(
    product: Callable[[Array], Array], mean: Array, noise: float, least: float = 0.0
) -> Array:
    """The weights W (m,) ≥ least, of mean 1, for which W'(K + λI)W/(2m) − mean'W is least, given
    product: W → K W. By accelerated projected gradients, begun anew where they overshoot."""
    m = len(mean)
    step = m / (largest_eigenvalue(product, m) + noise)
    W = ahead = np.ones(m)
    pace = 1.0
    for _ in range(STEPS):
        slope = (product(ahead) + noise * ahead) / m - mean
        found = projected(ahead - step * slope, least)
        move = found - W
        if np.abs(found - ahead).max() <= ACCURATE:
            return found
        faster = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * pace**2))
        overshot = (ahead - found) @ move > 0.0
        pace, ahead = (1.0, found) if overshot else (faster, found + (pace - 1.0) / faster * move)
        W = found
    return W


def largest_eigenvalue(product: Callable[[Array], Array], m: int) -> float:
    """Of a positive semi-definite matrix (m, m), or a little more."""
    from scipy.sparse.linalg import LinearOperator, eigsh

    if m < 3:
        return float(np.linalg.eigvalsh([product(e) for e in np.eye(m)])[-1])
    start = np.random.default_rng(0).standard_normal(m)  # ones may be what the kernel does not see
    if not product(start).any():
        return 0.0
    operator = LinearOperator((m, m), product, dtype=np.float64)
    return 1.01 * float(eigsh(operator, k=1, v0=start, tol=1e-3, return_eigenvectors=False)[0])


def projected(W: Array, least: float) -> Array:
    """The nearest W (m,) ≥ least of mean 1."""
    down = np.sort(W)[::-1] - least
    excess = (np.cumsum(down) - len(W) * (1.0 - least)) / np.arange(1, len(W) + 1)
    last = np.flatnonzero(down > excess).max(initial=0)  # none where least is 1
    return np.asarray(least + np.maximum(W - least - excess[last], 0.0))
