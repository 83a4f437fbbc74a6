"""Generalised linear models, read from a declaration: rewards of a likelihood p(r | η) by name,
a linear predictor η = A(x, arm) θ + b, and a normal prior of θ.

θ enters the mean reward by one node η that is affine in it (`structure`), and the likelihood
through the same node. The likelihood is one of each row alone (`rows`), of its η, reward and weight
(`influence`), and analytic in η: it is the family's if it is at some points, which is settled on
the user's own rows whenever these are fitted.

The *working model* is the same with rows N(η, 1/weight) in the place of the likelihood, and η for
its mean reward: what is known of linear-Gaussian models holds for it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from scipy.linalg import solve_triangular

from bayesbandit.engines.base import COMPILE, NotThisEngine
from bayesbandit.engines.exact.gaussian import ExactGaussian
from bayesbandit.engines.glm.cut import Cut, predictor, refuse, with_shared_nodes
from bayesbandit.engines.glm.families import Family, family
from bayesbandit.engines.reading.admission import eligible
from bayesbandit.engines.reading.density import Density, Term, read
from bayesbandit.engines.reading.quadratic import Data, Quadratic
from bayesbandit.engines.reading.recognise import recognise
from bayesbandit.kernels.glm import newton

if TYPE_CHECKING:
    import pymc as pm

POINTS = 6  # at which a likelihood is compared with the family's
SPREAD, MOST = 1.5, 5.0  # of η there
TOLERANCE = 1e-7  # of a log likelihood, relative: PyTensor has √2 in single precision
NEAR = 1e-5  # and of one at a posterior's own η, absolute, a row


class Regression:
    """A generalised linear model.

    block: of the working model. family: of the likelihood. weighted: whether a row's log likelihood
    is multiplied by its weight. whitening: m (D,) and R (D, D) with θ = m + Rφ and φ ~ N(0, I)
    before any data.
    """

    def __init__(self, block: ExactGaussian, cut: Cut, family: Family, weighted: bool) -> None:
        self.block, self.cut, self.family, self.weighted = block, cut, family, weighted
        prior = block.distribution(block.prior())  # refused where it is improper
        root = solve_triangular(prior.cholesky, np.eye(block.dim), lower=True).T
        self.whitening = prior.mean, root

    def weights(self, data: Data) -> np.ndarray:
        """The powers (n,) of rows' likelihoods."""
        return data[2] if self.weighted else np.ones(len(data[0]))

    def mode(self, A: np.ndarray, b: np.ndarray, data: Data) -> np.ndarray:
        """θ (D,) of the greatest posterior density, of rows with η = A θ + b."""
        m, R = self.whitening
        phi, kind, number = np.zeros(len(m)), self.family.kind, self.family.number
        z, offset = np.ascontiguousarray(A @ R), b + A @ m
        if not newton.mode(z, offset, data[1], self.weights(data), kind, number, phi) < np.inf:
            raise RuntimeError(f"{self.family.name}: the mode of the posterior was not found")
        return np.asarray(m + R @ phi)

    def near_mode(
        self, A: np.ndarray, b: np.ndarray, data: Data, rng: np.random.Generator
    ) -> np.ndarray:
        """A draw of θ (D,) of Laplace's approximation."""
        theta, weight = self.mode(A, b, data), self.weights(data)
        y, v = np.empty(len(b)), np.empty(len(b))
        newton.pseudo_rows(
            A @ theta + b, self.family.kind, self.family.number, data[1], weight, y, v
        )
        precision = self.block.prior().precision + (A.T * v) @ A
        L = self.block.solve(precision, np.zeros(len(theta)))[0]
        noise = rng.standard_normal(len(theta))
        return np.asarray(theta + solve_triangular(L, noise, lower=True, trans=1))

    def impossible(self, reward: float) -> NotThisEngine:
        """The refusal of a reward that the family has no probability for."""
        reason = f"a reward of {reward:g} is none of a {self.family.name} likelihood"
        return self.block.quadratic.refusal(reason, of_rows=True)

    def check(self, data: Data, *etas: np.ndarray) -> None:
        """The identity test: on these rows the model's log likelihood is the family's, but for a
        constant, at random η and at these (n,)."""
        n, rng = len(data[0]), np.random.default_rng(0)
        if n == 0:
            return
        if not (possible := self.family.possible(data[1])).all():
            raise self.impossible(float(data[1][~possible][0]))
        at = [np.clip(SPREAD * rng.standard_normal(n), -MOST, MOST) for _ in range(POINTS)]
        weight = self.weights(data)
        gaps, sizes = [], []
        for eta in (*at, *etas):
            ours = self.family.total(eta, data[1], weight)
            theirs = self.cut.total(eta, data)
            gaps.append(theirs - ours)
            sizes.append(abs(theirs) + abs(ours))
        if not np.isfinite(gaps).all():
            reason = "on these rows the likelihood is 0, to rounding, where its posterior is"
            raise self.block.quadratic.refusal(reason, of_rows=True)
        least = TOLERANCE * (max(sizes) + n)
        wrong = not np.ptp(gaps[:POINTS]) <= least
        wrong |= not np.ptp(gaps) <= least + NEAR * n
        if wrong:
            reason = (
                f"on these rows the likelihood is not {self.family.name}: by {np.ptp(gaps):.2g}"
            )
            raise self.block.quadratic.refusal(reason, of_rows=True)


def regression(model: pm.Model, engine: str) -> Regression:
    """The generalised linear model that a built model is; or else the refusal, in an engine's
    name."""
    with COMPILE:
        eligible(model, engine)
        density = with_shared_nodes(read(model))
        cut = Cut(density, predictor(density, engine), engine)
        found = family(cut.mean_at, cut.slope)
        if found is None:
            raise refuse(engine, "'mean_reward': no link that is known: logit, probit or log")
        block = _working(density, cut, engine)
        glm = Regression(block, cut, found, cut.weighted)
        glm.check(_examples(found, density))
        return glm


def _working(density: Density, cut: Cut, engine: str) -> ExactGaussian:
    """The working model: rows N(η, 1/weight)."""
    inputs, own = dict(density.inputs), dict(density.own)
    if "weight" not in inputs:
        inputs["weight"] = pt.tensor("weight", shape=(None,))
        own["weight"] = np.ones(len(own["x"]))
    m: Any = pt.tensor("m", shape=(None,))
    node: Any = cut.node

    def normal(eta: Any) -> Any:
        return -0.5 * inputs["weight"] * (inputs["reward"] - eta) ** 2

    prior = tuple(term for term in density.terms if not term.on_data)
    row = Term("working", "the likelihood", normal(node), normal(m), on_data=True)
    density = replace(density, terms=(*prior, row), mean=node, given_mean=m, inputs=inputs, own=own)
    quadratic = Quadratic(density, engine)
    return ExactGaussian(quadratic, recognise(quadratic))


def _examples(family: Family, density: Density) -> Data:
    """Made-up rows of all rewards, with unlike weights."""
    reward = np.repeat(family.rewards, 3)
    weight = np.tile([1.0, 0.3, 2.5], len(family.rewards))
    x, arm = np.ones((len(reward), density.n_features)), np.zeros(len(reward), dtype=np.int64)
    return x, reward, weight, arm
