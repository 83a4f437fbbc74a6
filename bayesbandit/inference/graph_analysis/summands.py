"""The numbers that a term of a log density is a sum of, and the form of each part of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from pytensor.graph.basic import Variable
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.traversal import ancestors
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.elemwise import CAReduce

from bayesbandit.checks import Array
from bayesbandit.inference.base import Compiled
from bayesbandit.inference.graph_analysis.form import (
    Form,
    NoForm,
    RowsTogether,
    Variables,
    together,
)
from bayesbandit.inference.graph_analysis.form_reader import Reader
from bayesbandit.inference.graph_analysis.operations import (
    elementwise_name,
    number,
    operation,
    reduced_by,
)

KEEPS_ELEMENTS = (
    *("DimShuffle", "ExpandDims", "Squeeze", "Reshape", "SpecifyShape", "TensorFromScalar"),
    *("ScalarFromTensor", "ViewOp", "JoinDims", "SplitDims", "Unbroadcast", "Identity", "Alloc"),
)


def summands(graph: Variable, sign: float = 1.0) -> list[tuple[Variable, float]]:
    """Return graphs and factors, whose elements add up to those of a graph: it is without the sums
    and joins that end it."""
    node = graph.owner
    if node is None:
        return [(graph, sign)]
    name = elementwise_name(graph) or operation(node)[1]
    adds = isinstance(node.op, CAReduce) and reduced_by(node) == "Add"
    repeats = name == "Alloc" and node.inputs[0].type.broadcastable != graph.type.broadcastable
    if adds or isinstance(node.op, CheckAndRaise) or (name in KEEPS_ELEMENTS and not repeats):
        return summands(node.inputs[0], sign)
    if name == "Neg":
        return summands(node.inputs[0], -sign)
    if name in ("Join", "MakeVector"):
        arrays = [v for v in node.inputs if name == "MakeVector" or v.type.ndim]  # no axis
        return [part for v in arrays for part in summands(v, sign)]
    # Σ (f + k) = Σ f + a constant, and Σ c f = c Σ f: constants do not count in a log density
    varying = []  # what is not a number
    if name in ("Add", "Sub"):
        varying = [part for part in terms(graph, sign) if not is_finite(part[0])]
    elif name == "Mul" and not graph.type.ndim:
        factor = sign * math.prod(number(v) or 0.0 for v in node.inputs if is_finite(v))
        varying = [(v, factor) for v in node.inputs if not is_finite(v)]
    return summands(*varying[0]) if len(varying) == 1 else [(graph, sign)]


def is_finite(graph: Variable) -> bool:
    """Return whether a graph is a finite number."""
    value = number(graph)
    return value is not None and math.isfinite(value)


def added(graph: Variable, sign: float) -> list[tuple[Variable, float]]:
    """Return the graphs that a graph is a sum of, element by element; none if it is no sum."""
    return [part for v, s in terms(graph, sign) for part in summands(v, s)]


def terms(graph: Variable, sign: float) -> list[tuple[Variable, float]]:
    """Return what is added, with its sign, to make a graph, of whose shape all are, but numbers."""
    name = elementwise_name(graph)
    if name not in ("Add", "Sub"):
        return []
    pairs = [(v, -sign if name == "Sub" and i else sign) for i, v in enumerate(graph.owner.inputs)]
    like = graph.type.broadcastable
    whole = all(v.type.broadcastable == like or number(v) is not None for v, _ in pairs)
    return pairs if whole else []


class Part:
    """A graph as a sum of numbers: a function of variables, by name, and of rows.

    fixed: whether neither data nor variables with a value for each row enter.
    """

    def __init__(
        self,
        graph: Variable,
        sign: float,
        unknown: Mapping[str, Variable],
        inputs: Sequence[Variable],
    ) -> None:
        self.graph = graph
        self.sign = sign
        self.inputs = inputs
        # variables that do not enter need no points: most terms are of two or three
        behind = set(ancestors([graph]))
        self.unknown = {k: v for k, v in unknown.items() if v in behind}
        by_row = any(None in v.type.shape for v in self.unknown.values())
        self.fixed = behind.isdisjoint(inputs) and not by_row
        self._form: Form | None = None
        self._smaller: list[Part] = []

    def form(self, rows: Sequence[Array], variables: Variables) -> Form:
        """Return the form on rows; where there is none, that of what the graph is a sum of.

        It is read once where it is `fixed`.
        """
        # a prior is the same on all rows: it is read once
        if self._form is not None:
            return self._form
        if not self._smaller:
            try:
                form = Reader(self, rows, variables).read()
            except RowsTogether:
                raise
            # a sum may have no form of a few squares where each of its terms has one
            except NoForm:
                graphs = added(self.graph, self.sign)
                self._smaller = parts(graphs, self.unknown, self.inputs)
                if not self._smaller:
                    raise
        if self._smaller:
            forms = [part.form(rows, variables) for part in self._smaller]
            form = together(forms, variables.reals, variables.positives)
        if self.fixed:
            self._form = form
        return form

    @cached_property
    def _compiled(self) -> Compiled:
        # one axis in front, for all the points at which the numbers are asked for at once
        many = {v: v.type.clone(shape=(None, *v.type.shape))(k) for k, v in self.unknown.items()}
        graphs = vectorize_graph([self.graph], many) if many else [self.graph]
        return Compiled([*many.values(), *self.inputs], list(graphs))

    def __call__(self, values: Sequence[Array], rows: Sequence[Array], points: int) -> Array:
        """Return the numbers (S, E) at S points: values (S, *shape) of the unknown."""
        given = [np.asarray(row, v.type.dtype) for v, row in zip(self.inputs, rows, strict=True)]
        with np.errstate(all="ignore"):
            [out] = self._compiled(*values, *given)
        by_point = out.ndim > self.graph.type.ndim
        flat = np.asarray(out, np.float64).reshape(points if by_point else 1, -1) * self.sign
        return np.broadcast_to(flat, (points, flat.shape[1]))


def parts(
    graphs: Sequence[tuple[Variable, float]],
    unknown: Mapping[str, Variable],
    inputs: Sequence[Variable],
) -> list[Part]:
    """Return graphs with their signs as parts; without those that no unknown enters."""
    every = [Part(graph, sign, unknown, inputs) for graph, sign in graphs]
    return [part for part in every if part.unknown]
