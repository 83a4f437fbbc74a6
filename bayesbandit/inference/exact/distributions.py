"""The posterior distributions of exact engines, and the Cholesky factor of a precision."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats
from scipy.linalg import cho_solve, solve_triangular
from scipy.linalg.lapack import dpotrf
from scipy.special import poch

from bayesbandit.checks import FLOAT_EPSILON, Array
from bayesbandit.inference.draws import MOMENT_DRAWS, Known, Moments, described, moments
from bayesbandit.inference.graph_analysis.quadratic import affine

if TYPE_CHECKING:
    from bayesbandit.inference.plan import Plan

HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
RELATIVE_TOLERANCE = 1e-9  # of a log density, relative


class Exact(Known):
    """A posterior in closed form. log_evidence: NaN if the rewards were streamed."""

    log_evidence: float

    @property
    @abstractmethod
    def log_volume(self) -> float:
        """The log of the integral of the density without its constant."""

    @abstractmethod
    def closed(self, plan: Plan) -> dict[str, Moments]:
        """Return the moments, by name, that have a closed form."""

    @property
    def evidence(self) -> float | None:
        return None if math.isnan(self.log_evidence) else self.log_evidence

    def rewards(self, plan: Plan, x: Array, size: int, rng: np.random.Generator) -> Array:
        return np.asarray(plan.outcomes.mean_reward(self.samples(plan, size, rng), x))

    def moments(self, plan: Plan, x: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return the moments of draws."""
        means = self.rewards(plan, x, MOMENT_DRAWS, rng)
        return means.mean(axis=0), means.std(axis=0, ddof=1)

    def coefficients(self, plan: Plan, rng: np.random.Generator) -> dict[str, Moments]:
        """Return moments in closed form, or of draws where there is no closed form."""
        found = self.closed(plan)
        order = [*plan.outcomes.names, *plan.outcomes.deterministic]
        if not found.keys() >= set(order):
            draws = plan.outcomes.rest(self.samples(plan, MOMENT_DRAWS, rng))
            found |= {k: moments(v) for k, v in draws.items() if k not in found}
        return {k: found[k] for k in order}


@dataclass(frozen=True)
class Gaussian(Exact):
    """θ given a noise precision q is N(mean, (qΛ)⁻¹); here q is 1, in a `StudentT` it is unknown.

    mean (D,), precision Λ (D, D), cholesky L (D, D) lower with Λ = LL'. log_evidence: log of the
    density of the rewards given everything else, all constants included.
    """

    mean: Array
    precision: Array
    cholesky: Array
    log_evidence: float

    def method(self, plan: Plan) -> Any:
        """Return what arranges the variables in θ."""
        return plan.method

    @property
    def variance(self) -> float:
        """The mean of 1/q."""
        return 1.0

    def variances(self, size: int, rng: np.random.Generator) -> Array:
        """Return draws of 1/q (S,)."""
        return np.ones(size)

    def precisions(self, p: Array) -> Array:
        """Return the quantiles of q at probabilities p."""
        return np.ones_like(p)

    def log_kernel(self, q: Array) -> Array:
        """Return the log density (n,) at θ = mean and q (n,), without its constant `log_volume`."""
        return np.zeros_like(q)

    def marginal(self, mean: Array, root: Array) -> Any:
        """Return the distribution of elements of θ, of scipy.stats; their sds are `root` at
        q = 1."""
        return stats.norm(mean, root)

    @property
    def log_volume(self) -> float:
        """log ∫ exp(−½ (θ − mean)'Λ(θ − mean)) dθ."""
        return float(len(self.mean) * HALF_LOG_2PI - np.log(np.diag(self.cholesky)).sum())

    @cached_property
    def inverse(self) -> Array:
        """Λ⁻¹ (D, D)."""
        return np.asarray(cho_solve((self.cholesky, True), np.eye(len(self.mean))))

    @property
    def covariance(self) -> Array:
        """The covariance of θ (D, D); infinite where it is not defined."""
        inverse = self.inverse
        zero = np.zeros_like(inverse)
        # Cov θ = E(1/q) Λ⁻¹. Where that mean is infinite, what is uncorrelated stays so, as ∞ · 0
        # would not
        return np.multiply(inverse, self.variance, where=inverse != 0.0, out=zero)

    def draw(self, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return draws of θ (S, D) and of 1/q (S,)."""
        sigma2 = self.variances(size, rng)
        # θ = mean + σ L'⁻¹z has the covariance σ² (LL')⁻¹
        noise = rng.standard_normal((len(self.mean), size)) * np.sqrt(sigma2)
        return self.mean + solve_triangular(self.cholesky, noise, lower=True, trans=1).T, sigma2

    def samples(self, plan: Plan, size: int, rng: np.random.Generator) -> dict[str, Array]:
        """Return independent draws by name."""
        theta, sigma2 = self.draw(size, rng)
        drawn = self.method(plan).split(theta) | self.method(plan).noise_drawn(sigma2)
        return {k: drawn[k] for k in plan.outcomes.names}

    def rewards(self, plan: Plan, x: Array, size: int, rng: np.random.Generator) -> Array:
        if not self.method(plan).affine:
            return super().rewards(plan, x, size, rng)
        A, b = self.method(plan).linear_map(x)
        return np.asarray(np.tensordot(self.draw(size, rng)[0], A, axes=(1, -1)) + b)

    def moments(self, plan: Plan, x: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return the moments of A θ + b, if mean rewards are that; else the moments of draws."""
        if not self.method(plan).affine:
            return super().moments(plan, x, rng)
        A, b = self.method(plan).linear_map(x)
        # Var a'θ = E(1/q) a'Λ⁻¹a, and a'Λ⁻¹a = ‖L⁻¹a‖² for each row a of A
        half = solve_triangular(self.cholesky, A.reshape(-1, A.shape[-1]).T, lower=True)
        sd = np.sqrt((half**2).sum(axis=0)) * math.sqrt(self.variance)
        return A @ self.mean + b, sd.reshape(b.shape)

    def of_variables(self, plan: Plan) -> dict[str, Moments]:
        """Return the moments of the variables in θ, by name."""
        inside = self.method(plan).moments(self.mean, self.covariance)
        return {k: described(mean, covariance) for k, (mean, covariance) in inside.items()}

    def marginals(self, plan: Plan) -> dict[str, Any]:
        inside = self.method(plan).moments(self.mean, self.inverse)
        return {k: self.marginal(m, scales(m, square)) for k, (m, square) in inside.items()}

    def closed(self, plan: Plan) -> dict[str, Moments]:
        """Return moments of the variables, and of those deterministic quantities that are affine
        in them."""
        found = self.of_variables(plan)
        method = self.method(plan)
        if not plan.outcomes.deterministic:
            return found

        shapes = plan.outcomes.deterministic

        def quantities(Z: Array) -> Array:
            values = plan.outcomes.rest(method.split(Z))
            return np.concatenate([values[k].reshape(len(Z), -1) for k in shapes], axis=1)

        # values at 0 and at the unit vectors tell what is affine in θ; all else differs from that
        # at random points
        T, b = affine(quantities, method.dim)
        points = np.random.default_rng(0).normal(size=(3, method.dim))
        close = np.isclose(points @ T + b, quantities(points), rtol=1e-9, atol=1e-9).all(axis=0)
        covariance = self.covariance
        stop = 0
        for name, shape in shapes.items():
            its = slice(stop, stop := stop + math.prod(shape))
            if close[its].all():
                # θ ~ N(m, C): T'θ + b ~ N(T'm + b, T'CT)
                mean = (self.mean @ T[:, its] + b[its]).reshape(shape)
                found[name] = described(mean, T[:, its].T @ covariance @ T[:, its])
        return found


@dataclass(frozen=True)
class StudentT(Gaussian):
    """1/q = σ² ~ InverseGamma(shape, scale).

    θ by itself is Student-t with 2 shape degrees of freedom.
    """

    shape: float
    scale: float

    @property
    def df(self) -> float:
        """Degrees of freedom of θ."""
        return 2.0 * self.shape

    @property
    def variance(self) -> float:
        # the mean of InverseGamma(a, b) is b/(a − 1)
        return self.scale / (self.shape - 1.0) if self.shape > 1.0 else math.inf

    def variances(self, size: int, rng: np.random.Generator) -> Array:
        # q ~ Gamma(a, b) is a Gamma(a, 1) over b
        return np.asarray(self.scale / rng.standard_gamma(self.shape, size))

    def precisions(self, p: Array) -> Array:
        return np.asarray(stats.gamma.ppf(p, self.shape) / self.scale)

    def log_kernel(self, q: Array) -> Array:
        # Gamma(shape, scale) of q times the normal's q^{D/2}
        power = self.shape - 1.0 + 0.5 * len(self.mean)
        return np.asarray(power * np.log(q) - self.scale * q)

    def marginal(self, mean: Array, root: Array) -> Any:
        # σ² is b/a over χ²/ν with ν = 2a
        return stats.t(self.df, mean, root * math.sqrt(self.scale / self.shape))

    @property
    def log_volume(self) -> float:
        """The log integral of q^{shape − 1 + D/2} exp(−q (scale + ½ (θ − mean)'Λ(θ − mean)))."""
        # over θ: (2π)^{D/2} |Λ|^{−½} q^{−D/2}; then ∫ q^{a−1} e^{−bq} dq = Γ(a)/b^a
        gamma = math.lgamma(self.shape) - self.shape * math.log(self.scale)
        return super().log_volume + gamma

    def marginals(self, plan: Plan) -> dict[str, Any]:
        """Return Student-t marginals of θ; of the scale q^(1/k), a generalised gamma."""
        k = float(self.method(plan).exponent)
        # s = q^{1/k} = b^{−1/k} G^{1/k}, G ~ Gamma(a, 1)
        scale = stats.gengamma(self.shape, k, scale=self.scale ** (-1.0 / k))
        return super().marginals(plan) | {self.method(plan).scale_name: scale}

    def closed(self, plan: Plan) -> dict[str, Moments]:
        """Return moments of the variables, the noise scale as it is declared among them."""
        noise = self.power(1.0 / self.method(plan).exponent)
        return self.of_variables(plan) | {self.method(plan).scale_name: noise}

    def power(self, p: float) -> Moments:
        """Return mean and sd of q^p, q = 1/σ² ~ Gamma(shape, scale); ∞ where they are infinite."""

        def moment(k: float) -> float:
            # E q^k = Γ(a + k) / (Γ(a) b^k), infinite from the pole of Γ on
            if self.shape + k <= 0.0:
                return math.inf
            return float(poch(self.shape, k)) * self.scale**-k  # Γ(a + k) / Γ(a) · b^−k

        mean = moment(p)
        # Var q^p = E q^2p − (E q^p)²: a difference of near numbers, with 6 digits after 1e9 rows
        square = moment(2.0 * p)
        return mean, math.sqrt(max(square - mean**2, 0.0)) if math.isfinite(square) else math.inf


def scales(mean: Array, square: Array) -> Array:
    """Return the roots of the diagonal of a matrix (k, k), in the shape of the k means."""
    return np.sqrt(np.maximum(np.diag(square), 0.0)).reshape(np.shape(mean))


def factor(precision: Array) -> Array | int:
    """Return L with Λ = LL', or the index of the first coordinate that the ones before it leave
    unknown.

    Rounding hides a singular matrix from Cholesky. So a pivot counts as zero if it is no larger
    than the rounding of its diagonal entry.
    """
    diagonal = np.diag(precision)
    # neither prior nor rows inform a coordinate whose diagonal entry is 0
    if not (diagonal > 0.0).all():
        return int(np.argmin(diagonal))
    scale = np.sqrt(diagonal)
    # with 1 on its diagonal, so that a pivot is the share of its entry that the others leave
    L, info = dpotrf(precision / scale[:, None] / scale, lower=1, clean=1)
    if info:
        return int(info) - 1
    smallest = int(np.argmin(np.diag(L)))
    # a pivot is 1 − R², R² the share that the coordinates before it explain; rounding of a sum of
    # D terms may be all of it
    if L[smallest, smallest] ** 2 <= 32.0 * len(scale) * FLOAT_EPSILON:
        return smallest
    return np.asarray(scale[:, None] * L)


def differs(values: Array, closed: Array) -> str:
    """Return how log densities (S,) differ from their closed form, constants aside; "" where they
    agree to rounding or to 1e-5."""
    # log densities differ by a constant: by none, once the first is taken off
    gap = (values - values[0]) - (closed - closed[0])
    size = np.abs(closed - closed[0])
    if (np.abs(gap) <= 1e-5 * (1.0 + size) + RELATIVE_TOLERANCE * np.abs(values).max()).all():
        return ""
    return f"on these rows the log density differs from its closed form by {np.abs(gap).max():.2g}"
