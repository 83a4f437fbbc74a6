"""The log density of a model's variables and rewards, under draws and for other rows.

It is in the variables' own space: the draws stay where they are, so there is no Jacobian.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.traversal import ancestors

from bayesbandit.checks import Array
from bayesbandit.forms import picked
from bayesbandit.inference.base import COMPILE
from bayesbandit.inference.draws import Draws, Rows
from bayesbandit.inference.graph_analysis.density import Density
from bayesbandit.inference.graph_analysis.rewrites import guarded
from bayesbandit.inference.graph_analysis.rows import (
    CONSTANT,
    DATA_ROW,
    LENGTH,
    RowWalk,
)
from bayesbandit.inference.pymc_model.of_draws import (
    OfDraws,
    is_length,
    with_known_lengths,
)
from bayesbandit.runtime.memory import PIECE


class LogDensity:
    """The log likelihood of rows, and the joint log density, each compiled when first used.

    likelihood: the terms to which rows add, by name; the others are the prior's. refused: why rows
    are not proved to be independent given the variables; "" if they are.
    """

    def __init__(self, density: Density) -> None:
        self.density = density
        self._row_axis = {
            k: v.type.shape.index(None) for k, v in density.values.items() if None in v.type.shape
        }
        with COMPILE:
            raw = [term.graph for term in density.terms]
            walk = RowWalk(raw, dict.fromkeys(density.inputs.values(), DATA_ROW))
            by_row = [f"{name!r} has a value for each row" for name in self._row_axis]
            mixed = [why for g in raw if (why := walk.mixed(g))]
            self.refused = next(iter(by_row + mixed), "")
            n = pt.as_tensor(density.inputs["reward"]).shape[0]
            lengths = (v for v in ancestors(raw) if is_length(v) and walk.of(v).kind == LENGTH)
            # the number of rows is taken from the rewards, which have no axis of draws
            of_rows = {v: pt.cast(n, v.type.dtype) for v in lengths}
            graphs = guarded(with_known_lengths(raw, of_rows))
            # a term that no row enters is of the prior, however it was declared
            adds = {term.name: walk.of(term.graph).kind != CONSTANT for term in density.terms}
            named = dict(zip(adds, graphs, strict=True))
            self.likelihood = {name: g for name, g in named.items() if adds[name]}
            self._prior = [g for name, g in named.items() if not adds[name]]

    def __call__(self, draws: Draws, rows: Rows) -> Array:
        """Return the log likelihoods (S,) of all rows together; −∞ instead of NaN.

        It is computed in pieces of `PIECE` draws times rows, between which other threads go on.
        """
        S = len(next(iter(draws.values())))
        n = len(rows["x"])
        if S * n <= PIECE:
            return self._sum(self._likelihood, draws, rows)
        # Σ over rows by pieces, where it is proved to be a sum
        at_once = n if self.refused else PIECE  # rows
        total = np.zeros(S)
        for i in range(0, n, at_once):
            piece = picked(rows, slice(i, i + at_once))
            step = max(1, PIECE // len(piece["x"]))
            for s in range(0, S, step):
                part = picked(draws, slice(s, s + step))
                total[s : s + step] += self._sum(self._likelihood, part, piece)
        return total

    def joint(self, draws: Draws, rows: Rows) -> Array:
        """Return the joint log densities (S,) of the variables and the rewards; −∞ instead of
        NaN."""
        # the prior does not depend on rows: one is enough for the graph's inputs
        few = rows if self.refused else picked(rows, slice(1))
        # log p(θ, r) = log p(r | θ) + log p(θ)
        return self(draws, rows) + self._sum(self._rest, draws, few)

    def of_terms(self, draws: Draws, rows: Rows) -> dict[str, Array]:
        """Return the values of each term of the likelihood under draws, (S, …) or (1, …)."""
        values = self._likelihood(self._values(draws, len(rows["x"])), rows)
        return dict(zip(self.likelihood, values, strict=True))

    def _sum(self, terms: OfDraws, draws: Draws, rows: Rows) -> Array:
        total = np.zeros(len(next(iter(draws.values()))))
        with np.errstate(all="ignore"):  # a density of 0 is no news
            for each in terms(self._values(draws, len(rows["x"])), rows):
                total += each.reshape(len(each), -1).sum(axis=1)
        # ∞ − ∞ of a parameter out of its bounds
        total[np.isnan(total)] = -np.inf
        return total

    def _values(self, draws: Draws, n: int) -> Draws:
        """Return the values of the variables under draws; those of each row are repeated for other
        rows."""
        values = dict(draws)
        for name, axis in self._row_axis.items():
            if (length := values[name].shape[axis + 1]) != n:
                values[name] = np.take(values[name], np.arange(n) % length, axis=axis + 1)
        return values

    @cached_property
    def _likelihood(self) -> OfDraws:
        return OfDraws(list(self.likelihood.values()), self.density.values, self.density.inputs)

    @cached_property
    def _rest(self) -> OfDraws:
        return OfDraws(self._prior, self.density.values, self.density.inputs)

    def failure(self, draws: Draws) -> str:
        """Return how the terms fail on other rows than those of the built model; "" if they do
        not."""
        more = {role: np.concatenate([v, v[-1:]]) for role, v in self.density.own.items()}
        try:
            self.joint(draws, more)
        except (ValueError, TypeError) as error:
            return str(error).strip().splitlines()[0]
        return ""

    def prepare(self) -> None:
        """Compile before the first reward."""
        _ = self._likelihood
