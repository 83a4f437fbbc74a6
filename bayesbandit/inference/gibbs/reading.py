"""Readings: the terms of a conditionally Gaussian log density, read as sums of squares.

Each term is squares of forms of the real variables, times monomials of the positive ones, and
logarithms and monomials of these (`form`); a term of another form is refused by its name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from scipy.sparse import csr_array

from bayesbandit.checks import Array
from bayesbandit.inference.base import Compiled
from bayesbandit.inference.draws import Rows
from bayesbandit.inference.gaussian_block import GaussianBlock
from bayesbandit.inference.gibbs.layout import Apart, apart
from bayesbandit.inference.graph_analysis.degrees import Analytic
from bayesbandit.inference.graph_analysis.density import Density, Term
from bayesbandit.inference.graph_analysis.form import (
    Form,
    NoForm,
    RowsTogether,
    Squares,
    Variables,
    below,
    together,
)
from bayesbandit.inference.graph_analysis.operations import elementwise_name, number, operands
from bayesbandit.inference.graph_analysis.quadratic import total
from bayesbandit.inference.graph_analysis.row_noise import RowNoise
from bayesbandit.inference.graph_analysis.summands import Part, parts, summands
from bayesbandit.kernels.gibbs import sweeps

MEAN = "mean_reward"


class Reading(GaussianBlock):
    """A Gaussian block with the positive variables that it is given, and the density's terms as
    numbers whose forms can be read.

    rest: the positive variables. bounds: theirs. reals: the variables of the block.
    """

    def __init__(
        self,
        density: Density,
        engine: str,
        bounds: Mapping[str, tuple[float, float]],
    ) -> None:
        self.rest = tuple(bounds)
        super().__init__(density, engine, self.rest)
        self.reals = tuple(self.slices)
        self.bounds = dict(bounds)
        self.last_moves: tuple[tuple[object, ...], sweeps.Moves] | None = None
        self._whole: dict[Term, list[Part]] = {}
        self._prior_form: Apart | None = None
        self._by_term = {t: self._numbers(t, t.given_mean) for t in density.terms}

    def _numbers(self, term: Term, graph: Variable) -> list[Part]:
        """Return numbers that a term is a sum of; refuse it unless it is analytic."""
        density = self.density
        unknown = {**density.values, MEAN: density.mean_input}
        between = {density.values[k]: ends for k, ends in self.bounds.items()}
        seeds = dict.fromkeys(unknown.values(), 1.0)
        analytic = Analytic([graph], seeds, list(between), between)
        if why := analytic.fault(graph, most=1):
            raise self.refusal(f"{term.label}: {why}")
        left = summands(graph)
        graphs = list[tuple[Variable, float]]()
        while left:
            whole, sign = left.pop()
            # a guard is true at all points that are asked for: what it guards is read
            inside = within_bounds(whole, analytic)
            if inside is whole:
                graphs.append((whole, sign))
            else:
                left += summands(inside, sign)
        return parts(graphs, unknown, list(density.inputs.values()))

    def shapes(self, n: int) -> dict[str, tuple[int, ...]]:
        """Return all variables' shapes with n rows."""
        return {
            k: tuple(n if m is None else m for m in v.type.shape)
            for k, v in self.density.values.items()
        }

    def variables(self, n: int) -> Variables:
        """Return where variables are: the places of each one's elements in θ (D,), with mean
        rewards behind it, or in v (P,).

        Variables with a value for each row come last: the others keep their places if rows are
        added, and so do the forms of parts that are read once.
        """
        places = {}
        ends = {True: 0, False: 0}
        by_row = self.density.by_row
        for k, shape in sorted(self.shapes(n).items(), key=lambda item: item[0] in by_row):
            size = math.prod(shape)
            real = k in self.reals
            places[k] = np.arange(ends[real], ends[real] + size).reshape(shape)
            ends[real] += size
        places[MEAN] = np.arange(ends[True], ends[True] + n)
        return Variables(places, self.bounds, {MEAN, *by_row}, ends[True] + n, ends[False])

    def prior(self, data: Rows, variables: Variables, A: Array, b: Array) -> Apart:
        """Return the form of the prior, of rows with the mean rewards A θ + b.

        It is read once where no variable has a value for each row.
        """
        if self._prior_form is not None:
            return self._prior_form
        likelihood = self.density.likelihood
        terms = [term for term in self.density.terms if term not in likelihood]
        prior = apart(self.form(data, variables, terms), A, b)
        if not self.density.by_row:
            self._prior_form = prior
        return prior

    def form(self, data: Rows, variables: Variables, of: Sequence[Term]) -> Form:
        """Return the form of these terms of the log density of these rows."""
        rows = self.density.arguments(data)
        forms: list[Form] = []
        for term in of:
            try:
                try:
                    forms += [part.form(rows, variables) for part in self._by_term[term]]
                except RowsTogether:  # as a function of θ, not of mean rewards
                    if term not in self._whole:
                        self._whole[term] = self._numbers(term, term.graph)
                    forms += [part.form(rows, variables) for part in self._whole[term]]
            except NoForm as error:
                raise self.refusal(f"{term.label}: {error}") from None
        return together(forms, variables.reals, variables.positives)

    @cached_property
    def log_density(self) -> Compiled:
        """The model's own log density, of all variables and of the data that it has."""
        inputs = [*self.density.values.values(), *self.density.inputs.values()]
        return Compiled(inputs, [total([t.graph for t in self.density.terms])])


def within_bounds(graph: Variable, analytic: Analytic) -> Variable:
    """Return a log density without the guard by which it is −∞ beyond the bounds of variables."""
    if elementwise_name(graph) != "Switch":
        return graph
    condition, *branches = operands(graph)
    if analytic.of(condition) or analytic.seeds.keys().isdisjoint(ancestors([condition])):
        return graph
    for value, other in (branches, branches[::-1]):
        whole = value.type.broadcastable == graph.type.broadcastable or number(value) is not None
        if number(other) == -math.inf and whole:
            return value
    return graph


def with_rows(
    prior: Apart, noise: RowNoise, data: Rows, variables: Variables, A: Array, b: Array
) -> Apart:
    """Return the form of a prior with rows of such noise, with mean rewards m = Aθ + b: with
    Σ −½ log σ² − weight (m − reward)² / 2σ², σ² = κ Π v^e."""
    assert noise.factor is not None
    reward = data["reward"]
    n = len(reward)
    # log N(r | m, κ Π v^e / w) = −½ Σ e u − ½ w/κ exp(−e'u) (m − r)² + a constant
    exponents = np.array(list(noise.powers.values()))
    places = np.zeros((n, len(exponents)), np.int64)
    for k, name in enumerate(noise.powers):
        places[:, k] = variables.places[name]
    e = np.tile(exponents, n)
    P = variables.positives
    # each row has −½ log σ², and log σ² = log κ + Σ e u
    linear = prior.linear - np.bincount(places.ravel(), 0.5 * e, P)
    powers = csr_array((-e, places.ravel(), len(exponents) * np.arange(n + 1)), (n, P))
    coef = -0.5 / noise.factor * (data["weight"] if noise.weighted else np.ones(n))
    dense = Squares(
        np.concatenate([prior.dense.coef, coef]),
        below([prior.dense.powers, powers], P),
        np.vstack([prior.dense.forms, A]),
        np.concatenate([prior.dense.offset, reward - b]),
    )
    return prior._replace(dense=dense, linear=linear)
