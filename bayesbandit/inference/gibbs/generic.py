"""Conditionally Gaussian models swept in compiled code, as they are on the rows at hand.

Each term of the log density is read as squares of forms of the real variables, times monomials of
the positive ones, and logarithms and monomials of these (`form`); a term of another form is
refused by its name. It is laid out for the kernel, with the joint moves that make it mix.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from pytensor.graph.basic import Variable
from scipy.sparse import csr_array

from bayesbandit.inference.base import Compiled, NotThisEngine, check_start, improper, refuse
from bayesbandit.inference.exact.gaussian import GaussianBlock
from bayesbandit.inference.gibbs.layout import Dense, Layout, Split, layout, split
from bayesbandit.inference.gibbs.moves import loses_digits, moves
from bayesbandit.inference.gibbs.walls import Interval, unwalled, within
from bayesbandit.inference.graph_analysis.degrees import Analytic
from bayesbandit.inference.graph_analysis.density import Term
from bayesbandit.inference.graph_analysis.form import (
    Form,
    NoForm,
    Part,
    Products,
    Reader,
    RowsTogether,
    Variables,
    added,
    summands,
    together,
)
from bayesbandit.inference.graph_analysis.quadratic import Data, total
from bayesbandit.inference.graph_analysis.row_noise import RowNoise
from bayesbandit.kernels.gibbs import monomials as kernel
from bayesbandit.kernels.gibbs import orbits

Sweep = Callable[..., int]  # `orbits.sweep` of some terms, which are not among its arguments

RELATIVE_TOLERANCE = 1e-8  # relative to the terms that a log density is a sum of
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
        quadratic = block.quadratic
        density = block.quadratic.density
        self.block, self.density, self.engine = block, density, quadratic.engine
        self.rest, self.reals = tuple(rest), quadratic.names
        self.between = dict(between)
        self.last_moves: tuple[tuple[object, ...], orbits.Moves] | None = None
        self._prior: tuple[tuple[int, int], Split] | None = None  # with D and P
        self._fixed: dict[Part, Form] = {}  # the forms of parts that no row enters
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
        inputs = list(density.inputs.values())
        parts = [Part(g, sign, unknown, inputs) for g, sign in graphs]
        return [part for part in parts if part.unknown]

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
        forms = [Form.empty(variables.reals, variables.positives)]
        for term in terms:
            try:
                try:
                    forms += self._forms(term, self._parts[term], rows, variables)
                except RowsTogether:  # as a function of θ, not of mean rewards
                    if term not in self._whole:
                        self._whole[term] = self._numbers(term, summands(term.graph))
                    forms += self._forms(term, self._whole[term], rows, variables)
            except NoForm as error:
                raise self.refusal(f"{term.label}: {error}") from None
        return together(forms)

    def _forms(
        self, term: Term, parts: list[Part], rows: Sequence[np.ndarray], variables: Variables
    ) -> list[Form]:
        """Return the forms of parts; those that have none are replaced by what they are sums of."""
        forms: list[Form] = []
        for part in list(parts):
            try:
                forms.append(self._form(part, rows, variables))
            except NoForm as error:
                smaller = self._numbers(term, added(part.graph, part.sign))
                if not smaller or isinstance(error, RowsTogether):
                    raise
                forms += self._forms(term, smaller, rows, variables)
                # another thread may have done so
                parts[:] = [one for p in parts for one in (smaller if p is part else [p])]
        return forms

    def _form(self, part: Part, rows: Sequence[np.ndarray], variables: Variables) -> Form:
        """Return the form of a part; those that no row enters are read once."""
        if part not in self._fixed:
            form = Reader(part, rows, variables).read()
            if not part.fixed:
                return form
            self._fixed[part] = form
        return self._fixed[part].among(variables.reals, variables.positives)

    @cached_property
    def log_density(self) -> Compiled:
        """The model's own log density, of all variables and of the data that it has."""
        inputs = [*self.density.values.values(), *self.density.inputs.values()]
        return Compiled(inputs, [total([t.graph for t in self.density.terms])])


def likelihood(
    noise: RowNoise, data: Data, variables: Variables, A: np.ndarray, b: np.ndarray
) -> tuple[Dense, np.ndarray]:
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
    return Dense(Products(coef, powers), A, reward - b), linear


@dataclass(frozen=True)
class Problem:
    """A reading laid out for rows at hand.

    owner (P,): the number in `reading.rest` of each element's variable. places: of the elements of
    all variables. size: P.
    """

    reading: Reading
    data: Data
    layout: Layout
    owner: np.ndarray
    places: Mapping[str, np.ndarray]
    size: int

    @cached_property
    def moves(self) -> orbits.Moves:
        """The joint moves that make it mix, the same ones for layouts that are alike."""
        matrices = self.layout.powers, self.layout.sparse.forms
        alike = (
            loses_digits(self.layout),
            *(v.tobytes() for m in matrices for v in (m.data, m.indices, m.indptr)),
        )
        last = self.reading.last_moves
        if last is not None and last[0] == alike:
            return last[1]
        found = moves(self.layout, self.owner)
        self.reading.last_moves = alike, found
        return found

    def flat(self, state: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return θ (D,) and u = log v (P,) of a state."""
        theta = np.zeros(self.layout.dim)
        u = np.zeros(self.size)
        for k, where in self.places.items():
            if k in self.reading.reals:
                theta[where] = state[k]
            else:
                u[where] = np.log(state[k])
        return theta, u

    def named(self, theta: np.ndarray, u: np.ndarray) -> dict[str, np.ndarray]:
        """Return the state of θ and u."""
        return {
            k: theta[where] if k in self.reading.reals else np.exp(u[where])
            for k, where in self.places.items()
        }

    def inside(self, u: np.ndarray) -> np.ndarray:
        """Return u, where v outside its bounds is moved to their middle, or to low + 1."""
        low, high = np.exp(self.layout.terms.low), np.exp(self.layout.terms.high)
        middle = np.where(high < np.inf, 0.5 * (low + np.minimum(high, 1e300)), low + 1.0)
        v = np.exp(u)
        return np.asarray(np.log(np.where((v > low) & (v < high), v, middle)))

    def natural(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return precision (D, D) and shift (D,) of δ given u."""
        D = self.layout.dim
        work = kernel.workspace(self.layout.terms, self.layout.dim)
        kernel.weigh(self.layout.terms, u, work.phi)
        kernel.precision(self.layout.terms, D, work)
        upper = np.triu(work.A[:D, :D])
        return upper + np.triu(upper, 1).T, work.A[:D, len(work.A)].copy()

    def sample(
        self,
        state: Mapping[str, np.ndarray],
        draws: int,
        tune: int,
        rng: np.random.Generator,
        names: Sequence[str],
        sweep: Sweep | None = None,
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Return a chain of these variables (draws, *shape), and where it ends.

        sweep: of terms that get new draws before each sweep; None: of those of the layout.
        """
        layout = self.layout
        D = self.layout.dim
        if layout.unbounded >= 0:
            reason = "improper: means fit rewards exactly, and nothing keeps the noise from 0"
            raise improper(self.reading.engine, f"{self._label(layout.unbounded)}: {reason}")
        theta, u = self.flat(state)
        held = kernel.MonomialState(theta - layout.centre, self.inside(u))
        work = kernel.workspace(layout.terms, D)
        ours = [k for k in names if k in self.reading.rest]
        none = np.zeros(0, dtype=np.int64)
        kept = np.concatenate([none, *(self.places[k].ravel() for k in ours)])
        delta = np.empty((draws, D))
        logs = np.empty((draws, len(kept)))
        sweep = sweep or partial(orbits.sweep, layout.terms)
        wrong = sweep(self.moves, held, work, delta, logs, kept, tune, rng)
        if wrong >= 0:
            self._improper(wrong)
        if not np.isfinite(held.delta).all():
            raise FloatingPointError("the sampler has lost its digits: are the data finite?")
        if self._loses_digits(held.delta + layout.centre, held.u):
            reason = "means fit rewards to all their digits, and the noise is below these"
            raise improper(self.reading.engine, reason)
        theta = delta + layout.centre
        out = {}
        at = 0
        positive = np.exp(logs)
        for k in names:
            where = self.places[k]
            if k in self.reading.reals:
                out[k] = theta[:, where.ravel()].reshape(draws, *where.shape)
            else:
                out[k] = positive[:, at : at + where.size].reshape(draws, *where.shape)
                at += where.size
        return out, self.named(held.delta + layout.centre, held.u)

    def _improper(self, wrong: int) -> None:
        reason = f"{self._label(wrong)}: improper given the other variables"
        raise improper(self.reading.engine, reason)

    def _loses_digits(self, theta: np.ndarray, u: np.ndarray) -> bool:
        """Return whether rows have noise below the rounding of their means, or noise half-way to
        the limits of u, and are more than their contexts' rank.

        Noise of a posterior without a proper one goes there, as for rewards that means fit exactly.
        """
        at_limit = np.abs(u) >= 0.5 * kernel.MAX_ABS_LOG_SCALE
        lost = abs(self.layout.dense.by.powers) @ at_limit > 0.0
        lost |= self.layout.rounding(theta, u) > 1.0
        if not lost.any():
            return False
        return bool(lost.sum() > np.linalg.matrix_rank(self.layout.dense.forms[lost]))

    def _label(self, element: int) -> str:
        """Return the variable that an element belongs to."""
        name = next(
            k for k, where in self.places.items() if k in self.reading.rest and element in where
        )
        return self.reading.density.label(name)

    def check(
        self, state: Mapping[str, np.ndarray], rng: np.random.Generator, points: int = 3
    ) -> None:
        """Run the identity test: refuse the rows unless the model's log density differs from the
        layout's by a constant, at `points` places about a state."""
        theta, u = self.flat(state)
        rows = self.reading.density.arguments(self.data)
        gaps = []
        largest = 1.0
        for k in range(points):
            if k:
                theta = theta + 0.1 * (1.0 + np.abs(theta)) * rng.standard_normal(theta.shape)
                u = self.inside(u + 0.3 * rng.standard_normal(u.shape))
            values = self.named(theta, u)
            ordered = [values[name] for name in self.reading.density.values]
            [model] = self.reading.log_density(*ordered, *rows)
            check_start(self.reading.engine, model)
            ours = self.layout.log_density(theta, u)
            gaps.append(float(model) - ours)
            largest = max(largest, abs(float(model)), abs(ours))
        if not np.ptp(gaps) <= RELATIVE_TOLERANCE * largest:
            off = f"{np.ptp(gaps):.3g}"
            reason = f"the log density differs from the sampler's on these rows, by {off}"
            raise refuse(self.reading.engine, reason, of_rows=True)


def problem(reading: Reading, data: Data, noise: RowNoise | None = None) -> Problem:
    """Return the density of these rows, laid out; refuse rows whose terms have another form.

    noise: of every row, where that is known.
    """
    variables = reading.variables(len(data[0]))
    form = reading(data, variables, noise)
    P = variables.positives
    places = {k: v for k, v in variables.places.items() if k != MEAN}
    low = np.zeros(P)
    high = np.full(P, np.inf)
    owner = np.zeros(P, dtype=np.int64)
    for k, name in enumerate(reading.rest):
        low[places[name]], high[places[name]] = reading.bounds[name]
        owner[places[name]] = k
    whole = layout(form, low, high)
    return Problem(reading, data, whole, owner, places, P)
