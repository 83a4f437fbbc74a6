"""Proves from the graph that rewards are N(mean reward, σ²/weight) row by row, whatever the rows.

Where every operation on the way from rewards, weights and mean rewards to the log density is
elementwise, a row's part is the same function of its own numbers in any number of rows: so what the
algebra finds for two rows, with rewards and weights as variables, holds for all.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.traversal import ancestors, toposort
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.elemwise import Elemwise

from bayesbandit.inference.algebra.interpreter import Algebra
from bayesbandit.inference.algebra.monomials import Sum, positive, real
from bayesbandit.inference.algebra.terms import Leaves
from bayesbandit.inference.gibbs.generic import Reading
from bayesbandit.inference.gibbs.shrinkage import Monomial
from bayesbandit.inference.graph_analysis.operations import operation

ROWS = 2


def scalar_noise(reading: Reading) -> Monomial | None:
    """σ², or None where rewards are not proved to be such."""
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


def elementwise(reading: Reading, graph: Variable) -> bool:
    """Whether each row's part depends on its own reward, weight and mean reward alone."""
    density = reading.density
    inputs = density.inputs
    depends = {density.given_mean, *(inputs[k] for k in ("reward", "weight") if k in inputs)}
    shapes = depends | {inputs[k] for k in ("x", "arm") if k in inputs}

    def plain(node: Apply) -> bool:
        _, name = operation(node)
        if name in ("Shape", "Shape_i"):
            return True
        if isinstance(node.op, CheckAndRaise):
            return node.inputs[0] not in shapes or node.inputs[0] in depends
        if not depends.isdisjoint(node.inputs[1:]) or node.inputs[0] in depends:
            if not shapes.isdisjoint(set(node.inputs) - depends) and name != "Alloc":
                return False
            return isinstance(node.op, Elemwise) or name in ("DimShuffle", "ExpandDims", "Alloc")
        return name in ("Alloc", "Second")  # of a shape that the rows give

    for node in toposort([graph], blockers=list(shapes)):
        if shapes.isdisjoint(node.inputs):
            continue
        if node.outputs[0].type.dtype == "bool":  # conditions, which the algebra decides
            shapes.update(node.outputs)
            if not depends.isdisjoint(node.inputs):
                depends.update(node.outputs)
            if not (isinstance(node.op, Elemwise) or operation(node)[1] in CONDITIONS):
                return False
            continue
        if not plain(node):
            return False
        shapes.update(node.outputs)
        if not depends.isdisjoint(node.inputs):
            depends.update(node.outputs)
    return True


CONDITIONS = ("All", "MakeVector", "ScalarFromTensor", "DimShuffle", "ExpandDims", "Alloc")


def variance(
    reading: Reading, found: Any, D: int, P: int, places: dict[str, np.ndarray], weighted: bool
) -> Monomial | None:
    """σ² where `found` is Σ ½ log(w/σ²) − w(r − m)²/2σ² and a constant, for all rows."""
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
