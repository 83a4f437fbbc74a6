"""The posterior distributions of exact engines, and the factor of a precision that they rest on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import stats
from scipy.linalg import cho_solve, solve_triangular
from scipy.linalg.lapack import dpotrf
from scipy.special import gammaln

from bayesbandit.inference.draws import Moments, Planned, described
from bayesbandit.inference.exact.closed_form import ClosedForm
from bayesbandit.inference.graph_analysis.quadratic import affine

HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@dataclass(frozen=True)
class Gaussian(ClosedForm):
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

    def drawn(
        self, method: Any, size: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        theta = self.draw(size, rng)
        return theta, method.split(theta)

    def marginals(self, plan: Planned) -> dict[str, Any]:
        """Normal."""
        return {
            k: stats.norm(mean, scales(mean, covariance))
            for k, (mean, covariance) in plan.method.moments(self.mean, self.covariance).items()
        }

    @property
    def widening(self) -> float:
        return 1.0

    def further(self, plan: Planned) -> dict[str, Moments]:
        """Of those deterministic quantities that are affine in θ."""
        method, rest, found = plan.method, plan.outcomes.rest, {}
        if not plan.outcomes.deterministic:
            return {}
        points = np.random.default_rng(0).normal(size=(3, method.dim))
        at_points = rest(method.split(points))
        for name, shape in plan.outcomes.deterministic.items():

            def value(Z: np.ndarray, name: str = name) -> np.ndarray:
                return rest(method.split(Z))[name].reshape(len(Z), -1)

            T, b = affine(value, method.dim)
            if np.allclose(points @ T + b, at_points[name].reshape(3, -1), rtol=1e-9, atol=1e-9):
                mean = (self.mean @ T + b).reshape(shape)
                found[name] = described(mean, T.T @ self.covariance @ T)
        return found


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
class StudentT(ClosedForm):
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

    def drawn(
        self, method: Any, size: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        theta, sigma2 = self.draw(size, rng)
        return theta, method.split(theta) | {method.scale_name: method.scale(sigma2)}

    def marginals(self, plan: Planned) -> dict[str, Any]:
        """Student-t; of the scale q^(1/k), a generalised gamma, of σ² the inverse gamma."""
        method, k = plan.method, float(plan.method.exponent)
        found: dict[str, Any] = {
            name: stats.t(self.df, mean, scales(mean, spread))
            for name, (mean, spread) in method.moments(self.mean, self.spread).items()
        }
        scale = stats.gengamma(self.shape, k, scale=self.scale ** (-1.0 / k))
        return found | {method.scale_name: scale}

    @property
    def widening(self) -> float:
        if self.df <= 2.0:
            return math.inf
        return math.sqrt(self.scale / self.shape * self.df / (self.df - 2.0))

    def further(self, plan: Planned) -> dict[str, Moments]:
        """Of the noise scale, as it is declared: a power of q."""
        return {plan.method.scale_name: self.power(1.0 / plan.method.exponent)}

    def power(self, p: float) -> Moments:
        """Mean and sd of q^p, q = 1/σ² ~ Gamma(shape, scale); ∞ where they are."""

        def moment(k: float) -> float:
            if self.shape + k <= 0.0:
                return math.inf
            log = gammaln(self.shape + k) - gammaln(self.shape) - k * math.log(self.scale)
            return float(math.exp(log))

        mean, square = moment(p), moment(2.0 * p)
        return mean, math.sqrt(max(square - mean**2, 0.0)) if math.isfinite(square) else math.inf


def scales(mean: np.ndarray, square: np.ndarray) -> np.ndarray:
    """Roots of the diagonal of a matrix (k, k), in the shape of the mean of these k elements."""
    return np.sqrt(np.maximum(np.diag(square), 0.0)).reshape(np.shape(mean))


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
