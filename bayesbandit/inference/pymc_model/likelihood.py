"""The log densities of a declared model's terms under draws, and rewards that no draw makes likely.

A reward that has likelihood 0 whatever the variables are (a count of −1, a level that there is not)
leaves no posterior. It is looked for in two steps, by the model's own terms:

1. by numbers: the variables' initial point and draws of the prior and of the posterior, some pulled
   towards that point, where nothing overflows. A row that has a likelihood there is possible.
2. of a row that has none: it is impossible where its term is −∞ whatever the variables are, in
   interval arithmetic (`bounds`), or where no operation by which a support ends has both the reward
   and variables in it. Else the support may move with the variables (a uniform noise about the
   mean) to where no draw was: the row is let in, and the engine says if it cannot start.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace, vectorize_graph

from bayesbandit.declaring.observed import check_whole, made_whole
from bayesbandit.inference.base import COMPILE, Compiled, NoElement
from bayesbandit.inference.graph_analysis.degrees import Degrees
from bayesbandit.inference.graph_analysis.density import (
    containers,
    lengths,
    read,
    row_dimension,
)
from bayesbandit.inference.graph_analysis.quadratic import PYTHON
from bayesbandit.inference.graph_analysis.rewrites import guarded, many
from bayesbandit.inference.graph_analysis.transforms import support
from bayesbandit.inference.pymc_model.allowed_rewards import allowed
from bayesbandit.inference.pymc_model.bounds import Bounds, between, edges_of, point
from bayesbandit.inference.pymc_model.prior import SIZE, points
from bayesbandit.runtime.memory import AT_ONCE

if TYPE_CHECKING:
    import pymc as pm

Draws = Mapping[str, np.ndarray]  # of the free variables by name, (S, *shape)
Rows = Mapping[str, np.ndarray]  # x (n, d), reward, weight, arm (n,), by role

KEPT = 1000  # rewards that are known to be possible


class Likelihood:
    """The terms of a model's log density as functions of draws and rows, compiled when first used.

    names: the free variables. judged: the terms that a reward may make −∞ or NaN, which are no
    polynomials in it.
    """

    def __init__(self, model: pm.Model) -> None:
        with COMPILE:
            self.density = density = read(model)
            row = row_dimension(model)
            dims = {k: model.named_vars_to_dims.get(k) or () for k in density.values}
            self._by_row = {k: d.index(row) for k, d in dims.items() if row in d}
            self.names, self.roles = tuple(density.values), tuple(density.inputs)
            values: dict[Variable, Variable] = {
                v: pt.tensor(k, dtype=v.type.dtype, shape=self._shape(k, v.type.shape))
                for k, v in density.values.items()
            }
            raw = [term.graph for term in density.terms]
            graphs = clone_replace(raw, values, rebuild_strict=False)
            graphs = guarded(graphs)
            self._terms = dict(zip([term.name for term in density.terms], graphs, strict=True))
        self._values, self._inputs = list(values.values()), list(density.inputs.values())
        self._types = [v.type.dtype for v in (*self._values, *self._inputs)]
        self._width = sum(math.prod(shape) for shape in lengths(model).values())
        reward, free = density.inputs["reward"], set(self._values)
        self._support = {v.name: support(v, model.rvs_to_transforms[v]) for v in model.free_RVs}
        self._on_data = tuple(term.name for term in density.terms if term.on_data)
        seeds = {reward: 1.0}
        self.judged = tuple(
            k
            for k, g in self._terms.items()
            if k in self._on_data and Degrees([g], seeds).of(g) == math.inf
        )
        edges = {k: edges_of(self._terms[k], reward) for k in self.judged}
        self._fixed = {k for k, e in edges.items() if all(map(free.isdisjoint, e))}
        decisive = set[Variable]().union(*(above for e in edges.values() for above in e))
        others = set(self._inputs) - {reward}
        alone = len(self._fixed) == len(edges) and all(edges.values())
        self._by_reward_alone = alone and decisive.isdisjoint(others)
        self._accepted: set[float] = set()  # rewards, if nothing else decides
        swap = {v: density.inputs[role] for role, v in containers(model).items()}
        self._whole = [
            (name, clone_replace([made], swap, rebuild_strict=False)[0])
            for name, made in made_whole(model)
        ]
        self._compute: dict[Variable, Compiled] = {}  # what is made whole
        self._model = model

    def _shape(self, name: str, shape: Sequence[int | None]) -> tuple[int | None, ...]:
        return tuple(None if i == self._by_row.get(name) else m for i, m in enumerate(shape))

    def log_density(self, draws: Draws, rows: Rows, on_data: bool = False) -> np.ndarray:
        """Return the joint log density (S,) of the variables, in their own space, and the rewards,
        up to a constant. on_data: only of the terms that depend on the rows."""
        S = len(next(iter(draws.values())))
        step = max(1, AT_ONCE // max(1, len(rows["x"]) * self._width))
        out = np.zeros(S)
        for s in range(0, S, step):
            part = {k: draws[k][s : s + step] for k in self.names}
            values = self._all(*self._arguments(part, rows))
            for value, (name, graph) in zip(values, self._terms.items(), strict=True):
                if on_data and name not in self._on_data:
                    continue
                by_draw = value.ndim > graph.type.ndim  # not where no variable enters
                flat = value.reshape(len(value) if by_draw else 1, -1)
                out[s : s + step] += flat.sum(axis=1)
        return out

    def failure(self) -> str:
        """Return how the terms fail on other rows than those of the built model; "" if they do
        not."""
        first = {k: v[:1] for k, v in self._points.items()}
        more = {role: np.concatenate([v, v[-1:]]) for role, v in self.density.own.items()}
        try:
            self._all(*self._arguments(first, more))
        except (ValueError, TypeError) as error:
            return str(error).strip().splitlines()[0]
        return ""

    def prepare(self) -> None:
        """Compile what `check` needs."""
        if self.judged:
            _ = self._judged, self._points

    def check(
        self, name: str, rows: Rows, draws: Sequence[Draws] = (), possible: bool = False
    ) -> None:
        """Raise ValueError for impossible rewards; `draws` are more points to try.

        name: the model's. The message counts rows from 0. possible: whether some draw is known to
        make the rows likely: only rewards that are not whole are then refused.
        """
        reward, at = rows["reward"], np.empty(0, dtype=np.int64)
        for whole, made in self._whole:
            if made is self.density.inputs["reward"]:
                at = np.flatnonzero(reward != np.floor(reward))
            else:
                check_whole(f"{name}: {whole!r}", reward, self._made(made, rows))
        if len(at := at if len(at) or possible else self._impossible(rows, draws)):
            i = int(at[0])
            row = {role: v[[i]] for role, v in rows.items()}
            says = allowed(lambda rewards: self._open(row, rewards, draws))
            if not says:
                list(self._alive(self.judged, row, next(self._tried(draws))))  # raises NoElement
            raise ValueError(
                f"{name} gives a reward of {reward[i]:g} the likelihood 0, whatever its variables "
                f"are: row {i}, the context {np.array2string(rows['x'][i], threshold=6)}{says}"
            )

    def lost(self, rows: Rows) -> np.ndarray:
        """Return the rows (m,) whose log likelihood is −∞ or NaN at the variables' initial
        point."""
        first = {k: v[:1] for k, v in self._points.items()}
        dead = ~np.all(list(self._alive(self._on_data, rows, first)), axis=0)
        alone = dead.all() and len(dead) > 1  # perhaps by a term of all rows together
        if alone:
            each = [self.lost({role: v[[i]] for role, v in rows.items()}) for i in range(len(dead))]
            dead = np.array([len(reasons) > 0 for reasons in each])
        return np.flatnonzero(dead)

    def _made(self, graph: Variable, rows: Rows) -> np.ndarray:
        """Return the value from which an observed variable of whole numbers is computed, for these
        rows."""
        if graph not in self._compute:
            self._compute[graph] = Compiled(self._inputs, [graph], PYTHON)
        return self._compute[graph](*self._data(rows))[0]

    def _open(self, row: Rows, rewards: np.ndarray, draws: Sequence[Draws]) -> np.ndarray:
        """Return which other rewards (m,) of a row are not impossible."""
        rows = {role: np.repeat(v, len(rewards), axis=0) for role, v in row.items()}
        rows |= {"reward": rewards}
        possible = np.ones(len(rewards), dtype=bool)
        for _, made in self._whole:
            values = np.broadcast_to(self._made(made, rows), rewards.shape)
            possible &= values == np.floor(values)
        at = np.flatnonzero(possible)
        possible[at] = ~self._refused({role: v[at] for role, v in rows.items()}, draws)
        return possible

    def _impossible(self, rows: Rows, draws: Sequence[Draws]) -> np.ndarray:
        """Return the rows (m,) that are impossible; of equal rewards, sometimes only the first."""
        reward = rows["reward"]
        at = np.arange(len(reward) if self.judged else 0)
        if self._by_reward_alone and at.size:
            at = np.sort(np.unique(reward, return_index=True)[1])
            at = at[[r not in self._accepted for r in reward[at].tolist()]]
        if not at.size:
            return at
        refused = at[self._refused({role: v[at] for role, v in rows.items()}, draws)]
        if not refused.size and self._by_reward_alone and len(self._accepted) < KEPT:
            self._accepted.update(reward[at[:KEPT]].tolist())
        return refused

    def _refused(self, rows: Rows, draws: Sequence[Draws]) -> np.ndarray:
        """Return which rows (n,) are impossible by some term."""
        n = len(rows["reward"])
        refused = np.zeros(n, dtype=bool)
        if n == 0:
            return refused
        try:
            dead = self._dead(rows, draws)
        except NoElement:
            return self._one_by_one(rows, draws) if n > 1 else ~refused
        for k, lost in dead.items():
            at = np.flatnonzero(lost)
            some = {role: v[at] for role, v in rows.items()}
            if not at.size:
                continue
            if self._terms[k].type.ndim != 1 and n > 1:  # of all rows together
                refused |= self._one_by_one(rows, draws)
                refused |= not refused.any() and (k in self._fixed or self._proved(k, some)[0])
            else:
                refused[at] |= True if k in self._fixed else self._proved(k, some)
        return refused

    def _one_by_one(self, rows: Rows, draws: Sequence[Draws]) -> np.ndarray:
        """Return which rows (n,) are impossible when they are alone."""
        each = ({role: v[[i]] for role, v in rows.items()} for i in range(len(rows["reward"])))
        return np.array([self._refused(row, draws)[0] for row in each])

    def _dead(self, rows: Rows, draws: Sequence[Draws]) -> dict[str, np.ndarray]:
        """Return, for each judged term, which rows (n,) have no likelihood at any of the points
        tried."""
        n = len(rows["reward"])
        dead, at = {k: np.ones(n, dtype=bool) for k in self.judged}, np.arange(n)
        for values in self._tried(draws):
            part = {role: v[at] for role, v in rows.items()}
            alive = self._alive(self.judged, part, values)
            for k, possible in zip(self.judged, alive, strict=True):
                dead[k][at] &= ~possible
            at = np.flatnonzero(np.any(list(dead.values()), axis=0))
            if not at.size:
                break
        return dead

    def _alive(self, terms: Sequence[str], rows: Rows, points: Draws) -> Iterator[np.ndarray]:
        """Yield, for each term, whether each row (n,) has a likelihood at some point."""
        n = len(rows["reward"])
        values_of = self._judged if terms is self.judged else self._compiled(terms)
        for k, value in zip(terms, values_of(*self._arguments(points, rows)), strict=True):
            finite = value > -np.inf
            by_row = self._terms[k].type.ndim == 1 and value.shape[-1] == n
            yield np.atleast_2d(finite).any(axis=0) if by_row else np.full(n, finite.any())

    def _proved(self, name: str, rows: Rows) -> np.ndarray:
        """Return which rows (n,) have no likelihood by a term, whatever the variables are."""
        n, first = len(rows["reward"]), {k: v[:1] for k, v in self._points.items()}
        given = dict(zip(self._inputs, map(point, self._data(rows)), strict=True))
        values = self._arguments(first, rows)[: len(self.names)]
        for v, k, value in zip(self._values, self.names, values, strict=True):
            low, high = (-np.inf, np.inf) if k in self.density.linear else self._support[k]
            given[v] = between(value.shape[1:], value.dtype, low, high)
        bounds = Bounds([self._terms[name]], given).of(self._terms[name])
        return np.full(n, False) if bounds is None else np.broadcast_to(bounds.impossible, n)

    def _tried(self, draws: Sequence[Draws]) -> Iterator[Draws]:
        """Yield the initial point, which is mostly enough, and then all other points."""
        yield {k: v[:1] for k, v in self._points.items()}
        yield self._points
        for more in draws:
            if more:
                some = np.linspace(0, len(next(iter(more.values()))) - 1, SIZE).astype(int)
                yield {k: more[k][some] for k in self.names}

    @cached_property
    def _all(self) -> Compiled:
        return self._compiled(self._terms, trusted=True)

    @cached_property
    def _judged(self) -> Compiled:
        return self._compiled(self.judged)

    def _compiled(self, names: Iterable[str], trusted: bool = False) -> Compiled:
        """Return a function of many draws that computes some terms."""
        with COMPILE:
            draws = many(self._values)
            batches = vectorize_graph([self._terms[k] for k in names], draws)
            return Compiled([*draws.values(), *self._inputs], batches, PYTHON, trusted)

    @cached_property
    def _points(self) -> dict[str, np.ndarray]:
        return points(self._model)

    def _arguments(self, draws: Draws, rows: Rows) -> list[np.ndarray]:
        n = len(rows["reward"])
        values = [self._of_rows(k, self.density.value(k, draws[k]), n) for k in self.names]
        types = self._types[: len(values)]
        own = (np.asarray(v, t, order="C") for v, t in zip(values, types, strict=True))
        return [*own, *self._data(rows)]

    def _data(self, rows: Rows) -> list[np.ndarray]:
        data = {"weight": np.ones(len(rows["reward"])), **rows}
        types = self._types[len(self._values) :]
        return [
            np.asarray(data[role], t, order="C") for role, t in zip(self.roles, types, strict=True)
        ]

    def _of_rows(self, name: str, value: np.ndarray, n: int) -> np.ndarray:
        """Return a variable's draws. If it has a value for each row, its values are repeated for
        other rows."""
        axis = self._by_row.get(name)
        if axis is None or value.shape[axis + 1] == n:
            return value
        return np.take(value, np.arange(n) % value.shape[axis + 1], axis=axis + 1)
