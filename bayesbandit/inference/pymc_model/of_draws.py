"""Graphs of one value of the variables as compiled functions of many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace, vectorize_graph
from pytensor.graph.traversal import ancestors

from bayesbandit.checks import Array
from bayesbandit.inference.base import COMPILE, Compiled
from bayesbandit.inference.draws import Draws, Rows
from bayesbandit.inference.graph_analysis.operations import number, operation

LENGTH_OPERATIONS = "Subtensor", "Shape_i"  # operations that may give the length of an axis


class OfDraws:
    """Graphs of variables, and of rows, as a function of S values of the variables.

    variables: inputs of the graphs by name. rows: inputs by role, of all S values together.
    """

    def __init__(
        self,
        graphs: Sequence[Variable],
        variables: Mapping[str, Variable],
        rows: Mapping[str, Variable] | None = None,
    ) -> None:
        self._names = list(variables)
        self._roles = list(rows or {})
        self._types = [v.type.dtype for v in (*variables.values(), *(rows or {}).values())]
        self._ndim = [g.type.ndim for g in graphs]
        with COMPILE:
            # one axis of S values in front of each variable; rows have none, and are shared by
            # all
            many = {
                v: v.type.clone(shape=(None, *v.type.shape))(v.name) for v in variables.values()
            }
            batches = vectorize_graph(list(graphs), many) if graphs else []
            inputs = [*many.values(), *(rows or {}).values()]
            self._function = Compiled(inputs, batches, trusted=True)

    def __call__(self, draws: Draws, rows: Rows | None = None) -> list[Array]:
        """Return each graph's values, (S, …), or (1, …) where no variable enters. Roles that are
        not given are 1."""
        rows = rows or {}
        values = [draws[name] for name in self._names]
        values += [rows[k] if k in rows else np.ones(len(rows["x"])) for k in self._roles]
        results = self._function(
            *[np.asarray(v, t, order="C") for v, t in zip(values, self._types, strict=True)]
        )
        # a graph that no variable enters has no axis of draws
        pairs = zip(results, self._ndim, strict=True)
        return [value if value.ndim > ndim else value[None] for value, ndim in pairs]


def with_known_lengths(
    graphs: Sequence[Variable], others: Mapping[Variable, Variable] | None = None
) -> list[Variable]:
    """Return graphs in which the lengths that types tell are numbers, and others as given.

    Lengths of draws would be batched, and then looped over.
    """
    lengths = {v: n for v in ancestors(graphs) if (n := _known_length(v)) is not None}
    return list(clone_replace(list(graphs), lengths | dict(others or {}), rebuild_strict=False))


def is_length(v: Variable) -> bool:
    """Return whether a variable may be the length of an axis."""
    return v.owner is not None and v.type.ndim == 0 and operation(v.owner)[1] in LENGTH_OPERATIONS


def _known_length(v: Variable) -> Variable | None:
    """Return the length of an axis as a number; None if the axis's type does not tell it, or if it
    is no such length."""
    if not is_length(v):
        return None
    op, name = operation(v.owner)
    if name == "Shape_i":
        array = v.owner.inputs[0]
        axis = op.i
    else:
        shape, *index = v.owner.inputs
        if shape.owner is None or operation(shape.owner)[1] != "Shape":
            return None
        array = shape.owner.inputs[0]
        axis = number(index[0]) if index else op.idx_list[0]
    length = None if axis is None else array.type.shape[int(axis)]
    return None if length is None else pt.constant(length, dtype=v.type.dtype)
