"""Generalised linear models, read from a declaration: rewards of a likelihood p(r | η) by name,
a linear predictor η = A(x, arm) θ + b, and a normal prior of θ.

θ enters the mean reward by one node η that is affine in it (`degrees`), and the likelihood
through the same node. The likelihood is one of each row alone (`rows`), of its η, reward and weight
(`dependence`), and analytic in η: it is the family's if it is at some points, which is settled on
the user's own rows whenever these are fitted.

The *working model* is the same with rows N(η, 1/weight) in the place of the likelihood, and η for
its mean reward: what is known of linear-Gaussian models holds for it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from scipy.linalg import solve_triangular

from bayesbandit.inference.base import COMPILE, NotThisEngine, refuse
from bayesbandit.inference.exact.gaussian import ExactGaussian
from bayesbandit.inference.glm.cut import Cut, predictor, with_shared_nodes
from bayesbandit.inference.glm.families import Family, family
from bayesbandit.inference.graph_analysis.density import Density, Term, read
from bayesbandit.inference.graph_analysis.eligibility import eligible
from bayesbandit.inference.graph_analysis.quadratic import Data, Quadratic
from bayesbandit.inference.graph_analysis.recognise import recognise
from bayesbandit.kernels.glm import newton
from bayesbandit.runtime.one_thread import one_thread

if TYPE_CHECKING:
    import pymc as pm

POINTS, AROUND = 8, 5.0  # at which a likelihood is compared with the family's, and how far η goes
TOLERANCE = 1e-7  # of a log likelihood, relative: PyTensor has √2 in single precision
NEAR = 1e-5  # of one at a posterior's own η, absolute, a row
FAR = 0.01  # of one where 1 − p is next to nothing, relative
LINKS = 241  # points at which a mean reward is compared with the family's
TOGETHER = 16  # rewards that are compared at once


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
        self._tested: set[float] = set()

    def weights(self, data: Data) -> np.ndarray:
        """Return the powers (n,) of rows' likelihoods."""
        return data[2] if self.weighted else np.ones(len(data[0]))

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
        (m, R), reward, power = self.whitening, data[1], self.weights(data)
        theta = m + R @ self.mode(A @ R, b + A @ m, reward, power)
        _, v = self.pseudo_rows(A @ theta + b, reward, power)
        precision = self.block.prior().precision + (A.T * v) @ A
        L = self.block.solve(precision, np.zeros(len(theta)))[0]
        noise = rng.standard_normal(len(theta))
        return np.asarray(theta + solve_triangular(L, noise, lower=True, trans=1))

    def impossible(self, reward: float) -> NotThisEngine:
        """Return the refusal of a reward that the family has no probability for."""
        reason = f"a reward of {reward:g} is none of a {self.family.name} likelihood"
        return self.block.quadratic.refusal(reason, of_rows=True)

    def check(self, data: Data, eta: np.ndarray | None = None) -> None:
        """Run the identity test: the model's log likelihood is the family's, but for a constant,
        for each of these rewards, near and far; and of these rows together at their η (n,)."""
        new = np.array(sorted(set(data[1].tolist()) - self._tested))
        if not (possible := self.family.possible(new)).all():
            raise self.impossible(float(new[~possible][0]))
        for i in range(0, len(new), TOGETHER):
            self._check_rewards(new[i : i + TOGETHER])
            self._tested.update(new[i : i + TOGETHER].tolist())
        if eta is not None and len(eta):
            gap, size = self._gap(data, eta)
            if not gap <= TOLERANCE * size + NEAR * len(eta):
                raise self._unlike(gap)

    def _check_rewards(self, reward: np.ndarray) -> None:
        """Test rewards (n,): by what is proved of the graph (`Cut`), it holds for all
        rows that have them."""
        n = len(reward)
        x, one = np.ones((n, self.cut.density.n_features)), np.ones(n)
        data, rng = (x, reward, one, np.zeros(n, dtype=np.int64)), np.random.default_rng(0)
        points = [(rng.uniform(-AROUND, AROUND, n), TOLERANCE) for _ in range(POINTS)]
        points += [(np.full(n, end), FAR) for end in self.family.ends]
        for eta, tolerance in points:
            gap, size = self._gap(data, eta)
            if not gap <= tolerance * size:
                raise self._unlike(gap)

    def _gap(self, data: Data, eta: np.ndarray) -> tuple[float, float]:
        """Return by how much the log likelihoods of rows differ between η and 0, in the model and
        in the family; and of what size they are."""
        zero, weight = np.zeros(len(eta)), self.weights(data)
        here, there = (
            (self.family.total(at, data[1], weight), self.cut.total(at, data)) for at in (eta, zero)
        )
        ours, theirs = here[0] - there[0], here[1] - there[1]
        size = sum(abs(v) for v in (*here, *there)) + len(eta)
        return (abs(theirs - ours), size) if np.isfinite(size) else (np.inf, 0.0)

    def _unlike(self, gap: float) -> NotThisEngine:
        name = self.family.name
        reason = f"on these rows the likelihood is not {name}: by {gap:.2g}"
        return self.block.quadratic.refusal(reason, of_rows=True)


def regression(model: pm.Model, engine: str) -> Regression:
    """Return the generalised linear model that a built model is; or else the refusal, in an
    engine's name."""
    with COMPILE:
        eligible(model, engine)
        density = with_shared_nodes(read(model))
        cut = Cut(density, predictor(density, engine), engine)
        found = family(cut.means(np.array([0.0, 1.0])), cut.slope)
        links = np.linspace(*found.ends, LINKS) if found else np.zeros(0)
        if found is None or not np.allclose(cut.means(links), found.mean(links), 1e-5, 1e-9):
            raise refuse(engine, "'mean_reward': no link that is known: logit, probit or log")
        block = _working(density, cut, engine)
        glm = Regression(block, cut, found, cut.weighted)
        glm.check(data := _examples(found, density))
        gap, size = glm._gap(data, np.linspace(-AROUND, AROUND, len(data[0])))
        if not gap <= TOLERANCE * size:
            raise glm._unlike(gap)
        return glm


def _working(density: Density, cut: Cut, engine: str) -> ExactGaussian:
    """Return the working model: rows N(η, 1/weight)."""
    inputs, own = dict(density.inputs), dict(density.own)
    if "weight" not in inputs:
        inputs["weight"] = pt.tensor("weight", shape=(None,))
        own["weight"] = np.ones(len(own["x"]))
    m, node = pt.tensor("m", shape=(None,)), cut.node
    reward, weight = map(pt.as_tensor_variable, (inputs["reward"], inputs["weight"]))

    def normal(eta: Variable) -> Variable:
        return -0.5 * weight * (reward - eta) ** 2

    prior = tuple(term for term in density.terms if not term.on_data)
    row = Term("working", "the likelihood", normal(node), normal(m), on_data=True)
    density = replace(density, terms=(*prior, row), mean=node, given_mean=m, inputs=inputs, own=own)
    quadratic = Quadratic(density, engine)
    return ExactGaussian(quadratic, recognise(quadratic))


def _examples(family: Family, density: Density) -> Data:
    """Return made-up rows of all rewards, with unlike weights."""
    reward = np.repeat(family.rewards, 3)
    weight = np.tile([1.0, 0.3, 2.5], len(family.rewards))
    x, arm = np.ones((len(reward), density.n_features)), np.zeros(len(reward), dtype=np.int64)
    return x, reward, weight, arm
