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
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from pytensor.tensor.elemwise import Elemwise
from scipy.linalg import solve_triangular

from bayesbandit.declaring.declaration import DATA
from bayesbandit.engines.base import COMPILE, Compiled, NotThisEngine, Refusal
from bayesbandit.engines.exact.gaussian import ExactGaussian
from bayesbandit.engines.glm.families import Family, family
from bayesbandit.engines.reading.admission import eligible
from bayesbandit.engines.reading.density import Density, Term, read
from bayesbandit.engines.reading.influence import Influence
from bayesbandit.engines.reading.quadratic import PYTHON, Data, Quadratic, gradient
from bayesbandit.engines.reading.recognise import DATA_ROW, recognise
from bayesbandit.engines.reading.rewrites import merged
from bayesbandit.engines.reading.rows import Rows
from bayesbandit.engines.reading.structure import Degrees, analytic
from bayesbandit.kernels.glm import newton

if TYPE_CHECKING:
    import pymc as pm

POINTS = 6  # at which a likelihood is compared with the family's
SPREAD, MOST = 1.5, 5.0  # of η there
TOLERANCE = 1e-7  # of a log likelihood, relative: PyTensor has √2 in single precision
NEAR = 1e-5  # and of one at a posterior's own η, absolute, a row
UNARY = {"Neg", "Mul", "TrueDiv", "Identity"}


class Regression:
    """A generalised linear model.

    block: of the working model. family: of the likelihood. weighted: whether a row's log likelihood
    is multiplied by its weight.
    """

    def __init__(self, block: ExactGaussian, cut: Cut, family: Family, weighted: bool) -> None:
        self.block, self.cut, self.family, self.weighted = block, cut, family, weighted

    def weights(self, data: Data) -> np.ndarray:
        """The powers (n,) of rows' likelihoods."""
        return data[2] if self.weighted else np.ones(len(data[0]))

    @cached_property
    def whitening(self) -> tuple[np.ndarray, np.ndarray]:
        """m (D,) and R (D, D) with θ = m + Rφ and φ ~ N(0, I) before any data."""
        prior = self.block.distribution(self.block.prior())
        return prior.mean, solve_triangular(prior.cholesky, np.eye(self.block.dim), lower=True).T

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

    def check(self, data: Data, *etas: np.ndarray) -> None:
        """The identity test: on these rows the model's log likelihood is the family's, but for a
        constant, at random η and at these (n,)."""
        n, rng = len(data[0]), np.random.default_rng(0)
        if n == 0:
            return
        if not (possible := self.family.possible(data[1])).all():
            raise ValueError(
                f"a {self.family.name} reward is a whole number that it can be; got "
                f"{data[1][~possible][0]:g}"
            )
        at = [np.clip(SPREAD * rng.standard_normal(n), -MOST, MOST) for _ in range(POINTS)]
        weight = self.weights(data)
        gaps, sizes = [], []
        for eta in (*at, *etas):
            ours = self.family.total(eta, data[1], weight)
            theirs = self.cut.total(eta, data)
            gaps.append(theirs - ours)
            sizes.append(abs(theirs) + abs(ours))
        least = TOLERANCE * (max(sizes) + n)
        wrong = not np.ptp(gaps[:POINTS]) <= least
        wrong |= not np.ptp(gaps) <= least + NEAR * n
        if wrong:
            reason = f"on these rows the likelihood is not {self.family.name}: by {np.ptp(gaps):.2g}"
            raise self.block.quadratic.refusal(reason, of_rows=True)


class Cut:
    """A mean reward and a likelihood as functions of η (n,), which stands in the place of `node`."""

    def __init__(self, density: Density, node: Variable, engine: str) -> None:
        self.density, self.node = density, node
        self.eta: Any = pt.tensor("eta", shape=(None,))
        on_data = [term for term in density.terms if term.on_data]
        graphs = clone_replace(
            [density.mean, *(term.graph for term in on_data)], {node: self.eta}, rebuild_strict=False
        )
        self.mean, *self.terms = graphs
        self.labels = [term.label for term in on_data]
        self._check(engine)

    def _check(self, engine: str) -> None:
        """That rows are apart, that θ enters by η alone, and that all is analytic in it."""
        inputs = self.density.inputs
        values = set(self.density.values.values())
        names: dict[Any, tuple[str, ...]] = {v: (role,) for role, v in inputs.items()}
        allowed = {"reward", "weight", "eta"}
        for label, graph in zip(["'mean_reward'", *self.labels], [self.mean, *self.terms], strict=True):
            if values & set(ancestors([graph])):
                raise _refuse(engine, f"{label}: depends on more than one linear predictor")
            found = Influence([graph], names | {self.eta: ("eta",)}).of(graph)
            if more := found - (allowed if graph is not self.mean else {"eta"}):
                raise _refuse(engine, f"{label}: depends on {' and '.join(sorted(more))} besides "
                              "the linear predictor")  # fmt: skip
            rows = Rows([graph], dict.fromkeys([*inputs.values(), self.eta], DATA_ROW))
            if why := (rows.apart if graph is self.mean else rows.mixed)(graph):
                raise _refuse(engine, f"{label}: rows are not apart: {why}")
            if why := Degrees([graph], {self.eta: 1.0}, analytic, positive=()).fault(graph, most=1):
                raise _refuse(engine, f"{label}: {why}")

    @property
    def weighted(self) -> bool:
        """Whether the likelihood depends on the weights."""
        weight = self.density.inputs.get("weight")
        return weight is not None and weight in set(ancestors(self.terms))

    def total(self, eta: np.ndarray, data: Data) -> float:
        """The log likelihood of rows at their η (n,)."""
        [value] = self._total(eta, *self._present(data))
        return float(value)

    def slope(self, eta: float, reward: float) -> float:
        """The derivative of a row's log likelihood by its η."""
        d = self.density.n_features
        data = np.ones((1, d)), np.array([reward]), np.ones(1), np.zeros(1, dtype=np.int64)
        [slope] = self._slope(np.array([eta]), *self._present(data))
        return float(np.ravel(slope)[0])

    def mean_at(self, eta: float) -> float:
        """The mean reward at η."""
        [mean] = self._mean(np.array([eta]))
        return float(np.ravel(mean)[0])

    def _present(self, data: Data) -> list[np.ndarray]:
        return [a for a, role in zip(data, DATA, strict=True) if role in self.density.inputs]

    @property
    def _inputs(self) -> list[Any]:
        return [self.density.inputs[role] for role in DATA if role in self.density.inputs]

    @cached_property
    def _sum(self) -> Any:
        return pt.add(pt.constant(0.0), *[graph.sum() for graph in self.terms])

    @cached_property
    def _total(self) -> Compiled:
        return Compiled([self.eta, *self._inputs], [self._sum], PYTHON)

    @cached_property
    def _slope(self) -> Compiled:
        return Compiled([self.eta, *self._inputs], [gradient(self._sum, self.eta)], PYTHON)

    @cached_property
    def _mean(self) -> Compiled:
        return Compiled([self.eta], [self.mean], PYTHON)


def _refuse(engine: str, reason: str) -> NotThisEngine:
    return NotThisEngine(Refusal(engine, reason))


def regression(model: pm.Model, engine: str) -> Regression:
    """The generalised linear model that a built model is; or else the refusal, in an engine's
    name."""
    with COMPILE:
        eligible(model, engine)
        density = _merged(read(model))
        cut = Cut(density, predictor(density, engine), engine)
        found = family(cut.mean_at, cut.slope)
        if found is None:
            raise _refuse(engine, "'mean_reward': no link that is known: logit, probit or log")
        block = _working(density, cut, engine)
        glm = Regression(block, cut, found, cut.weighted)
        glm.check(_examples(found, density))
        return glm


def _merged(density: Density) -> Density:
    """The same, with what the mean reward and the likelihood have in common as one node."""
    *terms, mean = merged([*(term.graph for term in density.terms), density.mean])
    whole = tuple(replace(t, graph=g) for t, g in zip(density.terms, terms, strict=True))
    return replace(density, terms=whole, mean=mean)


def predictor(density: Density, engine: str) -> Variable:
    """The node of the mean reward's graph by which θ enters it, affine in θ."""
    seeds = dict.fromkeys(density.values.values(), 1.0)
    degrees = Degrees([density.mean], seeds)
    if degrees.of(density.mean) <= 1:
        raise _refuse(engine, "the mean reward is linear, without a link")
    found: list[Variable] = []
    behind = [density.mean]
    while behind:
        v = behind.pop()
        if degrees.of(v) == 0 or v in found:
            continue
        if degrees.of(v) <= 1:
            found.append(v)
        elif v.owner is not None:
            behind.extend(v.owner.inputs)
    nodes = {_below(v) for v in found}
    if len(nodes) != 1:
        raise _refuse(engine, "'mean_reward': no function of one linear predictor")
    [node] = nodes
    if node.type.ndim != 1 or node in seeds:
        raise _refuse(engine, "'mean_reward': its linear predictor is not one number a row")
    return node


def _below(variable: Variable) -> Variable:
    """What an affine node multiplies by numbers alone."""
    while True:
        node = variable.owner
        if node is None or not isinstance(node.op, Elemwise):
            return variable
        rest = [v for v in node.inputs if not _fixed(v)]
        name = type(node.op.scalar_op).__name__
        if name not in UNARY or len(rest) != 1 or rest[0].type.ndim != 1:
            return variable
        variable = rest[0]


def _fixed(variable: Variable) -> bool:
    """Whether a node is computed of constants alone."""
    roots = [v for v in ancestors([variable]) if v.owner is None]
    return all(isinstance(v, Constant) for v in roots)


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
    density = replace(
        density, terms=(*prior, row), mean=node, given_mean=m, inputs=inputs, own=own
    )
    quadratic = Quadratic(density, engine)
    return ExactGaussian(quadratic, recognise(quadratic))


def _examples(family: Family, density: Density) -> Data:
    """Made-up rows of all rewards, with unlike weights."""
    reward = np.repeat(family.rewards, 3)
    weight = np.tile([1.0, 0.3, 2.5], len(family.rewards))
    x, arm = np.ones((len(reward), density.n_features)), np.zeros(len(reward), dtype=np.int64)
    return x, reward, weight, arm
