"""Proves from the graph that rewards are N(mean reward, σ²/weight) row by row, whatever the rows.

Where every operation on the way from rewards, weights and mean rewards to the log density is
elementwise, a row's part is the same function of its own numbers in any number of rows: so what the
algebra finds for two rows, with rewards and weights as variables, holds for all.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.elemwise import Elemwise

from bayesbandit.inference.algebra.interpreter import Algebra
from bayesbandit.inference.algebra.monomials import Leaves, Sum, positive, real
from bayesbandit.inference.gibbs.generic import Reading
from bayesbandit.inference.gibbs.shrinkage import Monomial
from bayesbandit.inference.graph_analysis.operations import kind, operation
from bayesbandit.inference.graph_analysis.walk import Walk

ROWS = 2


def scalar_noise(reading: Reading) -> Monomial | None:
    """Return σ², or None where rewards are not proved to be such."""
    terms = [t for t in reading.density.terms if t.on_data]
    inputs = reading.density.inputs
    if len(terms) != 1 or not elementwise(reading, terms[0].given_mean):
        return None
    places, D, P = reading.places(ROWS)
    values: dict[Any, Any] = {
        v: (real if k in reading.block else positive)(places[k])
        for k, v in reading.density.values.items()
    }
    rows = np.arange(ROWS)
    values[reading.density.given_mean] = real(D + rows)
    values[inputs["reward"]] = real(D + ROWS + rows)
    if "weight" in inputs:
        values[inputs["weight"]] = positive(P + rows)
    for role in ("x", "arm"):
        if role in inputs:
            v = inputs[role]
            values[v] = np.zeros((ROWS, *v.type.shape[1:]), dtype=v.type.dtype)
    try:
        [found] = Algebra([terms[0].given_mean], list(values))(values)
    except (Leaves, ValueError, IndexError):
        return None
    weighted = reading.density.inputs.get("weight") in set(ancestors([terms[0].given_mean]))
    return variance(reading, found, D, P, places, weighted)


class RowByRow(Walk[int]):
    """What each node has of the rows: 0 nothing, 1 their number, or 2 rewards, weights and mean
    rewards. proved: whether each row's part depends on its own alone."""

    def __init__(self, outputs: Sequence[Variable], seeds: Mapping[Variable, int]) -> None:
        super().__init__(outputs, seeds)
        self.proved = True
        self.walk(self.nodes, self.values)

    def root(self, variable: Variable) -> int:
        return 0

    def visit(self, node: Apply, given: Sequence[int]) -> Sequence[int]:
        found = max(given, default=0)
        if found:
            self.proved &= self.rule(node, given)
        return [found] * len(node.outputs)

    def rule(self, node: Apply, given: Sequence[int]) -> bool:
        name = operation(node)[1]
        if node.outputs[0].type.dtype == "bool":  # conditions, which the algebra decides
            return isinstance(node.op, Elemwise) or name in CONDITIONS
        if kind(node) == "shape":
            return True
        if kind(node) == "check":
            return given[0] != 1
        if max(given) == 1:
            return name in ("Alloc", "Second")  # of a shape that the rows give
        if 1 in given and name != "Alloc":
            return False
        return isinstance(node.op, Elemwise) or name in ("DimShuffle", "ExpandDims", "Alloc")


def elementwise(reading: Reading, graph: Variable) -> bool:
    """Return whether each row's part depends on its own reward, weight and mean reward alone."""
    inputs = reading.density.inputs
    seeds = {v: 2 if role in ("reward", "weight") else 1 for role, v in inputs.items()}
    return RowByRow([graph], {reading.density.given_mean: 2, **seeds}).proved


CONDITIONS = ("All", "MakeVector", "ScalarFromTensor", "DimShuffle", "ExpandDims", "Alloc")


def variance(
    reading: Reading, found: Any, D: int, P: int, places: dict[str, np.ndarray], weighted: bool
) -> Monomial | None:
    """Return σ² where `found` is Σ ½ log(w/σ²) − w(r − m)²/2σ² and a constant, for all rows."""
    if not isinstance(found, Sum) or found.walls or found.shape != (ROWS,):
        return None
    squares = [t for t in found.terms if t.square is not None]
    if len(squares) != 1 or any(t.real is not None for t in found.terms):
        return None
    [t] = squares
    form, rows = t.square, np.arange(ROWS)
    assert form is not None
    if len(t.coef) != 1 or form.offset.any() or form.coef.shape[0] != 2:
        return None
    order = np.argsort(form.real[:, 0, 0])
    mean, reward = form.real[order, 0]
    slopes = form.coef[order, 0]
    if not (np.array_equal(mean, D + rows) and np.array_equal(reward, D + ROWS + rows)):
        return None
    constant = (slopes[0] == slopes[0, 0]).all() and (slopes[1] == -slopes[0]).all()
    if not constant or not slopes.all() or (t.coef >= 0.0).any():
        return None
    powers: dict[str, float] = {}
    weights = 0.0
    for i, e in t.powers:
        if np.array_equal(i[0], P + rows):
            weights += e
            continue
        name = next(k for k in reading.rest if i[0, 0] in places[k])
        if places[name].size != 1 or name in powers:
            return None
        powers[name] = -e
    if weights != (1.0 if weighted else 0.0) or (t.coef != t.coef[0, 0]).any():
        return None
    logs: dict[int, float] = {}
    for other in found.terms:
        if (other.powers and other.square is None) or len(other.logs) > 1:
            return None
        for i, c in itertools.product(other.logs, other.coef):
            if not ((i[0] == P + rows).all() or (i[0] == i[0, 0]).all()):
                return None
            if (c != c[0]).any():
                return None
            key = P if (i[0] == P + rows).all() else int(i[0, 0])
            logs[key] = logs.get(key, 0.0) + float(c[0])
    wanted = {int(places[k].ravel()[0]): -0.5 * e for k, e in powers.items()}
    if weighted:
        wanted[P] = 0.5
    if {k: round(v, 12) for k, v in logs.items() if v} != wanted:
        return None
    return Monomial(-0.5 / float(t.coef[0, 0] * slopes[0, 0] ** 2), powers)
