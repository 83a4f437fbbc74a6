"""A model's graph cut at its linear predictor η, the only node through which θ enters.

PyMC simplifies the log density but not the mean reward. If no node is found that both share, both
are simplified. If the likelihood has only parts of the sum η = c + x'θ, as in
c + x'θ − log(e^(c + x'θ) + α), x'θ is replaced by η − c.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors

from bayesbandit.inference.base import Compiled, refuse
from bayesbandit.inference.graph_analysis.degrees import Analytic, Degrees
from bayesbandit.inference.graph_analysis.density import Density
from bayesbandit.inference.graph_analysis.dependence import depends_on
from bayesbandit.inference.graph_analysis.operations import elementwise_name, operands
from bayesbandit.inference.graph_analysis.quadratic import PYTHON, Data, gradient, total
from bayesbandit.inference.graph_analysis.recognise import DATA_ROW, simplified
from bayesbandit.inference.graph_analysis.rewrites import merged
from bayesbandit.inference.graph_analysis.rows import RowWalk
from bayesbandit.inference.graph_analysis.scaling import Scaling

UNARY = {"Neg", "Mul", "TrueDiv", "Identity"}


class Cut:
    """A mean reward and a likelihood as functions of η (n,), which is `node` + `shift`.

    given: the variables that the likelihood may depend on besides.
    """

    def __init__(
        self,
        density: Density,
        node: Variable,
        engine: str,
        shift: float = 0.0,
        given: Sequence[str] = (),
    ) -> None:
        self.density, self.node = density, pt.add(node, shift) if shift else node
        self.eta = pt.tensor("eta", shape=(None,))
        self.given = {k: density.values[k] for k in given}
        on_data = [term for term in density.terms if term.on_data]
        whole = [density.mean, *(term.graph for term in on_data)]
        at = pt.sub(self.eta, shift) if shift else self.eta
        self.mean, *self.terms = _replaced(whole, node, at, set(density.values.values()))
        self.labels = [term.label for term in on_data]
        self._check(engine)

    def _check(self, engine: str) -> None:
        """Check that rows are apart, that θ enters by η alone, and that all is analytic in it."""
        inputs = self.density.inputs
        rows = RowWalk(
            [self.mean, *self.terms], dict.fromkeys([*inputs.values(), self.eta], DATA_ROW)
        )
        positive = set(self.given.values())
        given = [("'mean_reward'", self.mean, {"eta"}, rows.apart)]
        likely = {"reward", "weight", "eta"}
        given += [
            (label, g, likely, rows.mixed) for label, g in zip(self.labels, self.terms, strict=True)
        ]
        for label, graph, allowed, mixed in given:
            behind = set(ancestors([graph]))
            known = {} if graph is self.mean else self.given
            others = self.density.values.keys() - known.keys()
            more = [f"'{k}'" for k, v in self.density.values.items() if k in others and v in behind]
            more += sorted(depends_on([graph], inputs | {"eta": self.eta}) - allowed)
            if more:
                what = " and ".join(more)
                raise refuse(engine, f"{label}: depends on {what} besides the linear predictor")
            if "weight" in inputs and graph is not self.mean:
                power = Scaling([graph], {inputs["weight"]: 1.0}).degree(graph)
                if power not in (0.0, 1.0):
                    raise refuse(engine, f"{label}: no power of a likelihood by its weight")
            if why := mixed(graph):
                raise refuse(engine, f"{label}: rows are not apart: {why}")
            if why := Analytic([graph], {self.eta: 1.0}, positive).fault(graph, most=1):
                raise refuse(engine, f"{label}: {why}")

    @property
    def weighted(self) -> bool:
        """Whether the likelihood depends on the weights."""
        weight = self.density.inputs.get("weight")
        return weight is not None and weight in set(ancestors(self.terms))

    def total(self, eta: np.ndarray, data: Data, given: Sequence[float] = ()) -> float:
        """Return the log likelihood of rows, given their linear predictors η (n,)."""
        [value] = self._total(eta, *map(np.asarray, given), *self.density.arguments(data))
        return float(value)

    def slope(self, eta: float, reward: float, given: Sequence[float] = ()) -> float:
        """Return the derivative of a row's log likelihood with respect to its η."""
        d = self.density.n_features
        data = np.ones((1, d)), np.array([reward]), np.ones(1), np.zeros(1, dtype=np.int64)
        at = [np.array([eta]), *map(np.asarray, given)]
        [slope] = self._slope(*at, *self.density.arguments(data))
        return float(np.ravel(slope)[0])

    def means(self, eta: np.ndarray) -> np.ndarray:
        """Return the mean rewards at η (n,)."""
        [mean] = self._mean(eta)
        return np.broadcast_to(mean, eta.shape)

    @cached_property
    def _sum(self) -> Variable:
        return total(self.terms)

    @cached_property
    def _total(self) -> Compiled:
        return self._compiled(self._sum)

    @cached_property
    def _slope(self) -> Compiled:
        return self._compiled(gradient(self._sum, self.eta))

    def _compiled(self, graph: Variable) -> Compiled:
        inputs = self.eta, *self.given.values(), *self.density.inputs.values()
        return Compiled(inputs, [graph], PYTHON)

    @cached_property
    def _mean(self) -> Compiled:
        return Compiled([self.eta], [self.mean], PYTHON)


def _replaced(
    graphs: list[Variable], node: Variable, at: Variable, theta: set[Variable]
) -> list[Variable]:
    """Return graphs with η in the place of a node; and where a summand of it that θ enters stands
    elsewhere, η less the others."""
    swap, elsewhere = {node: at}, set(ancestors(graphs, blockers=[node]))
    summands = operands(node) if elementwise_name(node) in ("Add", "Sub") else []
    for k, part in enumerate(summands):
        if part.type != node.type or part not in elsewhere or theta.isdisjoint(ancestors([part])):
            continue
        others = [v for i, v in enumerate(summands) if i != k]
        if elementwise_name(node) == "Add":
            swap[part] = pt.sub(at, pt.add(*others))
        else:
            swap[part] = pt.add(at, others[0]) if k == 0 else pt.sub(others[0], at)
        return simplified(*merged(list(clone_replace(graphs, swap, rebuild_strict=False))))
    return list(clone_replace(graphs, swap, rebuild_strict=False))


def with_shared_nodes(density: Density, simpler: bool) -> Density:
    """Return the same, with what the mean reward and the likelihood have in common as one node;
    both simplified, if that is asked for."""
    on_data = [term for term in density.terms if term.on_data]
    *graphs, mean = merged([*(term.graph for term in on_data), density.mean])
    if simpler:
        *graphs, mean = merged(simplified(*graphs, mean))
    next_graph = iter(graphs)
    terms = tuple(replace(t, graph=next(next_graph)) if t.on_data else t for t in density.terms)
    return replace(density, terms=terms, mean=mean)


def predictor(density: Density, engine: str) -> Variable:
    """Return the linear predictor: the node, affine in θ, that the mean reward is a function of.

    Refuse the engine if the mean reward has no link, if there are several such nodes, or if the
    node is not one number for each row.
    """
    seeds = dict.fromkeys(density.values.values(), 1.0)
    degrees = Degrees([density.mean], seeds)
    if degrees.of(density.mean) <= 1:
        raise refuse(engine, "the mean reward is linear, without a link")
    linear: list[Variable] = []
    behind = [density.mean]
    while behind:
        v = behind.pop()
        if degrees.of(v) == 0 or v in linear:
            continue
        if degrees.of(v) <= 1:
            linear.append(v)
        elif v.owner is not None:
            behind.extend(v.owner.inputs)
    nodes = {_below(v) for v in linear}
    if len(nodes) != 1:
        raise refuse(engine, "'mean_reward': no function of one linear predictor")
    [node] = nodes
    if node.type.ndim != 1 or node in seeds:
        raise refuse(engine, "'mean_reward': its linear predictor is not one number a row")
    return node


def _below(variable: Variable) -> Variable:
    """Return what an affine node multiplies by numbers alone."""
    while elementwise_name(variable) in UNARY:
        rest = [v for v in variable.owner.inputs if not _fixed(v)]
        if len(rest) != 1 or rest[0].type.ndim != 1:
            break
        [variable] = rest
    return variable


def _fixed(variable: Variable) -> bool:
    """Return whether a node is computed of constants alone."""
    roots = [v for v in ancestors([variable]) if v.owner is None]
    return all(isinstance(v, Constant) for v in roots)
