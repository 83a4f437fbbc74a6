"""Problems: a reading laid out for rows at hand, which compiled kernels sweep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from bayesbandit.checks import Array
from bayesbandit.inference.base import check_start, improper
from bayesbandit.inference.draws import Draws, Rows
from bayesbandit.inference.gibbs.layout import Layout, apart, layout
from bayesbandit.inference.gibbs.moves import loses_digits, moves
from bayesbandit.inference.gibbs.reading import MEAN, Reading, with_rows
from bayesbandit.inference.graph_analysis.row_noise import RowNoise
from bayesbandit.kernels.gibbs import conditionals, sweeps
from bayesbandit.runtime.interrupts import interrupts_held_back

Sweep = Callable[..., int]  # `sweeps.sweep` of some terms, which are not among its arguments

RELATIVE_TOLERANCE = 1e-8  # relative to the terms that a log density is a sum of


@dataclass(frozen=True)
class Problem:
    """A reading laid out for the kernel, with the rows at hand.

    owner (P,): the number in `reading.rest` of each element's variable. places: of the elements of
    all variables. size: P.
    """

    reading: Reading
    data: Rows
    layout: Layout
    owner: Array
    places: Mapping[str, Array]
    size: int

    @cached_property
    def moves(self) -> sweeps.Moves:
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

    def flat(self, state: Draws) -> tuple[Array, Array]:
        """Return θ (D,) and u = log v (P,) of a state."""
        theta = np.zeros(self.layout.dim)
        u = np.zeros(self.size)
        for k, where in self.places.items():
            if k in self.reading.reals:
                theta[where] = state[k]
            else:
                u[where] = np.log(state[k])
        return theta, u

    def named(self, theta: Array, u: Array) -> dict[str, Array]:
        """Return the state of θ and u."""
        return {
            k: theta[where] if k in self.reading.reals else np.exp(u[where])
            for k, where in self.places.items()
        }

    def inside(self, u: Array) -> Array:
        """Return u, where v outside its bounds is moved to their middle, or to low + 1."""
        low = np.exp(self.layout.terms.low)
        high = np.exp(self.layout.terms.high)
        # an earlier state may be of another prior, whose bounds were wider
        middle = np.where(high < np.inf, 0.5 * (low + np.minimum(high, 1e300)), low + 1.0)
        v = np.exp(u)
        return np.asarray(np.log(np.where((v > low) & (v < high), v, middle)))

    def natural(self, u: Array) -> tuple[Array, Array]:
        """Return precision (D, D) and shift (D,) of δ given u."""
        D = self.layout.dim
        # log p = Σ φ (f'δ − o)² + … = −½ δ'Aδ + δ'b + …: A = −2 Σ φ ff' and b = −2 Σ φ o f
        work = conditionals.workspace(self.layout.terms, self.layout.dim)
        conditionals.weigh(self.layout.terms, u, work.phi)
        conditionals.precision(self.layout.terms, D, work)
        # the kernel fills the upper triangle, and the shift behind the padding
        upper = np.triu(work.A[:D, :D])
        return upper + np.triu(upper, 1).T, work.A[:D, len(work.A)].copy()

    def sample(
        self,
        state: Draws,
        draws: int,
        tune: int,
        rng: np.random.Generator,
        names: Sequence[str],
        sweep: Sweep | None = None,
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """Return a chain of these variables (draws, *shape), and where it ends.

        sweep: of terms that get new draws before each sweep; None: of those of the layout.
        """
        layout = self.layout
        D = self.layout.dim
        if layout.unbounded >= 0:
            reason = "improper: means fit rewards exactly, and nothing keeps the noise from 0"
            raise improper(self.reading.engine, f"{self._label(layout.unbounded)}: {reason}")
        theta, u = self.flat(state)
        # δ = θ − centre, so that rewards of 1e9 leave the digits of their differences
        held = conditionals.MonomialState(theta - layout.centre, self.inside(u))
        work = conditionals.workspace(layout.terms, D)
        ours = [k for k in names if k in self.reading.rest]
        none = np.zeros(0, dtype=np.int64)
        kept = np.concatenate([none, *(self.places[k].ravel() for k in ours)])
        delta = np.empty((draws, D))
        logs = np.empty((draws, len(kept)))
        sweep = sweep or partial(sweeps.sweep, layout.terms)
        with interrupts_held_back():
            wrong = sweep(self.moves, held, work, delta, logs, kept, tune, rng)
        if wrong >= 0:
            reason = f"{self._label(wrong)}: improper given the other variables"
            raise improper(self.reading.engine, reason)
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

    def _loses_digits(self, theta: Array, u: Array) -> bool:
        """Return whether rows have noise below the rounding of their means, or noise half-way to
        the limits of u, and are more than their contexts' rank.

        Noise of a posterior without a proper one goes there, as for rewards that means fit exactly.
        """
        # e^±u: a scale whose square is beyond floats, or near it
        at_limit = np.abs(u) >= 0.5 * conditionals.MAX_ABS_LOG_SCALE
        lost = abs(self.layout.dense.powers) @ at_limit > 0.0
        # or a row whose form is rounded by more than an sd of its noise
        lost |= self.layout.rounding(theta, u) > 1.0
        if not lost.any():
            return False
        # as many rows as their rank can always be fitted; one more, and noise of 0 is what the
        # data say
        return bool(lost.sum() > np.linalg.matrix_rank(self.layout.dense.forms[lost]))

    def _label(self, element: int) -> str:
        """Return the variable that an element belongs to."""
        name = next(
            k for k, where in self.places.items() if k in self.reading.rest and element in where
        )
        return self.reading.density.label(name)

    def check(self, state: Draws, rng: np.random.Generator, points: int = 3) -> None:
        """Run the identity test: refuse the rows unless the model's log density differs from the
        layout's by a constant, at `points` places about a state."""
        theta, u = self.flat(state)
        rows = self.reading.density.arguments(self.data)
        gaps = []
        largest = 1.0
        for k in range(points):
            if k:
                # the first place is the state itself, and others are steps of a tenth from there:
                # where draws are
                theta = theta + 0.1 * (1.0 + np.abs(theta)) * rng.standard_normal(theta.shape)
                u = self.inside(u + 0.3 * rng.standard_normal(u.shape))
            values = self.named(theta, u)
            ordered = [values[name] for name in self.reading.density.values]
            [model] = self.reading.log_density(*ordered, *rows)
            check_start(self.reading.engine, model)
            ours = self.layout.log_density(theta, u)
            # both are log densities of the same θ and v, one with constants: a difference that
            # moves is another model
            gaps.append(float(model) - ours)
            largest = max(largest, abs(float(model)), abs(ours))
        if not np.ptp(gaps) <= RELATIVE_TOLERANCE * largest:
            off = f"{np.ptp(gaps):.3g}"
            reason = f"the log density differs from the sampler's on these rows, by {off}"
            raise self.reading.refusal(reason, of_rows=True)


def lay_out(reading: Reading, data: Rows, noise: RowNoise | None = None) -> Problem:
    """Return the density of these rows, laid out; refuse rows whose terms have another form.

    noise: of every row, where that is known: the likelihood is then not read.
    """
    variables = reading.variables(len(data["x"]))
    A, b = reading.mean_map(data)
    if noise is None:
        form = apart(reading.form(data, variables, reading.density.terms), A, b)
    else:
        form = with_rows(reading.prior(data, variables, A, b), noise, data, variables, A, b)
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
