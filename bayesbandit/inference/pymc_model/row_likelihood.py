"""The log likelihood of new rows under draws, where rows are independent given the variables.

It is what a reward multiplies each draw's weight by. It is in the variables' own space: the draws
stay where they are, so there is no Jacobian.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace, vectorize_graph
from pytensor.graph.traversal import ancestors

from bayesbandit.inference.base import COMPILE, Compiled
from bayesbandit.inference.graph_analysis.density import read, row_dimension
from bayesbandit.inference.graph_analysis.operations import number, operation
from bayesbandit.inference.graph_analysis.quadratic import PYTHON
from bayesbandit.inference.graph_analysis.rewrites import guarded, many
from bayesbandit.inference.graph_analysis.rows import ALONG, CONSTANT, LENGTH, Reach, RowWalk
from bayesbandit.runtime.memory import PIECE

if TYPE_CHECKING:
    import pymc as pm

Draws = Mapping[str, np.ndarray]  # of the free variables by name, (S, *shape)
Data = Mapping[str, np.ndarray]  # x (n, d), reward, weight, arm (n,), by role
LENGTHS = "Subtensor", "Shape_i"  # operations that may give the length of an axis


class RowLikelihood:
    """The log likelihood as a function of draws and rows, compiled when first used.

    refused: why rows are not proved to be independent given the variables; "" if they are. whole:
    whether it has all terms of the likelihood, those that no draw enters too.
    """

    def __init__(self, model: pm.Model) -> None:
        with COMPILE:
            self._density = density = read(model)
            row, dims = row_dimension(model), model.named_vars_to_dims
            by_row = [k for k in density.values if row in (dims.get(k) or ())]
            graphs = [term.graph for term in density.terms if term.on_data]
            seeds = dict.fromkeys(density.inputs.values(), Reach(ALONG, 0))
            rows = RowWalk(graphs, seeds)
            mixed = next((why for g in graphs if (why := rows.mixed(g))), "")
            self.refused = f"{by_row[0]!r} has a value for each row" if by_row else mixed
            self.whole, self._graphs, self._rest = False, list[Variable](), list[Variable]()
            if not self.refused:
                adding = [g for g in graphs if rows.of(g).kind != CONSTANT]
                self._graphs = self._of_each_row(adding, rows)
                self._rest = [term.graph for term in density.terms if term.graph not in set(adding)]
                self.whole = len(self._graphs) == len(graphs)
        self._inputs = [*density.values.values(), *density.inputs.values()]
        self._types = [v.type.dtype for v in self._inputs]

    def _of_each_row(self, adding: Sequence[Variable], rows: RowWalk) -> list[Variable]:
        """Return the terms to which rows add and which draws enter.

        The number of rows is that of the rewards. Lengths that come from draws would be batched,
        and then looped over.
        """
        n = pt.as_tensor(self._density.inputs["reward"]).shape[0]
        swap = {v: m for v in ancestors(adding) if (m := _length(v, n, rows)) is not None}
        return self._drawn(clone_replace(adding, swap, rebuild_strict=False))

    def _drawn(self, graphs: Sequence[Variable]) -> list[Variable]:
        """Return the terms that draws enter, −∞ where a parameter is out of its bounds."""
        free = set(self._density.values.values())
        return [g for g in guarded(list(graphs)) if free & set(ancestors([g]))]

    def __call__(self, draws: Draws, data: Data) -> np.ndarray:
        """Return the log likelihoods (S,) of all rows together, up to one number for all draws; −∞
        instead of NaN.

        It is computed in pieces of `PIECE` draws times rows, between which other threads go on.
        """
        S, n = len(next(iter(draws.values()))), len(data["reward"])
        if S * n <= PIECE:
            return self._sum(self._likelihood, draws, data)
        total = np.zeros(S)
        for i in range(0, n, PIECE):
            rows = {role: v[i : i + PIECE] for role, v in data.items()}
            step = PIECE // len(rows["reward"])
            for s in range(0, S, step):
                part = {k: v[s : s + step] for k, v in draws.items()}
                total[s : s + step] += self._sum(self._likelihood, part, rows)
        return total

    def joint(self, draws: Draws, data: Data) -> np.ndarray:
        """Return the joint log density (S,) of the variables, in their own space, and the rewards,
        up to one number for all draws; −∞ instead of NaN."""
        few = {role: v[:1] for role, v in data.items()}
        return self(draws, data) + self._sum(self._others, draws, few)

    def _sum(self, terms: Compiled, draws: Draws, data: Data) -> np.ndarray:
        density, S = self._density, len(next(iter(draws.values())))
        values = [density.value(k, draws[k]) for k in density.values]
        values += [
            data[role] if role in data else np.ones(len(data["reward"])) for role in density.inputs
        ]
        given = [np.asarray(v, t, order="C") for v, t in zip(values, self._types, strict=True)]
        total = np.zeros(S)
        with np.errstate(all="ignore"):  # a density of 0 is no news
            for term in terms(*given):
                each = term.reshape(S, -1)
                total += each[:, 0] if each.shape[1] == 1 else each.sum(axis=1)
        total[np.isnan(total)] = -np.inf
        return total

    @cached_property
    def _likelihood(self) -> Compiled:
        return self._compiled(self._graphs)

    @cached_property
    def _others(self) -> Compiled:
        """The terms to which rows do not add."""
        with COMPILE:
            return self._compiled(self._drawn(self._rest))

    def _compiled(self, graphs: Sequence[Variable]) -> Compiled:
        with COMPILE:
            draws = many(self._density.values.values())
            batches = vectorize_graph(graphs, draws)
            data = list(self._density.inputs.values())
            return Compiled([*draws.values(), *data], batches, PYTHON, trusted=True)

    def prepare(self, joint: bool = False) -> None:
        """Compile before the first reward, and the joint density if it will be asked for."""
        if not self.refused:
            _ = self._likelihood
            if joint:
                _ = self._others


def _length(v: Variable, n: Variable, rows: RowWalk) -> Variable | None:
    """Return a length in terms of n, the number of rows, or of known shapes; None if it is not the
    length of an axis."""
    length = v.owner is not None and v.type.ndim == 0 and operation(v.owner)[1] in LENGTHS
    of_rows = length and rows.of(v).kind == LENGTH
    return pt.cast(n, v.type.dtype) if of_rows else known_length(v)


def known_length(v: Variable) -> Variable | None:
    """Return the length of an axis as a number; None if the axis's type does not tell it, or if it
    is no such length."""
    if v.owner is None or v.type.ndim or operation(v.owner)[1] not in LENGTHS:
        return None
    array, axis = _axis(v)
    if array is None or axis is None or (known := array.type.shape[axis]) is None:
        return None
    return pt.constant(known, dtype=v.type.dtype)


def _axis(v: Variable) -> tuple[Variable | None, int | None]:
    """Return the array and the axis whose length a variable is."""
    op, name = operation(v.owner)
    if name == "Shape_i":
        return v.owner.inputs[0], op.i
    shape, *index = v.owner.inputs
    if shape.owner is None or operation(shape.owner)[1] != "Shape":
        return None, None
    k = number(index[0]) if index else op.idx_list[0]
    return shape.owner.inputs[0], None if k is None else int(k)
