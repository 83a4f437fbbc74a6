"""The log densities of a declared model's terms under draws, and rewards that no draw makes likely.

A reward that has likelihood 0 whatever the variables are (a count of −1, a win of .5) leaves no
posterior. It is found by the model's own terms: their values at the variables' initial point and at
draws of the prior and of the posterior, some pulled towards that point, where nothing overflows. A
likelihood whose support moves with the variables (a uniform noise about the mean) is not judged so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.replace import clone_replace, vectorize_graph
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import ancestors
from pytensor.scalar import basic as scalar
from pytensor.tensor.elemwise import Elemwise

from bayesbandit.engines.base import COMPILE, Compiled
from bayesbandit.engines.built.prior import prior_draws
from bayesbandit.engines.reading.density import Graph, containers, lengths, read, row_dimension
from bayesbandit.engines.reading.quadratic import PYTHON
from bayesbandit.machine.memory import AT_ONCE

if TYPE_CHECKING:
    import pymc as pm

Draws = Mapping[str, np.ndarray]  # of the free variables by name, (S, *shape)
Rows = Mapping[str, np.ndarray]  # x (n, d), reward, weight, arm (n,), by role

EDGES = (
    scalar.LogicalComparison, scalar.FixedLogicalComparison, scalar.Maximum, scalar.Minimum,
    scalar.Clip, scalar.Log, scalar.Log2, scalar.Log10, scalar.Log1p, scalar.Sqrt,
)  # fmt: skip  # operations by which a support ends
PULLED = (0.01, 0.1, 0.3, 1.0)  # shares of the way from the initial point to a draw
SIZE = 20  # draws of the prior, and at most so many of the posterior
KEPT = 1000  # rewards that are known to be possible


class Likelihood:
    """The terms of a model's log density as functions of draws and rows, compiled when first used.

    names: the free variables. judged: the terms that can be −∞ by the reward, and whatever the
    variables are. whole: whether rewards are whole numbers.
    """

    def __init__(self, model: pm.Model) -> None:
        with COMPILE:
            self.density = density = read(model)
            row = row_dimension(model)
            dims = {k: model.named_vars_to_dims.get(k) or () for k in density.values}
            self._by_row = {k: d.index(row) for k, d in dims.items() if row in d}
            self.names, self.roles = tuple(density.values), tuple(density.inputs)
            values = {
                v: pt.tensor(k, dtype=v.dtype, shape=self._shape(k, v.type.shape))
                for k, v in density.values.items()
            }
            raw: Any = [term.graph for term in density.terms]
            graphs: Any = clone_replace(raw, values, rebuild_strict=False)
            graphs = rewrite_graph(graphs, include=("local_check_parameter_to_ninf_switch",))
            self._terms = dict(zip([term.name for term in density.terms], graphs, strict=True))
        self._values, self._inputs = list(values.values()), list(density.inputs.values())
        self._types = [v.dtype for v in (*self._values, *self._inputs)]
        self._width = sum(math.prod(shape) for shape in lengths(model).values())
        reward = density.inputs["reward"]
        edges = {k: _edges(g, reward, set(self._values)) for k, g in self._terms.items()}
        self.judged = tuple(k for k, (_, fixed) in edges.items() if fixed)
        judged = {v for k in self.judged for v in edges[k][0]}
        self._by_reward_alone = judged.isdisjoint(set(self._inputs) - {reward})
        self._accepted: set[float] = set()  # rewards, if nothing else decides
        data = containers(model)["reward"]
        self.whole = any(
            np.dtype(v.dtype).kind in "iub" and data in ancestors([model.rvs_to_values[v]])
            for v in model.observed_RVs
        )
        self._model = model

    def _shape(self, name: str, shape: Sequence[int | None]) -> tuple[int | None, ...]:
        return tuple(None if i == self._by_row.get(name) else m for i, m in enumerate(shape))

    def log_density(self, draws: Draws, rows: Rows) -> np.ndarray:
        """The log density (S,) of the variables and the rewards together, in the variables' own
        space, up to a constant that depends on neither."""
        S = len(next(iter(draws.values())))
        step = max(1, AT_ONCE // max(1, len(rows["x"]) * self._width))
        out = np.zeros(S)
        for s in range(0, S, step):
            part = {k: draws[k][s : s + step] for k in self.names}
            values = self._all(*self._arguments(part, rows))
            for value, graph in zip(values, self._terms.values(), strict=True):
                by_draw = value.ndim > graph.type.ndim  # not where no variable enters
                flat: Any = value.reshape(len(value) if by_draw else 1, -1)
                out[s : s + step] += flat.sum(axis=1)
        return out

    def failure(self) -> str:
        """How the terms fail on other rows than the model was built on; "" where they do not."""
        first = {k: v[:1] for k, v in self._points.items()}
        more = {role: np.concatenate([v, v[-1:]]) for role, v in self.density.own.items()}
        try:
            self._all(*self._arguments(first, more))
        except (ValueError, TypeError) as error:
            return str(error).strip().splitlines()[0]
        return ""

    def prepare(self) -> None:
        """Compile what `check` needs, before it is asked."""
        if self.judged:
            _ = self._judged, self._points

    def check(self, name: str, rows: Rows, draws: Sequence[Draws] = ()) -> None:
        """Refuse rewards that have likelihood 0 at all points; `draws` are more points.

        name: the model's. The row in the message is that of `rows`, from 0.
        """
        reward = rows["reward"]
        if not (self.judged or self.whole):
            return
        broken = np.flatnonzero(self.whole & (reward != np.floor(reward)))
        at = broken if len(broken) else self._impossible(rows, draws)
        if len(at):
            i = int(at[0])
            raise ValueError(
                f"{name} gives a reward of {reward[i]:g} the likelihood 0, whatever its variables "
                f"are: row {i}, the context {np.array2string(rows['x'][i], threshold=6)}"
            )

    def _impossible(self, rows: Rows, draws: Sequence[Draws]) -> np.ndarray:
        """The rows (m,) with likelihood 0 at all points; of equal ones, perhaps the first."""
        reward = rows["reward"]
        at = np.arange(len(reward))
        if self._by_reward_alone:
            at = np.sort(np.unique(reward, return_index=True)[1])
            at = at[[r not in self._accepted for r in reward[at].tolist()]]
        asked = at
        for points in self._tried(draws):
            if at.size:
                at = at[~self._possible({role: v[at] for role, v in rows.items()}, points)]
        if not at.size and self._by_reward_alone and len(self._accepted) < KEPT:
            self._accepted.update(reward[asked[:KEPT]].tolist())
        return at

    def _tried(self, draws: Sequence[Draws]) -> Iterator[Draws]:
        """The initial point, which mostly is enough; then all the others."""
        yield {k: v[:1] for k, v in self._points.items()}
        yield self._points
        for more in draws:
            if more:
                some = np.linspace(0, len(next(iter(more.values()))) - 1, SIZE).astype(int)
                yield {k: more[k][some] for k in self.names}

    def _possible(self, rows: Rows, points: Draws) -> np.ndarray:
        """Whether each row (n,) has a likelihood at some point, by each term."""
        n = len(rows["reward"])
        possible = np.ones(n, dtype=bool)
        found = self._judged(*self._arguments(points, rows)) if self.judged else []
        for k, value in zip(self.judged, found, strict=True):
            finite = value > -np.inf
            if self._terms[k].type.ndim == 1 and value.shape[-1] == n:
                possible &= np.atleast_2d(finite).any(axis=0)
            else:  # a term of all rows together
                possible &= finite.any()
        return possible

    @cached_property
    def _all(self) -> Compiled:
        return self._compiled(self._terms)

    @cached_property
    def _judged(self) -> Compiled:
        return self._compiled(self.judged)

    def _compiled(self, names: Iterable[str]) -> Compiled:
        """Some terms under many draws."""
        with COMPILE:
            many: dict[Any, Any] = {
                v: pt.tensor(v.name, shape=(None, *v.type.shape), dtype=v.dtype)
                for v in self._values
            }
            batches: Any = vectorize_graph([self._terms[k] for k in names], many)
            return Compiled([*many.values(), *self._inputs], batches, PYTHON)

    @cached_property
    def _points(self) -> dict[str, np.ndarray]:
        """The initial point and, where the prior is proper, points between it and draws of the
        prior, by name, (S, *shape)."""
        from pymc.initial_point import make_initial_point_fn

        with COMPILE:
            centre = make_initial_point_fn(model=self._model, return_transformed=False)(0)
        drawn = prior_draws(self._model, SIZE, 0)
        points = {}
        for name in (str(v.name) for v in self._model.free_RVs):
            middle = np.asarray(centre[name])[None]
            way = drawn.get(name, middle) - middle
            points[name] = np.concatenate([middle, *(middle + s * way for s in PULLED)])
        return points

    def _arguments(self, draws: Draws, rows: Rows) -> list[np.ndarray]:
        n = len(rows["reward"])
        values = [self._of_rows(k, self.density.value(k, draws[k]), n) for k in self.names]
        data = {"weight": np.ones(n), **rows}
        given = [*values, *(data[role] for role in self.roles)]
        return [np.asarray(v, t) for v, t in zip(given, self._types, strict=True)]

    def _of_rows(self, name: str, value: np.ndarray, n: int) -> np.ndarray:
        """A variable's draws; one with a value for each row repeats those that it has."""
        axis = self._by_row.get(name)
        if axis is None or value.shape[axis + 1] == n:
            return value
        return np.take(value, np.arange(n) % value.shape[axis + 1], axis=axis + 1)


def _edges(graph: Graph, reward: Graph, values: set[Graph]) -> tuple[set[Graph], bool]:
    """What the operations depend on by which a term's support ends, and whether the reward is among
    it and, in no one operation, the reward and variables."""
    found: set[Graph] = set()
    fixed = True
    for v in ancestors([graph]):
        if v.owner is None or not isinstance(v.owner.op, Elemwise):
            continue
        if isinstance(v.owner.op.scalar_op, EDGES):
            above = set(ancestors([v]))
            if reward in above:
                found |= above
                fixed = fixed and values.isdisjoint(above)
    return found, fixed and bool(found)
