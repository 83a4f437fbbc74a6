"""The posterior distributions of exact engines, and the Cholesky factor of a precision."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats
from scipy.linalg import cho_solve, solve_triangular
from scipy.linalg.lapack import dpotrf
from scipy.special import gammaln

from bayesbandit.inference.draws import MOMENT_DRAWS, Known, Moments, Planned, described, moments
from bayesbandit.inference.graph_analysis.quadratic import Additive, affine

if TYPE_CHECKING:
    from bayesbandit.inference.exact.gaussian import GaussianBlock


class Exact(Known):
    """A posterior in closed form. log_evidence: NaN if the rewards were streamed."""

    log_evidence: float

    @property
    def evidence(self) -> float | None:
        return None if math.isnan(self.log_evidence) else self.log_evidence

    def others(
        self, plan: Planned, rng: np.random.Generator, known: Collection[str]
    ) -> dict[str, Moments]:
        """Return the moments, by draws, of deterministic quantities that have no moments yet."""
        if not set(plan.outcomes.deterministic) - set(known):
            return {}
        draws = plan.outcomes.rest(self.samples(plan, MOMENT_DRAWS, rng))
        return {k: moments(v) for k, v in draws.items() if k not in known}


class ExactDistribution(Exact):
    """A distribution of θ (D,) around `mean`, with precision Λ = LL', L = `cholesky` (D, D)."""

    mean: np.ndarray
    cholesky: np.ndarray

    @abstractmethod
    def drawn(
        self, method: GaussianBlock, size: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return draws of θ (size, D), and of the variables by name."""

    @property
    @abstractmethod
    def widening(self) -> float:
        """The ratio of the sds to those of N(mean, Λ⁻¹)."""

    @property
    @abstractmethod
    def covariance(self) -> np.ndarray:
        """The covariance of θ (D, D)."""

    @abstractmethod
    def further(self, plan: Planned) -> dict[str, Moments]:
        """Return moments by name, in closed form, of quantities that are not in θ."""

    def samples(self, plan: Planned, size: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Return independent draws by name."""
        drawn = self.drawn(plan.method, size, rng)[1]
        return {k: drawn[k] for k in plan.outcomes.names}

    def rewards(
        self, plan: Planned, x: np.ndarray, size: int, rng: np.random.Generator
    ) -> np.ndarray:
        method = plan.method
        theta = self.drawn(plan.method, size, rng)[0]
        if not method.affine:
            return np.asarray(method.mean_reward(theta, x))
        A, b = method.linear_map(x)
        return np.asarray(np.tensordot(theta, A, axes=(1, -1)) + b)

    def moments(
        self, plan: Planned, x: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the moments of A θ + b, if mean rewards are that; else the moments of draws."""
        if not plan.method.affine:
            means = self.rewards(plan, x, MOMENT_DRAWS, rng)
            return means.mean(axis=0), means.std(axis=0, ddof=1)
        A, b = plan.method.linear_map(x)
        half = solve_triangular(self.cholesky, A.reshape(-1, A.shape[-1]).T, lower=True)
        sd = np.sqrt((half**2).sum(axis=0)) * self.widening
        return A @ self.mean + b, sd.reshape(b.shape)

    def coefficients(self, plan: Planned, rng: np.random.Generator) -> dict[str, Moments]:
        """Return moments in closed form, or of draws where there is no closed form."""
        inside = plan.method.moments(self.mean, self.covariance)
        moments = {k: described(mean, covariance) for k, (mean, covariance) in inside.items()}
        moments |= self.further(plan)
        moments |= self.others(plan, rng, moments)
        order = [*plan.outcomes.names, *plan.outcomes.deterministic]
        return {k: moments[k] for k in order}


HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@dataclass(frozen=True)
class Gaussian(ExactDistribution):
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
        """Return draws of θ, (S, D)."""
        noise = rng.standard_normal((len(self.mean), size))
        return self.mean + solve_triangular(self.cholesky, noise, lower=True, trans=1).T

    def drawn(
        self, method: GaussianBlock, size: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        theta = self.draw(size, rng)
        return theta, method.split(theta)

    def marginals(self, plan: Planned) -> dict[str, Any]:
        return {
            k: stats.norm(mean, scales(mean, covariance))
            for k, (mean, covariance) in plan.method.moments(self.mean, self.covariance).items()
        }

    @property
    def widening(self) -> float:
        return 1.0

    def further(self, plan: Planned) -> dict[str, Moments]:
        """Return the moments of those deterministic quantities that are affine in θ."""
        method = plan.method
        rest = plan.outcomes.rest
        moments = {}
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
                moments[name] = described(mean, T.T @ self.covariance @ T)
        return moments


@dataclass(frozen=True)
class NaturalGamma(Additive):
    """Statistics of exp(c + h log q − βq + q(η'θ − ½θ'Λθ)).

    precision: Λ (D, D). shift: η (D,). power: h. rate: β. constant: c.
    """

    precision: np.ndarray
    shift: np.ndarray
    power: float
    rate: float
    constant: float = 0.0


@dataclass(frozen=True)
class StudentT(ExactDistribution):
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
        """Return draws of θ (S, D) and of σ² (S,)."""
        sigma2 = self.scale / rng.standard_gamma(self.shape, size)
        noise = rng.standard_normal((len(self.mean), size)) * np.sqrt(sigma2)
        return self.mean + solve_triangular(self.cholesky, noise, lower=True, trans=1).T, sigma2

    def drawn(
        self, method: GaussianBlock, size: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        theta, sigma2 = self.draw(size, rng)
        return theta, method.split(theta) | method.noise_drawn(sigma2)

    def marginals(self, plan: Planned) -> dict[str, Any]:
        """Return Student-t marginals of θ; of the scale q^(1/k), a generalised gamma."""
        method = plan.method
        k = float(plan.method.exponent)
        moments: dict[str, Any] = {
            name: stats.t(self.df, mean, scales(mean, spread))
            for name, (mean, spread) in method.moments(self.mean, self.spread).items()
        }
        scale = stats.gengamma(self.shape, k, scale=self.scale ** (-1.0 / k))
        return moments | {method.scale_name: scale}

    @property
    def widening(self) -> float:
        if self.df <= 2.0:
            return math.inf
        return math.sqrt(self.scale / self.shape * self.df / (self.df - 2.0))

    def further(self, plan: Planned) -> dict[str, Moments]:
        """Return the moments of the noise scale as it is declared, a power of q."""
        return {plan.method.scale_name: self.power(1.0 / plan.method.exponent)}

    def power(self, p: float) -> Moments:
        """Return mean and sd of q^p, q = 1/σ² ~ Gamma(shape, scale); ∞ where they are infinite."""

        def moment(k: float) -> float:
            if self.shape + k <= 0.0:
                return math.inf
            log = gammaln(self.shape + k) - gammaln(self.shape) - k * math.log(self.scale)
            return float(math.exp(log))

        mean = moment(p)
        square = moment(2.0 * p)
        return mean, math.sqrt(max(square - mean**2, 0.0)) if math.isfinite(square) else math.inf


def scales(mean: np.ndarray, square: np.ndarray) -> np.ndarray:
    """Return the roots of the diagonal of a matrix (k, k), in the shape of the k means."""
    return np.sqrt(np.maximum(np.diag(square), 0.0)).reshape(np.shape(mean))


def factor(precision: np.ndarray) -> np.ndarray | int:
    """Return L with Λ = LL', or the index of the first coordinate that the ones before it leave
    unknown.

    Rounding hides a singular matrix from Cholesky. So a pivot counts as zero if it is no larger
    than the rounding of its diagonal entry.
    """
    diagonal = np.diag(precision)
    if not (diagonal > 0.0).all():
        return int(np.argmin(diagonal))
    scale = np.sqrt(diagonal)
    L, info = dpotrf(precision / scale[:, None] / scale, lower=1, clean=1)
    if info:
        return int(info) - 1
    smallest = int(np.argmin(np.diag(L)))
    if L[smallest, smallest] ** 2 <= 32.0 * len(scale) * np.finfo(np.float64).eps:
        return smallest
    return np.asarray(scale[:, None] * L)
