"""Generalised linear models: a link (`link`), and a normal prior of fixed scales."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve_triangular

from bayesbandit.checks import Array
from bayesbandit.inference.base import COMPILE
from bayesbandit.inference.draws import Rows
from bayesbandit.inference.exact.distributions import Gaussian
from bayesbandit.inference.exact.gaussian import ExactGaussian
from bayesbandit.inference.glm.families import Family
from bayesbandit.inference.glm.link import Link, working
from bayesbandit.inference.graph_analysis.density import Density, read
from bayesbandit.inference.graph_analysis.eligibility import check_eligible
from bayesbandit.inference.target import ascend
from bayesbandit.runtime.one_thread import one_thread

if TYPE_CHECKING:
    import pymc as pm

    from bayesbandit.inference.plan import Plan


class Regression(Link):
    """A generalised linear model, of coefficients with a normal prior of fixed scales.

    block: of the working model. whitening: m (D,) and R (D, D) with θ = m + Rφ and φ ~ N(0, I)
    before any data.
    """

    def __init__(self, density: Density, engine: str) -> None:
        super().__init__(density, engine)
        self.block = ExactGaussian(working(self), engine)
        prior = self.block.prior_distribution  # refused where it is improper
        # prior N(m, Λ⁻¹), Λ = LL': R = L'⁻¹ has RR' = Λ⁻¹, and θ = m + Rφ the prior
        root = solve_triangular(prior.cholesky, np.eye(self.block.dim), lower=True).T
        self.whitening = prior.mean, root

    def laplace(self, A: Array, b: Array, data: Rows) -> Linearized:
        """Return Laplace's approximation of the posterior of θ, of rows with η = A θ + b."""
        m, R = self.whitening
        reward = data["reward"]
        power = self.weights(data)
        # η = A (m + Rφ) + b = (A R) φ + (A m + b)
        theta = m + R @ mode(self.family, A @ R, b + A @ m, reward, power)
        _, v = self.family.pseudo_rows(A @ theta + b, reward, power)
        # −∂² log p at the mode: Λ of the prior and A'VA, V the curvatures of log p(r | η)
        precision = self.block.prior.precision + (A.T * v) @ A
        L = self.block.solve(precision, np.zeros(len(theta)))[0]
        return Linearized(theta, precision, L, np.nan, self)

    def approximated(self, rows: Rows) -> Linearized:
        """Return Laplace's approximation given rows, by role; other likelihoods are refused."""
        data = self.block.data(**rows)
        A, b = self.block.linear_map(data["x"], rows.get("arm"))
        approximation = self.laplace(A, b, data)
        self.check(data, A @ approximation.mean + b)
        return approximation


@dataclass(frozen=True)
class Linearized(Gaussian):
    """Laplace's approximation of a generalised linear model: its moments need no draws.

    It is of the coefficients. The linear predictor is normal, so that moments of mean rewards are
    integrals in one dimension.
    """

    glm: Regression

    def method(self, plan: Plan) -> ExactGaussian:
        return self.glm.block

    def rewards(self, plan: Plan, x: Array, size: int, rng: np.random.Generator) -> Array:
        # draws of θ are of the normal; the link is applied to each
        return self.glm.family.mean(super().rewards(plan, x, size, rng))

    def moments(self, plan: Plan, x: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        # η = a'θ + b is normal under the approximation, and the mean reward a function of η alone
        return self.glm.family.moments(*super().moments(plan, x, rng))


def mode(
    family: Family,
    z: Array,
    offset: Array,
    reward: Array,
    power: Array,
    start: Array | None = None,
) -> Array:
    """Return φ (D,) of the greatest posterior density, φ ~ N(0, I) before any data: of rows with
    η = z φ + offset, rewards and powers of their likelihoods (n,).

    start: where it is looked for first; None: 0. Newton's method with steps that are halved until
    the log density does not fall: it is strictly concave, and the mode is the only point where that
    ends.
    """

    def log_density(phi: Array) -> float:
        return family.total(z @ phi + offset, reward, power) - 0.5 * float(phi @ phi)

    def newton_step(phi: Array) -> tuple[Array, float]:
        eta = z @ phi + offset
        y, v = family.pseudo_rows(eta, reward, power)
        # y − η = (∂ log p / ∂η) / v: working observations; Newton's step (I + Z'VZ)⁻¹ gradient
        gradient = z.T @ (v * (y - eta)) - phi
        step = np.linalg.solve(np.eye(len(phi)) + (z.T * v) @ z, gradient)
        return step, float(gradient @ step)

    with one_thread():
        phi = ascend(log_density, newton_step, np.zeros(z.shape[1]) if start is None else start)
    if phi is None:
        raise RuntimeError(f"{family.name}: the posterior's mode was not found")
    return phi


def regression(model: pm.Model, engine: str) -> Regression:
    """Return the generalised linear model that a built model is; or else the refusal, in an
    engine's name."""
    with COMPILE:
        check_eligible(model, engine)
        return Regression(read(model), engine)
