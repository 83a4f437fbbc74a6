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
from scipy.sparse import csr_array

from bayesbandit.inference.base import Compiled, NotThisEngine, refuse
from bayesbandit.inference.gaussian_block import GaussianBlock
from bayesbandit.inference.gibbs.layout import Split, split
from bayesbandit.inference.gibbs.walls import Interval, unwalled, within
from bayesbandit.inference.graph_analysis.degrees import Analytic
from bayesbandit.inference.graph_analysis.density import Term
from bayesbandit.inference.graph_analysis.form import (
    Form,
    NoForm,
    Part,
    RowsTogether,
    Squares,
    Variables,
    parts,
    summands,
    together,
)
from bayesbandit.inference.graph_analysis.quadratic import Data, total
from bayesbandit.inference.graph_analysis.row_noise import RowNoise
from bayesbandit.kernels.gibbs import orbits

MEAN = "mean_reward"


class Reading:
    """A density's terms as numbers whose forms can be read.

    block: the real variables, and the mean rewards as a function of them. rest: the positive
    variables. between: the bounds of those that have others than 0 and ∞.
    """

    def __init__(
        self,
        block: GaussianBlock,
        rest: Sequence[str],
        between: Mapping[str, Interval],
    ) -> None:
        self.block = block
        self.density = density = block.density
        self.engine = block.engine
        self.rest = tuple(rest)
        self.reals = tuple(block.slices)
        self.between = dict(between)
        self.last_moves: tuple[tuple[object, ...], orbits.Moves] | None = None
        self._prior: tuple[tuple[int, int], Split] | None = None  # with D and P
        self._whole: dict[Term, list[Part]] = {}
        self._parts = {t: self._numbers(t, summands(t.given_mean)) for t in density.terms}

    @property
    def bounds(self) -> dict[str, Interval]:
        """The bounds of all positive variables."""
        return {k: self.between.get(k, (0.0, math.inf)) for k in self.rest}

    def _numbers(self, term: Term, left: list[tuple[Variable, float]]) -> list[Part]:
        """Return numbers that a term is a sum of, inside their walls, which become bounds; refuse
        them unless they are analytic."""
        density = self.density
        graphs = list[tuple[Variable, float]]()
        positive = {density.values[k]: k for k in self.rest}
        while left:
            whole, sign = left.pop()
            inside, walls = unwalled(whole, positive) if sign > 0.0 else (whole, {})
            if inside is whole:
                graphs.append((whole, sign))
                continue
            left += summands(inside, sign)
            for v, interval in walls.items():
                self.between[positive[v]] = within(interval, self.bounds[positive[v]])
        unknown = {**density.values, MEAN: density.given_mean}
        bounds = {density.values[k]: ends for k, ends in self.bounds.items()}
        seeds = dict.fromkeys(unknown.values(), 1.0)
        analytic = Analytic([g for g, _ in graphs], seeds, list(bounds), bounds)
        for g, _ in graphs:
            if why := analytic.fault(g, most=1):
                raise self.refusal(f"{term.label}: {why}")
        return parts(graphs, unknown, list(density.inputs.values()))

    def refusal(self, reason: str) -> NotThisEngine:
        return refuse(self.engine, reason)

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
        added, and so do the forms in `_fixed`.
        """
        places = {}
        ends = {True: 0, False: 0}
        by_row = {k: None in v.type.shape for k, v in self.density.values.items()}
        for k, shape in sorted(self.shapes(n).items(), key=lambda item: by_row[item[0]]):
            size = math.prod(shape)
            real = k in self.reals
            places[k] = np.arange(ends[real], ends[real] + size).reshape(shape)
            ends[real] += size
        places[MEAN] = np.arange(ends[True], ends[True] + n)
        of_rows = {MEAN, *(k for k, has in by_row.items() if has)}
        return Variables(places, self.bounds, of_rows, ends[True] + n, ends[False])

    def __call__(self, data: Data, variables: Variables, noise: RowNoise | None = None) -> Split:
        """Return the form of the log density of these rows.

        noise: of every row, by which the likelihood is known without being read.
        """
        A, b = self.block.mean_map(data)
        terms = self.density.terms
        if noise is None:
            return split(self._terms(terms, data, variables), A, b)
        size = A.shape[1], variables.positives
        known = self._prior
        if known is None or known[0] != size:  # variables of rows are more with more rows
            prior = self._terms([t for t in terms if not t.on_data], data, variables)
            known = self._prior = size, split(prior.among(*size), A[:0], b[:0])
        return known[1].with_rows(*likelihood(noise, data, variables, A, b))

    def _terms(self, terms: Sequence[Term], data: Data, variables: Variables) -> Form:
        """Return the form of some terms."""
        rows = self.density.arguments(data)
        forms: list[Form] = []
        for term in terms:
            try:
                try:
                    forms += [part.form(rows, variables) for part in self._parts[term]]
                except RowsTogether:  # as a function of θ, not of mean rewards
                    if term not in self._whole:
                        self._whole[term] = self._numbers(term, summands(term.graph))
                    forms += [part.form(rows, variables) for part in self._whole[term]]
            except NoForm as error:
                raise self.refusal(f"{term.label}: {error}") from None
        return together(forms, variables.reals, variables.positives)

    @cached_property
    def log_density(self) -> Compiled:
        """The model's own log density, of all variables and of the data that it has."""
        inputs = [*self.density.values.values(), *self.density.inputs.values()]
        return Compiled(inputs, [total([t.graph for t in self.density.terms])])


def likelihood(
    noise: RowNoise, data: Data, variables: Variables, A: np.ndarray, b: np.ndarray
) -> tuple[Squares[np.ndarray], np.ndarray]:
    """Return the form of rows of such noise: Σ −½ log σ² − weight (A θ + b − reward)² / 2σ²,
    σ² = κ Π v^e; its squares, and α (P,)."""
    assert noise.factor is not None
    _, reward, weight, _ = data
    n = len(reward)
    places = np.array([int(variables.places[k]) for k in noise.powers], np.int64)
    exponents = np.array(list(noise.powers.values()))
    linear = np.zeros(variables.positives)
    linear[places] = -0.5 * n * exponents
    ends = len(places) * np.arange(n + 1)
    powers = csr_array((np.tile(-exponents, n), np.tile(places, n), ends), (n, variables.positives))
    coef = -0.5 / noise.factor * (weight if noise.weighted else np.ones(n))
    return Squares(coef, powers, A, reward - b), linear
