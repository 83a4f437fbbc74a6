"""Conditionally Gaussian models swept in compiled code, as proved on the rows at hand.

The log density is computed in the algebra of `monomials` (`Reading`): what comes out is a sum of
monomials of positive variables, alone or times squares of forms of the real ones, or a refusal that
names the operation. It is laid out for the kernel, with the joint moves that make it mix.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from bayesbandit.inference.algebra.branches import Value, lifted
from bayesbandit.inference.algebra.interpreter import Algebra
from bayesbandit.inference.algebra.monomials import Leaves, Sum, positive, real
from bayesbandit.inference.base import Compiled, NotThisEngine, check_start, improper, refuse
from bayesbandit.inference.gibbs.layout import Layout, layout
from bayesbandit.inference.gibbs.moves import moves
from bayesbandit.inference.graph_analysis.density import Density
from bayesbandit.inference.graph_analysis.quadratic import PYTHON, Data, total
from bayesbandit.kernels.gibbs import monomials as kernel
from bayesbandit.kernels.gibbs import orbits

Sweep = Callable[..., int]  # `orbits.sweep` of some terms, which are not among its arguments

SAME = 1e-8  # relative to the terms that a log density is a sum of


class Reading:
    """A density's graphs in the algebra.

    block: the real variables. rest: the positive ones. between: the bounds of those that have
    others than 0 and ∞.
    """

    def __init__(
        self,
        density: Density,
        rest: Sequence[str],
        engine: str,
        between: Mapping[str, tuple[float, float]] | None = None,
    ) -> None:
        self.density, self.engine, self.between = density, engine, dict(between or {})
        self.rest = tuple(rest)
        self.block = tuple(k for k in density.values if k not in rest)
        self.names = [t.label for t in density.terms] + ["'mean_reward'"]
        inputs = density.inputs
        unknown = [*density.values.values(), density.given_mean]
        self._each: list[Algebra] = []
        self._fixed: dict[int, Sum] = {}  # those of `_fixable` that are known
        for graph, name in zip(self.graphs, self.names, strict=True):
            try:
                self._each.append(Algebra([graph], [*unknown, *inputs.values()]))
            except Leaves as error:
                raise self.refusal(f"{name}: {error}") from None

    @cached_property
    def _fixable(self) -> set[int]:
        """Terms that no row enters."""
        rows = {*self.density.inputs.values(), self.density.given_mean}
        rows |= {v for v in self.density.values.values() if None in v.type.shape}
        return {k for k, g in enumerate(self.graphs) if rows.isdisjoint(ancestors([g]))}

    @property
    def fixed_but_for_rows(self) -> bool:
        """Whether no row enters a term that is not a likelihood."""
        terms = enumerate(self.density.terms)
        return all(k in self._fixable for k, term in terms if not term.on_data)

    @property
    def graphs(self) -> list[Variable]:
        return [t.given_mean for t in self.density.terms] + [self.density.mean]

    def refusal(self, reason: str) -> NotThisEngine:
        return refuse(self.engine, reason)

    def shapes(self, n: int) -> dict[str, tuple[int, ...]]:
        """Return all variables' shapes with n rows."""
        return {
            k: tuple(n if m is None else m for m in v.type.shape)
            for k, v in self.density.values.items()
        }

    def places(self, n: int) -> tuple[dict[str, np.ndarray], int, int]:
        """Return the places of each variable's elements in θ (D,) or in v (P,), and D and P.

        Variables with a value for each row come last: the others keep their places if rows are
        added, and so do the terms in `_fixed`.
        """
        places, ends = {}, {True: 0, False: 0}
        by_row = {k: None in v.type.shape for k, v in self.density.values.items()}
        for k, shape in sorted(self.shapes(n).items(), key=lambda item: by_row[item[0]]):
            size, block = int(np.prod(shape)), k in self.block
            places[k] = np.arange(ends[block], ends[block] + size).reshape(shape)
            ends[block] += size
        return places, ends[True], ends[False]

    def __call__(self, data: Data) -> tuple[list[Sum], np.ndarray, np.ndarray]:
        """Return every term of the log density as a sum of monomials, where mean rewards A θ + b
        are reals behind θ; A (n, D), b (n,)."""
        n = len(data[0])
        places, D, P = self.places(n)
        values: dict[Variable, Value] = {
            v: (real if k in self.block else positive)(places[k])
            for k, v in self.density.values.items()
        }
        values[self.density.given_mean] = real(np.arange(D, D + n))
        inputs, sums = self.density.inputs, []
        for v, rows in zip(inputs.values(), self.density.arguments(data), strict=True):
            values[v] = np.asarray(rows, dtype=v.type.dtype)
        apart = values | {inputs["reward"]: real(D + n + np.arange(n))}
        if "weight" in inputs:
            apart[inputs["weight"]] = positive(P + np.arange(n))
        for k, (each, name) in enumerate(zip(self._each, self.names, strict=True)):
            if k in self._fixed:
                sums.append(self._fixed[k])
                continue
            try:
                [value] = each(apart if each is self._each[-1] else values)
                sums.append(lifted(value))
                if k in self._fixable:
                    self._fixed[k] = sums[-1]
            except Leaves as error:
                raise self.refusal(f"{name}: {error}") from None
            except (ValueError, IndexError) as error:
                raise self.refusal(f"{name}: {str(error).splitlines()[0]}") from None
        *sums, mean = sums
        return sums, *self._affine(mean, n, D, P)

    def _affine(self, mean: Sum, n: int, D: int, P: int) -> tuple[np.ndarray, np.ndarray]:
        A, b = np.zeros((n, D)), np.zeros(n)
        row = np.arange(n)
        for t in mean.broadcast((n,)).terms:
            if any((i >= P).any() for i, _ in t.powers) or (
                t.real is not None and t.real.max() >= D
            ):
                raise self.refusal("'mean_reward': depends on the rewards or their weights")
            if t.powers or t.logs or t.square is not None:
                raise self.refusal("'mean_reward': not affine in the Gaussian variables")
            if t.real is None:
                b += t.coef.sum(axis=0)
            else:
                np.add.at(A, (np.broadcast_to(row, t.coef.shape), t.real), t.coef)
        return A, b

    @cached_property
    def log_density(self) -> Compiled:
        """The model's own log density, of all variables and of the data that it has."""
        inputs = [*self.density.values.values(), *self.density.inputs.values()]
        return Compiled(inputs, [total([t.graph for t in self.density.terms])], PYTHON)


@dataclass(frozen=True)
class Noise:
    """The variance of every row, factor · Π v^e, divided by its weight if `weighted`."""

    factor: float
    powers: Mapping[str, float]
    weighted: bool


@dataclass(frozen=True)
class Problem:
    """A reading laid out for rows at hand.

    owner (P,): the number in `reading.rest` of each element's variable. places: of all variables,
    as `Reading.places` returns them. size: P. like: a problem with the same moves.
    """

    reading: Reading
    data: Data
    layout: Layout
    owner: np.ndarray
    places: Mapping[str, np.ndarray]
    size: int
    like: Problem | None = None

    @cached_property
    def moves(self) -> orbits.Moves:
        """The joint moves that make it mix."""
        return moves(self.layout, self.owner) if self.like is None else self.like.moves

    @property
    def of_rows_alone(self) -> bool:
        """Whether rows enter by one group, which has nothing else."""
        return len(self.layout.dense.offsets) == len(self.data[1]) and (
            len(self.layout.terms.groups) == 1 and self.reading.fixed_but_for_rows
        )

    def on_rows(self, data: Data, A: np.ndarray, b: np.ndarray, noise: Noise) -> Problem:
        """Return the problem of other rows of mean rewards A θ + b and such noise."""
        _, reward, weight, _ = data
        linear = self.layout.terms.linear.copy()
        for k, e in noise.powers.items():  # each row has −½ log σ²
            linear[self.places[k]] -= 0.5 * e * (len(reward) - len(self.data[1]))
        coef = -0.5 / noise.factor * (weight if noise.weighted else np.ones(len(reward)))
        layout = self.layout.on_rows(A, reward - b, coef, linear)
        return replace(self, data=data, layout=layout, like=self if noise.powers else None)

    def flat(self, state: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return θ (D,) and u = log v (P,) of a state."""
        theta, u = np.zeros(self.layout.dim), np.zeros(self.size)
        for k, where in self.places.items():
            if k in self.reading.block:
                theta[where] = state[k]
            else:
                u[where] = np.log(state[k])
        return theta, u

    def named(self, theta: np.ndarray, u: np.ndarray) -> dict[str, np.ndarray]:
        """Return the state of θ and u."""
        return {
            k: theta[where] if k in self.reading.block else np.exp(u[where])
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
        D, work = self.layout.dim, kernel.workspace(self.layout.terms, self.layout.dim)
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
        layout, D = self.layout, self.layout.dim
        theta, u = self.flat(state)
        held = kernel.MonomialState(theta - layout.centre, self.inside(u))
        work = kernel.workspace(layout.terms, D)
        ours = [k for k in names if k in self.reading.rest]
        none = np.zeros(0, dtype=np.int64)
        kept = np.concatenate([none, *(self.places[k].ravel() for k in ours)])
        delta, logs = np.empty((draws, D)), np.empty((draws, len(kept)))
        sweep = sweep or partial(orbits.sweep, layout.terms)
        wrong = sweep(self.moves, held, work, delta, logs, kept, tune, rng)
        if wrong >= 0:
            self._improper(wrong)
        if not np.isfinite(held.delta).all():
            raise FloatingPointError("the sampler has lost its digits: are the data finite?")
        if self._loses_digits(held.delta + layout.centre, held.u):
            reason = "means fit rewards to all their digits, and the noise is below these"
            raise improper(self.reading.engine, reason)
        theta, out, at = delta + layout.centre, {}, 0
        positive = np.exp(logs)
        for k in names:
            where = self.places[k]
            if k in self.reading.block:
                out[k] = theta[:, where.ravel()].reshape(draws, *where.shape)
            else:
                out[k] = positive[:, at : at + where.size].reshape(draws, *where.shape)
                at += where.size
        return out, self.named(held.delta + layout.centre, held.u)

    def _improper(self, wrong: int) -> None:
        if wrong >= self.size:
            wrong = int(np.flatnonzero(self.moves.speed[wrong - self.size])[0])
        reason = f"{self._label(wrong)}: improper given the other variables"
        raise improper(self.reading.engine, reason)

    def _loses_digits(self, theta: np.ndarray, u: np.ndarray) -> bool:
        """Return whether more rows than D have noise below the rounding of their means, or noise
        at the limits of u.

        Noise of a posterior without a proper one goes there, as for rewards that means fit exactly.
        """
        powers = self.layout.dense.powers
        at_limit = (np.abs(u) >= kernel.FURTHEST)[powers.element] & (powers.exponent != 0.0)
        lost = (self.layout.rounding(theta, u) > 1.0) | at_limit.any(axis=0)
        return bool(lost.sum() > self.layout.dim)

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
        gaps, largest = [], 1.0
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
        if not np.ptp(gaps) <= SAME * largest:
            raise self.reading.refusal(
                f"the log density differs from the sampler's on these rows, by {np.ptp(gaps):.3g}"
            )


def problem(reading: Reading, data: Data) -> Problem:
    """Return the reading of these rows, laid out; refuse rows whose terms it does not have."""
    n = len(data[0])
    sums, A, b = reading(data)
    places, _, P = reading.places(n)
    for name, (low, high) in reading.between.items():
        walls = tuple((int(k), low, high) for k in places[name].ravel())
        sums.append(Sum((), (), walls))
    owner = np.zeros(P, dtype=np.int64)
    for k, name in enumerate(reading.rest):
        owner[places[name].ravel()] = k
    try:
        whole = layout(sums, A, b, P, [*reading.names[:-1], *reading.between])
    except Leaves as error:
        raise reading.refusal(str(error)) from None
    return Problem(reading, data, whole, owner, places, P)
