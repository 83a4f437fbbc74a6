"""The Gibbs engine for conditionally Gaussian models, derived from the declaration.

One block is Gaussian given the rest, by the degree of the log density (`gaussian_block`). Each
other variable is positive, and the log density a sum of monomials of these, alone or times squares
of what is Gaussian: it is analytic, and its values at the rows at hand are such a sum's (`form`).
Laplace, Student-t, half-Cauchy and the like are mixtures of such (`rewrite_mixtures`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_solve

from bayesbandit.checks import Array
from bayesbandit.inference.base import NotThisEngine, matching
from bayesbandit.inference.draws import Rows, SampledDraws
from bayesbandit.inference.exact.distributions import factor
from bayesbandit.inference.gaussian_block import GaussianBlock
from bayesbandit.inference.gibbs.blocks import (
    ENGINE,
    Blocks,
    blocks,
    without_mean,
)
from bayesbandit.inference.gibbs.problem import Problem, Sweep, lay_out
from bayesbandit.inference.gibbs.reading import Reading
from bayesbandit.inference.gibbs.rewrite_products import Draws
from bayesbandit.inference.graph_analysis.degrees import depends_on
from bayesbandit.inference.graph_analysis.row_noise import RowNoise, positive
from bayesbandit.kernels.gibbs import conditionals, sweeps
from bayesbandit.runtime.interrupts import interrupts_held_back
from bayesbandit.runtime.one_thread import one_thread

if TYPE_CHECKING:
    import pymc as pm

# sweeps before the draws, of a random start and of an earlier state
BURN_IN_SWEEPS = 500
RESUMED_BURN_IN = 50
TESTED_ROWS_KEY = "rows tested"  # in a state: how many there were when the identity was tested
SWEEPS_TO_COMPARE = 5  # two beginnings of a chain
BETTER_BY = 50.0  # and ten sds of a log density, where the other beginning is taken

Position = dict[str, Array]  # where a chain stands: all variables, auxiliary ones too


def better(problem: Problem, state: Mapping[str, Array]) -> Mapping[str, Array]:
    """Return the state from which a chain should begin: this one, or one near another mode.

    A sweep draws the Gaussian block first. The other state is reached from this one by a few sweeps
    after the positive variables were drawn first. It is returned if the log density there is so
    much larger that a chain which begins here would not find it.
    """
    theta, u = problem.flat(state)
    ends = []
    for positive_first in (False, True):
        held = conditionals.MonomialState(theta - problem.layout.centre, problem.inside(u))
        rng = np.random.default_rng(0)
        with interrupts_held_back():
            ends.append((_after(problem, held, positive_first, rng), held))
    (here, _), (there, held) = ends
    # the log density of a draw of k normals, −½χ²_k, has an sd of √(k/2)
    if np.isfinite(there) and there > here + BETTER_BY + 10.0 * np.sqrt(len(theta) + len(u)):
        return problem.named(held.delta + problem.layout.centre, held.u)
    return state


def _after(
    problem: Problem,
    held: conditionals.MonomialState,
    positive_first: bool,
    rng: np.random.Generator,
) -> float:
    """Run a few sweeps on `held`; return the log density of log v then, with the Gaussian block
    integrated out, −∞ if one fails.

    The density of both together has no bound where a scale goes to 0 with what it is the scale of:
    few draws are there.
    """
    # p(u) = ∫ p(δ, u) dδ: the density of the positive variables is bounded where the joint one is
    # not
    terms = problem.layout.terms
    D = problem.layout.dim
    work = conditionals.workspace(terms, D)
    none = np.zeros(0, dtype=np.int64)
    if positive_first:
        conditionals.weigh(terms, held.u, work.phi)
        conditionals.evaluate(terms, held.delta, work)
        if conditionals.draw_elements(terms, held.u, work, rng) >= 0:
            return -np.inf
    delta = np.empty((1, D))
    logs = np.empty((1, 0))
    fixed = terms, problem.moves, held, work, delta, logs, none
    if sweeps.sweep(*fixed, SWEEPS_TO_COMPARE, rng) >= 0:
        return -np.inf
    # ∫ exp(−½ δ'Λδ + η'δ) dδ ∝ |Λ|^−½ exp(½ η'Λ⁻¹η)
    precision, shift = problem.natural(held.u)
    L = factor(precision)
    if isinstance(L, int):  # singular to rounding
        return -np.inf
    mean = cho_solve((L, True), shift)
    at_mean = problem.layout.log_density(mean + problem.layout.centre, held.u)
    # ∫ exp of a quadratic: its value at the mean, times |Λ|^(−½); Σu, for the density of log v
    return float(at_mean + held.u.sum() - np.log(np.diag(L)).sum())


class Gibbs(Reading):
    """A model whose Gaussian block and positive variables are drawn in turn.

    names: the declared variables. reals: those that are Gaussian given the rest.
    auxiliary: for each variable that was mixed over, the declared one that it belongs to; it is not
    in `names`, nor in the draws. by_row: variables with a value for each row. affine: whether mean
    rewards are affine in the block; if not, the density is without them. noise: the variance of
    every row, if that is proved; the likelihood is then laid out without reading the density.
    divided: makes draws those of the declared variables, of a model that was rewritten without
    products.
    """

    def __init__(self, apart: Blocks, affine: bool = True) -> None:
        super().__init__(apart.density, ENGINE, apart.positive)
        self._affine = affine
        self.auxiliary = dict(apart.auxiliary)
        self.by_row = self.density.by_row
        self.noise: RowNoise | None = None
        self.divided: Callable[[Draws], Draws] | None = None
        values = self.density.values
        self.names = tuple(k for k in values if k not in self.auxiliary)
        self.all_shapes = {k: tuple(v.type.shape) for k, v in values.items()}

    @property
    def affine(self) -> bool:
        """Whether mean rewards are affine in the declared variables of the block."""
        return self._affine and self.divided is None

    def sample(
        self,
        data: Rows,
        draws: int = 1000,
        chains: int = 4,
        tune: int | None = None,
        seed: int = 0,
        start: Sequence[Position] | None = None,
    ) -> SampledDraws:
        """Return draws of the declared variables given rows x (n, d), reward, weight, arm (n,), by
        role.

        start: states, such as `SampledDraws.state` of an earlier run on these or on other rows,
        whose number of chains may differ; without it, random ones. Rows on which the log density is
        not what the sampler takes it for are refused.
        """
        rows = self.data(**data)
        if tune is None:
            tune = self.burn_in if start is None else RESUMED_BURN_IN
        n = len(rows["x"])
        tested = int(start[0].get(TESTED_ROWS_KEY, 0)) if start else 0
        kept: list[Position] = []
        last: list[Position] = []
        with one_thread():
            whole, sweep = self.target(rows)
            for i, stream in enumerate(np.random.SeedSequence(seed).spawn(chains)):
                rng = np.random.default_rng(stream)
                state = self.resumed(start[i % len(start)], n) if start else self.start(n, rng)
                state = self.beginning(whole, state, cold=not start)
                values, state = whole.sample(state, draws, tune, rng, self.names, sweep)
                kept.append(values)
                last.append(state)
            # rows that come may have another form than the model's own: the test costs a log
            # density, at n = 1, 2, 4, …
            if not (tested and (self.proved or tested <= n < 2 * tested)):
                self.check(whole, rows, last[0])
                tested = n
        for state in last:
            state[TESTED_ROWS_KEY] = np.array(tested)
        drawn = {k: np.stack([v[k] for v in kept]) for k in self.names}
        return SampledDraws(self.divided(drawn) if self.divided else drawn, state=last)

    @property
    def proved(self) -> bool:
        """Whether the form of all rows is known, so that the first ones are tested alone."""
        return self.noise is not None

    @property
    def burn_in(self) -> int:
        """How many sweeps there are before the draws of chains that begin anywhere."""
        return BURN_IN_SWEEPS

    def target(self, rows: Rows) -> tuple[Problem, Sweep | None]:
        """Return the log density of these rows, laid out, and how it is swept, if not as it is."""
        return lay_out(self, rows, self.noise), None

    def beginning(self, whole: Problem, state: Position, cold: bool) -> Position:
        """Return the starting state of a chain: this one, or a better one; refuse a density that
        has no Gaussian block there."""
        if self.by_row or cold:
            state = dict(better(whole, state))
        self.solve(*whole.natural(whole.inside(whole.flat(state)[1])))  # or raise
        return state

    def check(self, whole: Problem, rows: Rows, state: Position) -> None:
        """Run the identity test on these rows, about a state."""
        whole.check(state, np.random.default_rng(0))

    def start(self, n: int, rng: np.random.Generator) -> Position:
        """Return where a chain of n rows may begin: positive variables about 1, the block at 0."""
        return {
            k: np.zeros(shape) if k in self.reals else np.exp(0.5 * rng.standard_normal(shape))
            for k, shape in self.shapes(n).items()
        }

    def resumed(self, state: Position, n: int) -> Position:
        """Return a copy of a state for n rows: variables of rows that were not there begin at 1."""
        state = {k: np.array(state[k], dtype=np.float64) for k in self.all_shapes}
        for k in self.by_row:
            value = state[k]
            state[k] = np.ones(n)
            state[k][: min(n, len(value))] = value[:n]
        return state


def check_own_rows(reading: Reading) -> None:
    """Refuse a model whose own rows have another form.

    If they do, rows with positive rewards take their place, as a log-normal
    likelihood has no rewards of 0, or rows with rewards between 0 and 1.
    """
    own = reading.density.own
    other = own | positive(reading.density, len(own["x"]))
    shares = other | {"reward": other["reward"] / (1.0 + other["reward"])}
    refused: NotThisEngine | None = None
    for rows in (own, other, shares):
        try:
            lay_out(reading, reading.data(**rows))
            return
        except NotThisEngine as error:
            refused = refused or error
    assert refused is not None
    raise NotThisEngine(replace(refused.refusal, of_rows=True)) from refused


@matching
def match(model: pm.Model) -> Gibbs:
    """Return the Gibbs engine of a built model of a Gaussian block and positive variables."""
    apart = blocks(model)
    density = apart.density
    block = GaussianBlock(density, ENGINE, tuple(apart.positive))
    scales = {k: density.values[k] for k in apart.positive}
    affine = not (block.not_affine or depends_on([density.mean], scales))
    if not affine:
        apart = replace(apart, density=without_mean(density))
    engine = Gibbs(apart, affine)
    check_own_rows(engine)
    if affine and engine.row_noise.normal and engine.row_noise.factor is not None:
        engine.noise = engine.row_noise
    return engine
