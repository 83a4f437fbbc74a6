"""A log density that is affine in v, log v and log(1 − v), for one variable v in (0, upper).

The seeds are three independent inputs: v, ℓ = log v and ℓ₁ = log(1 − v). They replace v, log v and
log(1 − v) in the graph. A log density of degree 1 in them together (`degrees`) is

    log p = c + s v + α ℓ + β ℓ₁

in any notation, with coefficients that depend on the rows. It is a beta density if s = 0, a gamma
density if β = 0. Comparisons such as v ≥ 0, which guard the support, are constants on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from pytensor.tensor.variable import TensorVariable

from bayesbandit.inference.base import Compiled
from bayesbandit.inference.graph_analysis.degrees import Degrees
from bayesbandit.inference.graph_analysis.operations import (
    COMPARISONS,
    bare,
    elementwise_name,
    number,
    operands,
)
from bayesbandit.inference.graph_analysis.quadratic import PYTHON, Additive, gradient
from bayesbandit.inference.pymc_model.bounds import Bounds, Interval, between

POWERS = {"Mul", "TrueDiv", "Reciprocal", "Neg", "Identity"}


@dataclass(frozen=True)
class Coefficients(Additive):
    """The numbers of c + s v + α log v + β log(1 − v)."""

    constant: float
    slope: float
    log: float
    log1m: float


class Exponents:
    """Log densities as functions of the three seeds and of rows.

    value: v (). upper: the upper bound of v. seeds: v, ℓ and ℓ₁. graphs: the densities as graphs of
    the seeds.
    """

    def __init__(self, graphs: Sequence[Variable], value: Variable, upper: float) -> None:
        self.value, self.upper, name = value, upper, value.name
        self.seeds = value, pt.dscalar(f"log {name}"), pt.dscalar(f"log(1 − {name})")
        nodes = list(ancestors(list(graphs)))
        logs = {v: seed for v in nodes if (seed := self._logarithm(v)) is not None}
        bounds = Bounds(list(graphs), {value: inside(upper)} | {v: logarithms(v) for v in logs})
        known: dict[Variable, Variable] = {}
        for v in nodes:
            if elementwise_name(v) in COMPARISONS and (truth := bounds.truth(v)) is not None:
                known[v] = pt.constant(np.full((1,) * v.type.ndim, truth))
            elif v in logs:
                known[v] = logs[v].dimshuffle(["x"] * v.type.ndim)
            elif (parts := self._parts(v)) is not None:
                known[v] = parts
        replaced = clone_replace(list(graphs), known, rebuild_strict=False) if known else graphs
        self.graphs: list[Variable] = list(replaced)
        self._degrees = Degrees(self.graphs, dict.fromkeys(self.seeds, 1.0))

    def fault(self, graph: Variable) -> str | None:
        """Return why one of the graphs is not affine in the seeds (v, ℓ, ℓ₁); None if it is."""
        return self._degrees.fault(graph, most=1)

    def slopes(self, graph: Variable) -> list[Variable]:
        """Return s, α and β of the sum of one of the graphs, as graphs of the rows alone."""
        zero = dict.fromkeys(self.seeds, pt.constant(0.0))
        slopes = [gradient(pt.sum(graph), seed) for seed in self.seeds]
        replaced = clone_replace(slopes, zero, rebuild_strict=False)
        return list(replaced)

    def compiled(self, inputs: Sequence[Variable], graphs: Sequence[Variable]) -> Compiled:
        """Return a function of rows: c, s, α and β of the sum of each graph, four outputs each."""
        zero = dict.fromkeys(self.seeds, pt.constant(0.0))
        outputs = []
        for graph in graphs:
            constant = clone_replace([graph], zero, rebuild_strict=False)
            outputs += [*constant, *self.slopes(graph)]
        return Compiled(list(inputs), outputs, PYTHON)

    def _logarithm(self, v: Variable) -> TensorVariable | None:
        """Return the seed that a node is: log v, or log(1 − v) as either is written."""
        name = elementwise_name(v)
        if name not in ("Log", "Log1p"):
            return None
        inside = bare(v.owner.inputs[0])
        if name == "Log" and inside is self.value:
            return self.seeds[1]
        if self.upper != 1.0:  # of a rate above 1 there is no log(1 − v)
            return None
        negative = name == "Log1p" and elementwise_name(inside) == "Neg"
        if negative and self._is_less_from_one(bare(operands(inside)[0])):  # log(1 − (1 − v))
            return self.seeds[1]
        rest = self._is_less_from_one(inside) if name == "Log" else self._is_less(inside)
        return self.seeds[2] if rest else None

    def _parts(self, v: Variable) -> Variable | None:
        """Return log(r vᵉ) as log r + e log v, r/v⁻¹ and 1/(v⁻¹/r) as r v, and a comparison of r vᵉ
        with 0, or of its logarithm with −∞, as that of r; None of anything else. v is positive."""
        name = elementwise_name(v)
        if name == "Log":
            e, r = self._monomial(operands(v)[0]) or (0.0, v)
            log_v = self.seeds[1].dimshuffle(["x"] * v.type.ndim)
            return pt.add(pt.log(r), e * log_v) if e else None
        if name in ("TrueDiv", "Reciprocal"):
            e, r = self._monomial(v) or (0.0, v)
            value = pt.as_tensor_variable(self.value).dimshuffle(["x"] * v.type.ndim)
            return pt.mul(r, value) if e == 1.0 else None
        return self._of_rest(v) if name in COMPARISONS else None

    def _of_rest(self, v: Variable) -> Variable | None:
        """Return a comparison of r vᵉ with 0, or of log(r vᵉ) with −∞, as that of r."""
        rest, bounded = [], False
        bound = {number(u) for u in operands(v)} & {0.0, -math.inf}
        for u in operands(v):
            log = -math.inf in bound and elementwise_name(u) == "Log"
            e, r = self._monomial(operands(u)[0] if log else u) or (math.nan, u)
            bounded |= e != 0.0
            if math.isnan(e):
                return None
            rest.append(pt.log(r) if log else r)
        return v.owner.op(*rest) if bound and bounded else None

    def _monomial(self, v: Variable) -> tuple[float, Variable] | None:
        """Return e and r of a node that is r vᵉ, r free of v; None of another."""
        if bare(v) is self.value:
            return 1.0, pt.constant(np.ones((1,) * v.type.ndim))
        if self.value not in ancestors([v]):
            return 0.0, v
        name, parts = elementwise_name(v), [self._monomial(u) for u in operands(v)]
        e, r = [p[0] for p in parts if p], [p[1] for p in parts if p]
        if name not in POWERS or len(e) < len(parts):
            return None
        if name == "Mul":
            return sum(e), pt.mul(*r)
        if name in ("TrueDiv", "Reciprocal"):
            return (
                (e[0] - e[1], pt.true_div(*r))
                if name == "TrueDiv"
                else (-e[0], pt.reciprocal(r[0]))
            )
        return e[0], pt.neg(r[0]) if name == "Neg" else r[0]

    def _is_less(self, v: Variable) -> bool:
        """Return whether a node is −v."""
        return elementwise_name(v) == "Neg" and bare(operands(v)[0]) is self.value

    def _is_less_from_one(self, v: Variable) -> bool:
        """Return whether a node is 1 − v."""
        name = elementwise_name(v)
        if name not in ("Sub", "Add") or len(operands(v)) != 2:
            return False
        one, rest = operands(v)
        inner = bare(rest) is self.value if name == "Sub" else self._is_less(bare(rest))
        return inner and number(one) == 1.0


def inside(upper: float) -> Interval:
    """Return the numbers of float64 that lie in (0, upper)."""
    return between((), "float64", np.nextafter(0.0, 1.0), np.nextafter(upper, 0.0))


def logarithms(v: Variable) -> Interval:
    """Return the bounds of a logarithm of a variable or of its rest: all finite numbers."""
    most = np.finfo(np.float64).max
    return between((1,) * v.type.ndim, "float64", -most, most)


def read_coefficients(compiled: Compiled, rows: Sequence[np.ndarray]) -> list[Coefficients]:
    """Return those of each density that was compiled, at these rows."""
    values = [float(v) for v in compiled(*rows)]
    return [Coefficients(*values[i : i + 4]) for i in range(0, len(values), 4)]


def possible(graphs: Sequence[Variable]) -> list[Variable]:
    """Return some graphs where they are finite: of a switch between a density and −∞, the
    density."""
    graphs = list(graphs)
    while True:
        swap = {}
        for v in ancestors(graphs):
            inputs = operands(v)
            if elementwise_name(v) == "Switch" and (kept := _finite(inputs)) is not None:
                swap[v] = pt.second(v, kept) if kept.type.ndim != v.type.ndim else kept
                break
        if not swap:
            return graphs
        replaced = clone_replace(graphs, swap, rebuild_strict=False)
        graphs = list(replaced)


def _finite(inputs: Sequence[Variable]) -> Variable | None:
    """Return the branch of a switch beside one that is −∞, or the one that a known condition
    takes."""
    condition, yes, no = inputs
    if (known := number(condition)) is not None:
        return yes if known else no
    if number(yes) == -math.inf:
        return no
    return yes if number(no) == -math.inf else None
