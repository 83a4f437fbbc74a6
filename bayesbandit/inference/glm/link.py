"""The link and the likelihood of a declaration, read from its log density: rewards of a likelihood
p(r | η) by name, and a linear predictor η = A(x, arm) θ + b.

θ enters the mean reward by one node η that is affine in it (`degrees`), and the likelihood
through the same node. The likelihood is one of each row alone (`rows`), of its η, reward and weight
(`dependence`), and analytic in η: it is the family's if it is at some points, which is settled on
the user's own rows whenever these are fitted.

The *working model* is the same with rows N(η, 1/weight) in the place of the likelihood, and η for
its mean reward: what is known of linear-Gaussian models holds for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from bayesbandit.inference.base import NotThisEngine, refuse
from bayesbandit.inference.glm.cut import Cut, predictor, with_shared_nodes
from bayesbandit.inference.glm.families import Family, family
from bayesbandit.inference.graph_analysis.density import Density, Term
from bayesbandit.inference.graph_analysis.quadratic import Data
from bayesbandit.kernels.glm import dispersion
from bayesbandit.kernels.glm.families import NEGATIVE_BINOMIAL

POINTS, AROUND = 8, 5.0  # at which a likelihood is compared with the family's, and how far η goes
TOLERANCE = 1e-7  # of a log likelihood, relative: PyTensor has √2 in single precision
NEAR = 1e-5  # of one at a posterior's own η, absolute, a row
FAR = 0.01  # of one where 1 − p is next to nothing, relative
LINKS = 241  # points at which a mean reward is compared with the family's
TOGETHER = 16  # rewards that are compared at once
ALPHAS = (0.013, 0.71, 2.9, 23.0)  # dispersions at which a likelihood is compared, if it is learned
FAR_ALPHAS = tuple(np.logspace(-5.7, 5.3, 12))
UNKNOWN = "'mean_reward': no link that is known: logit, probit or log"


class Link:
    """A likelihood of a family that is known by name, of one linear predictor, as a model has it.

    cut: the model's. weighted: whether a row's log likelihood is multiplied by its weight. engine:
    in whose name rows are refused that are not the family's.
    """

    def __init__(self, cut: Cut, family: Family, engine: str) -> None:
        self.cut, self.family, self.engine, self.weighted = cut, family, engine, cut.weighted
        self._tested: set[float] = set()

    def weights(self, data: Data) -> np.ndarray:
        """Return the powers (n,) of rows' likelihoods."""
        return data[2] if self.weighted else np.ones(len(data[0]))

    def impossible(self, reward: float) -> NotThisEngine:
        """Return the refusal of a reward that the family has no probability for."""
        reason = f"a reward of {reward:g} is none of a {self.family.name} likelihood"
        return refuse(self.engine, reason, of_rows=True)

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
        weight = self.weights(data)
        here, there = (
            (self.family.total(at, data[1], weight), self.cut.total(at, data))
            for at in (eta, np.zeros(len(eta)))
        )
        return difference(here, there, len(eta))

    def _unlike(self, gap: float) -> NotThisEngine:
        name = self.family.name
        reason = f"on these rows the likelihood is not {name}, as its mean suggests: by {gap:.2g}"
        return refuse(self.engine, reason, of_rows=True)

    def check_examples(self) -> None:
        """Run the identity test on made-up rows of all rewards."""
        self.check(data := _examples(self.family, self.cut.density))
        gap, size = self._gap(data, np.linspace(-AROUND, AROUND, len(data[0])))
        if not gap <= TOLERANCE * size:
            raise self._unlike(gap)


class Dispersed(Link):
    """A negative binomial likelihood whose dispersion α = e^shift v^power is learned.

    name: of v, a positive variable.
    """

    def __init__(self, cut: Cut, engine: str) -> None:
        self.name, at, means = next(iter(cut.given)), (0.71, 2.9), cut.means(np.array([0.0, 1.0]))
        found = [family(means, partial(cut.slope, given=(v,))) for v in at]
        if any(known is None or known.kind != NEGATIVE_BINOMIAL for known in found):
            raise refuse(engine, f"'{self.name}' is no dispersion of a negative binomial reward")
        logs = np.log([known.number for known in found if known])
        self.power = round(float((logs[1] - logs[0]) / np.log(at[1] / at[0])), 9)
        self.shift = float(logs[0] - self.power * np.log(at[0]))
        super().__init__(cut, Family(NEGATIVE_BINOMIAL, np.nan), engine)

    def alpha(self, v: np.ndarray) -> np.ndarray:
        """Return the dispersions α that belong to values of v."""
        return np.asarray(np.exp(self.shift) * v**self.power)

    def _gap(
        self, data: Data, eta: np.ndarray, alphas: Sequence[float] = ALPHAS
    ) -> tuple[float, float]:
        """Return the largest of the gaps between η and α, and 0 and 1."""
        there = self._totals(data, np.zeros(len(eta)), 1.0)
        gaps = [difference(self._totals(data, eta, a), there, len(eta)) for a in alphas]
        return max(gaps, key=lambda gap: gap[0] / max(gap[1], 1.0))

    def _totals(self, data: Data, eta: np.ndarray, alpha: float) -> tuple[float, float]:
        """Return the log likelihoods of rows, ours and the model's."""
        v = np.exp((np.log(alpha) - self.shift) / self.power)
        counts = dispersion.counted(data[1], self.weights(data))
        ours = dispersion.log_likelihood(np.log(alpha), np.exp(eta), counts)
        return ours + float((self.weights(data) * data[1]) @ eta), self.cut.total(eta, data, (v,))

    def check_alphas(self, data: Data, eta: np.ndarray, alphas: Sequence[float]) -> None:
        """Run the identity test for rows together at their η (n,) and at these α."""
        gap, size = self._gap(data, eta, alphas)
        if not gap <= TOLERANCE * size + NEAR * len(eta):
            raise self._unlike(gap)

    def check_examples(self) -> None:
        super().check_examples()
        data = _examples(self.family, self.cut.density)
        self.check_alphas(data, np.linspace(-AROUND, AROUND, len(data[0])), FAR_ALPHAS)


def difference(
    here: tuple[float, float], there: tuple[float, float], n: int
) -> tuple[float, float]:
    """Return by how much two log likelihoods of n rows, here and there, do not change alike; and
    of what size they are."""
    size = sum(abs(v) for v in (*here, *there)) + n
    apart = abs((here[1] - there[1]) - (here[0] - there[0]))
    return (apart, size) if np.isfinite(size) else (np.inf, 0.0)


def link(density: Density, engine: str, given: Sequence[str] = ()) -> Link:
    """Return a density's likelihood, if it is a family's of one linear predictor; or else the
    refusal.

    given: the one positive variable that its dispersion is learned by, if there is one.
    """
    try:
        return _link(with_shared_nodes(density, simpler=False), engine, given)
    except NotThisEngine as error:
        try:
            return _link(with_shared_nodes(density, simpler=True), engine, given)
        except NotThisEngine:
            raise error from None


def _link(density: Density, engine: str, given: Sequence[str]) -> Link:
    node = predictor(density, engine)
    cut = Cut(density, node, engine, given=given)
    at_0, at_1 = cut.means(np.array([0.0, 1.0])).tolist()
    if at_0 > 0.0 and at_0 != 1.0 and np.isclose(at_1, np.e * at_0, rtol=1e-12):
        cut = Cut(density, node, engine, np.log(at_0), given)  # at_0 e^η
    made = Dispersed(cut, engine) if given else _known(cut, engine)
    links = np.linspace(*made.family.ends, LINKS)
    if not np.allclose(cut.means(links), made.family.mean(links), 1e-5, 1e-9):
        raise refuse(engine, UNKNOWN)
    made.check_examples()
    return made


def _known(cut: Cut, engine: str) -> Link:
    known = family(cut.means(np.array([0.0, 1.0])), cut.slope)
    if known is None:
        raise refuse(engine, UNKNOWN)
    return Link(cut, known, engine)


def working(cut: Cut) -> Density:
    """Return the density of the working model: rows N(η, 1/weight)."""
    density = cut.density
    inputs, data = dict(density.inputs), dict(density.own)
    if "weight" not in inputs:
        inputs["weight"] = pt.tensor("weight", shape=(None,))
        data["weight"] = np.ones(len(data["x"]))
    m, node = pt.tensor("m", shape=(None,)), cut.node
    reward, weight = map(pt.as_tensor_variable, (inputs["reward"], inputs["weight"]))

    def normal(eta: Variable) -> Variable:
        return -0.5 * weight * (reward - eta) ** 2

    prior = tuple(term for term in density.terms if not term.on_data)
    row = Term("working", "the likelihood", normal(node), normal(m), on_data=True)
    return replace(density, terms=(*prior, row), mean=node, given_mean=m, inputs=inputs, own=data)


def _examples(family: Family, density: Density) -> Data:
    """Return made-up rows of all rewards, with unlike weights."""
    reward = np.repeat(family.rewards, 3)
    weight = np.tile([1.0, 0.3, 2.5], len(family.rewards))
    x, arm = np.ones((len(reward), density.n_features)), np.zeros(len(reward), dtype=np.int64)
    return x, reward, weight, arm
