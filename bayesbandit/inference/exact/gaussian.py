"""The exact engine for models whose log density is quadratic: the posterior is Gaussian.

Recognised from the declaration's log density (`degrees`), extracted from its gradient
(`gaussian_block`, (8) of mathematics.md), whatever the declaration looks like: ridge, hierarchies
of means, random walks, …
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve_triangular

from bayesbandit.checks import Array
from bayesbandit.inference.base import matching
from bayesbandit.inference.draws import Rows
from bayesbandit.inference.exact.distributions import (
    RELATIVE_TOLERANCE,
    Gaussian,
    differs,
)
from bayesbandit.inference.gaussian_block import GaussianBlock
from bayesbandit.inference.graph_analysis.density import read
from bayesbandit.inference.graph_analysis.eligibility import check_eligible, check_on_own_rows
from bayesbandit.inference.graph_analysis.quadratic import Given, Natural

if TYPE_CHECKING:
    import pymc as pm

ENGINE = "exact_gaussian"
TESTED_QUANTILES = np.array([0.5, 1e-4, 1.0 - 1e-4])  # of q
LEAST_TESTED = 1e-200  # of q, whose quantiles are below all floats for a small shape


class ExactGaussian(GaussianBlock):
    """A model whose posterior is Gaussian given the precision q of the noise, and how to compute
    it.

    Its log density is c + h log q − βq + q (η'θ − ½ θ'Λθ), see `Natural`. Here the noise is known,
    and q is 1.
    """

    learns_noise = False

    @property
    def noise(self) -> float | None:
        """σ² q where rewards are N(mean reward, σ²/weight), else None (see `RowNoise`)."""
        return self.row_noise.factor

    # ---- as functions of q -----------------------------------------------------------------------

    def scale_at(self, q: float) -> Given:
        """Return the value of the noise scale where its precision is q, if it is unknown."""
        return ()

    def log_jacobian(self, q: float) -> float:
        """Return what makes a density in the noise scale one in q."""
        return 0.0

    def log_density(self, theta: Array, q: float, *parts: Rows | None) -> float:
        """Return the log density of θ (D,) and q, of rows and of the prior, None, among the
        parts."""
        values = [self.part(theta[None], data, self.scale_at(q))[1][0] for data in parts]
        # p(q) = p(s) |ds/dq| is a matter of the prior; rows have one likelihood in either
        return float(sum(values)) + self.log_jacobian(q) * (None in parts)

    def scalars(self, theta: Array, *parts: Rows | None) -> tuple[float, float, float]:
        """Return h, β and c of `log_density` at θ (D,) as c + h log q − βq."""
        return 0.0, 0.0, self.log_density(theta, 1.0, *parts)

    # ---- prior, rows, posterior ------------------------------------------------------------------

    @cached_property
    def prior(self) -> Natural:
        """Natural parameters of the prior."""
        natural = self.natural(None, self.scale_at(1.0))
        # c, h and β are what is left at θ = 0
        return Natural(*natural, *self.scalars(np.zeros(self.dim), None))

    def of_rows(self, data: Rows) -> tuple[Array, Array]:
        """Return Λ and η of rows. Where they are `row_wise` each is an observation of precision p
        and shift u of its mean reward A θ + b: Λ = A'diag(p)A, η = A'u."""
        if not self.row_wise:
            return self.natural(data, self.scale_at(1.0))
        # O(n D²) by one product, and no Hessian of n rows
        A, b = self.mean_map(data)
        # as a function of its mean reward m = a'θ + b, a row is u (m − b) − ½ p (m − b)²
        shift, curvature, _ = self.curvature(b, data, self.scale_at(1.0))
        return (A.T * -curvature) @ A, A.T @ shift

    def posterior(
        self, x: Array, reward: Array, weight: Array | None = None, arm: Array | None = None
    ) -> Gaussian:
        """Return the posterior given rows x (n, d), reward, weight, arm (n,), if it is
        `checked`.

        What is left beside the square is read at the mean: at 0 it would be lost to rounding if
        rewards are far from 0.
        """
        data = self.data(x, reward, weight, arm)
        precision, shift = self.of_rows(data)
        # log densities add up: so do Λ and η
        precision = self.prior.precision + precision
        L, _, mean = self.solve(precision, self.prior.shift + shift)
        power, rate, constant = self.scalars(mean, None, data)
        if not np.isfinite(constant):
            raise self.not_finite(constant)
        known = self.about(mean, precision, L, power, rate, constant)
        self.checked(known, data)
        return known

    @property
    def prior_distribution(self) -> Gaussian:
        """The prior; refused where it is improper."""
        natural = self.prior
        L, half, mean = self.solve(natural.precision, natural.shift)
        # −βq + q (η'θ − ½θ'Λθ) about θ = Λ⁻¹η: β − ½ η'Λ⁻¹η is left, and η'Λ⁻¹η = ‖L⁻¹η‖²
        rate = natural.rate - 0.5 * float(half @ half)
        return self.about(mean, natural.precision, L, natural.power, rate, natural.constant)

    def about(
        self, mean: Array, precision: Array, L: Array, power: float, rate: float, constant: float
    ) -> Gaussian:
        """Return the distribution about a mean (D,), where η is 0; refused where it is improper."""
        known = Gaussian(mean, precision, L, 0.0)
        return replace(known, log_evidence=constant - rate + known.log_volume)

    def checked(self, known: Gaussian, data: Rows) -> None:
        """Run the identity test: at the mean and up to four sds from it, at q from the middle and
        the tails, the model's log density of these rows and its gradient in θ are those of
        `known`, to rounding or to 1e-5 posterior sds."""
        # at θ = mean + L'⁻¹z/√q the closed form is the kernel of q, less ½‖z‖²
        z = tried(self.dim)
        # where the posterior of q is; a shape of .01 has quantiles of 1e-400
        q = np.maximum(known.precisions(TESTED_QUANTILES), LEAST_TESTED)
        root = np.sqrt(q)
        half = solve_triangular(known.cholesky, z.T, lower=True, trans=1)
        theta = known.mean + (half / root).T
        at = [self.at(one, data, self.scale_at(p)) for one, p in zip(theta, q, strict=True)]
        slopes = np.array([slope for slope, _ in at]) / q[:, None]
        # a density of s becomes one of q by |ds/dq|
        values = np.array([value for _, value in at]) + [self.log_jacobian(p) for p in q]
        if not np.isfinite(values[0]):
            raise self.not_finite(values[0])
        if why := differs(values, known.log_kernel(q) - 0.5 * (z**2).sum(axis=1)):
            raise self.refusal(why, of_rows=True)
        # the gradient over q should be Λ (mean − θ); L⁻¹ turns what it is off into posterior sds
        off = slopes - (known.mean - theta) @ known.precision
        # the terms that the gradient is a difference of: their rounding is no fault
        size = np.abs(theta) @ np.abs(known.precision) + np.abs(known.precision @ known.mean)
        # √q L⁻¹ (gradient) is by how many sds the mode is elsewhere
        sds = root * np.linalg.norm(solve_triangular(known.cholesky, off.T, lower=True), axis=0)
        close = sds <= 1e-5 * (1.0 + np.linalg.norm(z, axis=1))
        if ((np.abs(off) > RELATIVE_TOLERANCE * size).any(axis=1) & ~close).any():
            reason = (
                "on these rows the mean of the log density differs from its closed form by "
                f"{np.nanmax(sds):.2g} posterior sds"
            )
            raise self.refusal(reason, of_rows=True)


def tried(dim: int) -> Array:
    """Return points (3, D) at which a posterior is tested: its mean, one and four sds from it."""
    z = np.random.default_rng(0).standard_normal((3, dim))
    return z * np.array([[0.0], [1.0], [4.0]])


@matching
def match(model: pm.Model) -> ExactGaussian:
    """Return the exact Gaussian engine of a built model. Its prior may be improper."""
    check_eligible(model, ENGINE)
    engine = ExactGaussian(read(model), ENGINE)
    check_on_own_rows(engine, engine.density, ENGINE)
    return engine
