"""The posterior distributions of exact engines, and the factor of a precision that they rest on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.linalg.lapack import dpotrf

HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@dataclass(frozen=True)
class Gaussian:
    """θ ~ N(mean, precision⁻¹).

    mean (D,), precision Λ (D, D), cholesky L (D, D) lower with Λ = LL'. log_evidence: log of the
    density of the rewards given everything else, all constants included.
    """

    mean: np.ndarray
    precision: np.ndarray
    cholesky: np.ndarray
    log_evidence: float

    @cached_property
    def covariance(self) -> np.ndarray:
        """Λ⁻¹ (D, D)."""
        return np.asarray(cho_solve((self.cholesky, True), np.eye(len(self.mean))))

    @property
    def log_volume(self) -> float:
        """log ∫ exp(−½ (θ − mean)'Λ(θ − mean)) dθ."""
        return float(len(self.mean) * HALF_LOG_2PI - np.log(np.diag(self.cholesky)).sum())

    def draw(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Draws of θ, (S, D)."""
        noise = rng.standard_normal((len(self.mean), size))
        return self.mean + solve_triangular(self.cholesky, noise, lower=True, trans=1).T


@dataclass(frozen=True)
class NaturalGamma:
    """Statistics of exp(c + h log q − βq + q(η'θ − ½θ'Λθ)); those of independent parts add up.

    precision: Λ (D, D). shift: η (D,). power: h. rate: β. constant: c.
    """

    precision: np.ndarray
    shift: np.ndarray
    power: float
    rate: float
    constant: float = 0.0

    def __add__(self, other: NaturalGamma) -> NaturalGamma:
        return NaturalGamma(
            self.precision + other.precision,
            self.shift + other.shift,
            self.power + other.power,
            self.rate + other.rate,
            self.constant + other.constant,
        )


@dataclass(frozen=True)
class StudentT:
    """σ² ~ InverseGamma(shape, scale), θ | σ² ~ N(mean, σ² precision⁻¹).

    mean (D,), precision Λ (D, D), cholesky L (D, D) lower with Λ = LL'; θ by itself is Student-t
    with 2 shape degrees of freedom. log_evidence: as of a Gaussian posterior.
    """

    mean: np.ndarray
    precision: np.ndarray
    cholesky: np.ndarray
    shape: float
    scale: float
    log_evidence: float

    @property
    def df(self) -> float:
        """Degrees of freedom of θ."""
        return 2.0 * self.shape

    @cached_property
    def spread(self) -> np.ndarray:
        """The scale matrix of θ's Student-t, (scale / shape) Λ⁻¹ (D, D)."""
        inverse = cho_solve((self.cholesky, True), np.eye(len(self.mean)))
        return np.asarray(self.scale / self.shape * inverse)

    @property
    def covariance(self) -> np.ndarray:
        """The covariance of θ (D, D): infinite up to two degrees of freedom."""
        factor = self.df / (self.df - 2.0) if self.df > 2.0 else math.inf
        return np.multiply(
            self.spread, factor, where=self.spread != 0.0, out=np.zeros_like(self.spread)
        )

    def draw(self, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draws of θ (S, D) and of σ² (S,)."""
        sigma2 = self.scale / rng.standard_gamma(self.shape, size)
        noise = rng.standard_normal((len(self.mean), size)) * np.sqrt(sigma2)
        return self.mean + solve_triangular(self.cholesky, noise, lower=True, trans=1).T, sigma2


def factor(precision: np.ndarray) -> np.ndarray | int:
    """L with Λ = LL', or the index of the first coordinate that the ones before it leave unknown.

    Rounding hides a singular matrix from Cholesky: a pivot counts as zero where rounding is all
    that is left of its diagonal.
    """
    diagonal = np.diag(precision)
    if not (diagonal > 0.0).all():
        return int(np.argmin(diagonal))
    scale = np.sqrt(diagonal)
    L, info = dpotrf(precision / scale[:, None] / scale, lower=1, clean=1)
    if info:
        return int(info) - 1
    least = int(np.argmin(np.diag(L)))
    if L[least, least] ** 2 <= 32.0 * len(scale) * np.finfo(np.float64).eps:
        return least
    return np.asarray(scale[:, None] * L)
