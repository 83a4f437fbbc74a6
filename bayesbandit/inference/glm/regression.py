"""Generalised linear models: a link (`link`), and a normal prior of fixed scales."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from bayesbandit.inference.base import COMPILE
from bayesbandit.inference.draws import Known, Moments, Planned
from bayesbandit.inference.exact.distributions import ExactDistribution, Gaussian
from bayesbandit.inference.exact.gaussian import ExactGaussian
from bayesbandit.inference.glm.link import Link, link, working
from bayesbandit.inference.graph_analysis.density import read
from bayesbandit.inference.graph_analysis.eligibility import eligible
from bayesbandit.inference.graph_analysis.quadratic import Data, Quadratic
from bayesbandit.inference.graph_analysis.recognise import recognise
from bayesbandit.kernels.glm import newton
from bayesbandit.runtime.one_thread import one_thread

if TYPE_CHECKING:
    import pymc as pm


class Regression(Link):
    """A generalised linear model, of coefficients with a normal prior of fixed scales.

    block: of the working model. whitening: m (D,) and R (D, D) with θ = m + Rφ and φ ~ N(0, I)
    before any data.
    """

    def __init__(self, block: ExactGaussian, link: Link) -> None:
        super().__init__(link.cut, link.family, link.engine)
        self.block = block
        prior = block.distribution(block.prior())  # refused where it is improper
        root = solve_triangular(prior.cholesky, np.eye(block.dim), lower=True).T
        self.whitening = prior.mean, root

    def mode(
        self,
        z: np.ndarray,
        offset: np.ndarray,
        reward: np.ndarray,
        power: np.ndarray,
        start: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return φ (D,) of the greatest posterior density, φ ~ N(0, I) before any data: of rows
        with η = z φ + offset, rewards and powers of their likelihoods (n,).

        start: where it is looked for first; None: 0.
        """
        phi = np.zeros(z.shape[1]) if start is None else start.copy()
        kind, number = self.family.kind, self.family.number
        with one_thread():
            step = newton.mode(np.ascontiguousarray(z), offset, reward, power, kind, number, phi)
        if not step < np.inf:
            raise RuntimeError(f"{self.family.name}: the posterior's mode was not found")
        return phi

    def pseudo_rows(
        self, eta: np.ndarray, reward: np.ndarray, power: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return normal observations of η and their precisions (n,), whose log densities have
        the slopes and curvatures at η (n,) that those of the rewards have, by their powers."""
        y, v = np.empty(len(eta)), np.empty(len(eta))
        newton.pseudo_rows(eta, self.family.kind, self.family.number, reward, power, y, v)
        return y, v

    def near_mode(
        self, A: np.ndarray, b: np.ndarray, data: Data, rng: np.random.Generator
    ) -> np.ndarray:
        """Return a draw of θ (D,) of Laplace's approximation, of rows with η = A θ + b."""
        return self.laplace(A, b, data).draw(1, rng)[0]

    def laplace(self, A: np.ndarray, b: np.ndarray, data: Data) -> Gaussian:
        """Return Laplace's approximation of the posterior of θ, of rows with η = A θ + b."""
        (m, R), reward, power = self.whitening, data[1], self.weights(data)
        theta = m + R @ self.mode(A @ R, b + A @ m, reward, power)
        _, v = self.pseudo_rows(A @ theta + b, reward, power)
        precision = self.block.prior().precision + (A.T * v) @ A
        L = self.block.solve(precision, np.zeros(len(theta)))[0]
        return Gaussian(theta, precision, L, np.nan)

    def approximated(self, rows: Mapping[str, np.ndarray]) -> Linearized:
        """Return Laplace's approximation given rows, by role; other likelihoods are refused."""
        data = self.block.data(**rows)
        A, b = self.block.linear_map(data[0], rows.get("arm"))
        known = self.laplace(A, b, data)
        self.check(data, A @ known.mean + b)
        return Linearized(known, self)


@dataclass(frozen=True)
class Linearized(Known):
    """Laplace's approximation of a generalised linear model: its moments need no draws.

    theta: of the coefficients. The linear predictor is normal, so that moments of mean rewards are
    integrals in one dimension.
    """

    theta: ExactDistribution
    glm: Regression

    def samples(self, plan: Planned, size: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        return self.theta.samples(self._working(plan), size, rng)

    def rewards(
        self, plan: Planned, x: np.ndarray, size: int, rng: np.random.Generator
    ) -> np.ndarray:
        eta = self.theta.rewards(self._working(plan), x, size, rng)
        return self.glm.family.mean(eta)

    def moments(
        self, plan: Planned, x: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        return self.glm.family.moments(*self.theta.moments(self._working(plan), x, rng))

    def coefficients(self, plan: Planned, rng: np.random.Generator) -> dict[str, Moments]:
        return self.theta.coefficients(self._working(plan), rng)

    def marginals(self, plan: Planned) -> dict[str, Any]:
        return self.theta.marginals(self._working(plan))

    def _working(self, plan: Planned) -> Working:
        return Working(self.glm.block, plan.outcomes)


class Working(NamedTuple):
    """A plan whose method is that of the working model: see `link`."""

    method: Any
    outcomes: Any


def regression(model: pm.Model, engine: str) -> Regression:
    """Return the generalised linear model that a built model is; or else the refusal, in an
    engine's name."""
    with COMPILE:
        eligible(model, engine)
        linked = link(read(model), engine)
        quadratic = Quadratic(working(linked.cut), engine)
        return Regression(ExactGaussian(quadratic, recognise(quadratic)), linked)
