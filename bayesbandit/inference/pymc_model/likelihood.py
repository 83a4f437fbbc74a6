"""The log densities of a declared model's terms under draws, and rewards that no draw makes likely.

A reward that has likelihood 0 whatever the variables are (a count of −1, a level that there is not)
leaves no posterior. It is looked for by numbers: at the variables' initial point, and at draws of
the prior and of the posterior, some pulled towards that point, where nothing overflows. A row that
has a likelihood at none of them is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.replace import clone_replace, vectorize_graph
from pytensor.graph.traversal import toposort

from bayesbandit.declaring.observed import check_whole, made_whole
from bayesbandit.inference.base import COMPILE, Compiled, NoElement
from bayesbandit.inference.graph_analysis.density import (
    containers,
    lengths,
    read,
    row_dimension,
)
from bayesbandit.inference.graph_analysis.operations import (
    elementwise_name,
    exponent,
    kind,
    reduced_by,
)
from bayesbandit.inference.graph_analysis.quadratic import PYTHON
from bayesbandit.inference.graph_analysis.rewrites import guarded, many
from bayesbandit.inference.pymc_model.prior import SIZE, points
from bayesbandit.runtime.memory import AT_ONCE

if TYPE_CHECKING:
    import pymc as pm

Draws = Mapping[str, np.ndarray]  # of the free variables by name, (S, *shape)
Rows = Mapping[str, np.ndarray]  # x (n, d), reward, weight, arm (n,), by role

FINITE = {"Add", "Sub", "Neg", "Mul", "Sqr", "Abs", "Identity", "Second", "Cast"}
EXAMPLES = np.array([-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0])  # rewards that an error may name


class Likelihood:
    """The terms of a model's log density as functions of draws and rows, compiled when first used.

    names: the free variables. judged: the terms that a reward may make −∞ or NaN.
    """

    def __init__(self, model: pm.Model) -> None:
        with COMPILE:
            self.density = density = read(model)
            row = row_dimension(model)
            dims = {k: model.named_vars_to_dims.get(k) or () for k in density.values}
            self._by_row = {k: d.index(row) for k, d in dims.items() if row in d}
            self.names = tuple(density.values)
            values: dict[Variable, Variable] = {
                v: v.type.clone(shape=self._shape(k, v.type.shape))(k)
                for k, v in density.values.items()
            }
            raw = [term.graph for term in density.terms]
            graphs = guarded(clone_replace(raw, values, rebuild_strict=False))
            self._terms = dict(zip([term.name for term in density.terms], graphs, strict=True))
            swap = {v: density.inputs[role] for role, v in containers(model).items()}
            self._whole = [
                (name, clone_replace([made], swap, rebuild_strict=False)[0])
                for name, made in made_whole(model)
            ]
        self._values, self._inputs = list(values.values()), list(density.inputs.values())
        self._types = [v.type.dtype for v in (*self._values, *self._inputs)]
        self._width = sum(math.prod(shape) for shape in lengths(model).values())
        self._on_data = {term.name for term in density.terms if term.on_data}
        reward = density.inputs["reward"]
        self.judged = {k for k in self._on_data if may_exclude(self._terms[k], reward)}
        self._model = model

    def _shape(self, name: str, shape: Sequence[int | None]) -> tuple[int | None, ...]:
        return tuple(None if i == self._by_row.get(name) else m for i, m in enumerate(shape))

    @property
    def judges(self) -> bool:
        """Whether some rewards may be impossible: fractions of counts, or those of density 0."""
        return bool(self.judged or self._whole)

    def log_density(self, draws: Draws, rows: Rows, on_data: bool = False) -> np.ndarray:
        """Return the joint log density (S,) of the variables, in their own space, and the rewards,
        up to a constant. on_data: only of the terms that depend on the rows."""
        S = len(next(iter(draws.values())))
        step = max(1, AT_ONCE // max(1, len(rows["x"]) * self._width))
        out = np.zeros(S)
        for s in range(0, S, step):
            part = {k: draws[k][s : s + step] for k in self.names}
            for name, value in self._at(part, rows):
                if name in self._on_data or not on_data:
                    out[s : s + step] += value.reshape(len(value), -1).sum(axis=1)
        return out

    def failure(self) -> str:
        """Return how the terms fail on other rows than those of the built model; "" if they do
        not."""
        more = {role: np.concatenate([v, v[-1:]]) for role, v in self.density.own.items()}
        try:
            list(self._at(self._start, more))
        except (ValueError, TypeError) as error:
            return str(error).strip().splitlines()[0]
        return ""

    def prepare(self) -> None:
        """Compile what `check` needs."""
        if self.judged:
            _ = self._all, self._points

    # ---- impossible rewards ----------------------------------------------------------------------

    def check(
        self, name: str, rows: Rows, draws: Sequence[Draws] = (), possible: bool = False
    ) -> None:
        """Raise ValueError for impossible rewards; `draws` are more points to try.

        name: the model's. The message counts rows from 0. possible: whether some draw is known to
        make the rows likely: only rewards that are not whole are then refused.
        """
        impossible = ~self._are_whole(name, rows)
        if not (possible or impossible.any()) and self.judged:
            impossible = self._are_impossible(rows, draws)
        if impossible.any():
            i = int(impossible.argmax())
            row = {role: v[[i]] for role, v in rows.items()}
            allowed = [r for r in EXAMPLES.tolist() if self._allows(row, r, draws)]
            if not allowed:
                self._are_likely(self.judged, self._start, row)  # raises NoElement
            raise impossible_reward(name, rows, i, allowed)

    def lost(self, rows: Rows) -> np.ndarray:
        """Return the rows (m,) whose log likelihood is −∞ or NaN at the variables' initial
        point."""
        return np.flatnonzero(~self._are_likely(self._on_data, self._start, rows))

    def _are_whole(self, name: str, rows: Rows) -> np.ndarray:
        """Return which rewards (n,) PyMC may cast to whole numbers, since these are the same."""
        reward = rows["reward"]
        whole = np.ones(len(reward), dtype=bool)
        for observed, made in self._whole:
            if made is self.density.inputs["reward"]:
                whole &= reward == np.floor(reward)
            else:
                [values] = Compiled(self._inputs, [made], PYTHON)(*self._data(rows))
                check_whole(f"{name}: {observed!r}", reward, values)
        return whole

    def _allows(self, row: Rows, reward: float, draws: Sequence[Draws]) -> bool:
        """Return whether another reward of a row is possible."""
        other = {**row, "reward": np.array([reward])}
        try:
            return bool(self._are_whole("", other)[0]) and not self._are_impossible(other, draws)[0]
        except ValueError:
            return False

    def _are_impossible(self, rows: Rows, draws: Sequence[Draws]) -> np.ndarray:
        """Return which rows (n,) have no likelihood at any of the points that are tried.

        A row alone whose reward is an index beyond the model's has none.
        """
        n = len(rows["reward"])
        impossible = np.ones(n, dtype=bool)
        try:
            for tried in self._tried(draws):
                if (at := np.flatnonzero(impossible)).size:
                    part = {role: v[at] for role, v in rows.items()}
                    impossible[at] = ~self._are_likely(self.judged, tried, part)
        except NoElement:
            for i in range(n if n > 1 else 0):
                row = {role: v[[i]] for role, v in rows.items()}
                [impossible[i]] = self._are_impossible(row, draws)
        return impossible

    def _are_likely(self, terms: set[str], points: Draws, rows: Rows) -> np.ndarray:
        """Return which rows (n,) have a likelihood at some point by these terms.

        If a term is of all rows together, rows are tried one by one where it is −∞.
        """
        n, together = len(rows["reward"]), False
        likely = np.ones((len(next(iter(points.values()))), n), dtype=bool)
        for name, value in self._at(points, rows):
            finite = value > -np.inf  # neither −∞ nor NaN
            by_row = self._terms[name].type.ndim == 1 and value.shape[-1] == n
            if name in terms:
                together |= not by_row
                likely &= finite if by_row else finite.reshape(len(finite), -1).all(1)[:, None]
        found = likely.any(axis=0)
        if not together or n == 1 or found.all():
            return found
        each = ({role: v[[i]] for role, v in rows.items()} for i in range(n))
        return np.concatenate([self._are_likely(terms, points, row) for row in each])

    def _tried(self, draws: Sequence[Draws]) -> Iterator[Draws]:
        """Yield the initial point, which is mostly enough, and then all other points."""
        yield self._start
        yield self._points
        for more in draws:
            if more:
                some = np.linspace(0, len(next(iter(more.values()))) - 1, SIZE).astype(int)
                yield {k: more[k][some] for k in self.names}

    # ---- values ----------------------------------------------------------------------------------

    @cached_property
    def _points(self) -> dict[str, np.ndarray]:
        return points(self._model)

    @property
    def _start(self) -> dict[str, np.ndarray]:
        return {k: v[:1] for k, v in self._points.items()}

    @cached_property
    def _all(self) -> Compiled:
        with COMPILE:
            draws = many(self._values)
            batches = vectorize_graph(list(self._terms.values()), draws)
            return Compiled([*draws.values(), *self._inputs], batches, PYTHON, trusted=True)

    def _at(self, draws: Draws, rows: Rows) -> Iterator[tuple[str, np.ndarray]]:
        """Yield each term's name and its values under draws, (S, …) or (1, …)."""
        n = len(rows["reward"])
        values = [self._of_rows(k, self.density.value(k, draws[k]), n) for k in self.names]
        own = [np.asarray(v, t, order="C") for v, t in zip(values, self._types, strict=False)]
        for (name, graph), value in zip(
            self._terms.items(), self._all(*own, *self._data(rows)), strict=True
        ):
            yield name, value if value.ndim > graph.type.ndim else value[None]

    def _data(self, rows: Rows) -> list[np.ndarray]:
        data = {"weight": np.ones(len(rows["reward"])), **rows}
        types = self._types[len(self._values) :]
        pairs = zip(self.density.inputs, types, strict=True)
        return [np.asarray(data[role], t, order="C") for role, t in pairs]

    def _of_rows(self, name: str, value: np.ndarray, n: int) -> np.ndarray:
        """Return a variable's draws. If it has a value for each row, its values are repeated for
        other rows."""
        axis = self._by_row.get(name)
        if axis is None or value.shape[axis + 1] == n:
            return value
        return np.take(value, np.arange(n) % value.shape[axis + 1], axis=axis + 1)


def may_exclude(graph: Variable, reward: Variable) -> bool:
    """Return whether a log density may be −∞ at some reward: whether the reward enters anything but
    sums and products."""
    entered = {reward}
    for node in toposort([graph]):
        by_reward = [v in entered for v in node.inputs]
        if any(by_reward) and kind(node) != "shape":
            if not _stays_finite(node, by_reward):
                return True
            entered.update(node.outputs)
    return False


def _stays_finite(node: Apply, by_reward: Sequence[bool]) -> bool:
    """Return whether an operation makes finite numbers of finite ones that a reward enters."""
    if kind(node) != "elementwise":
        added = kind(node) == "reduction" and reduced_by(node) == "Add"
        return added or kind(node) in ("move", "product")
    name = elementwise_name(node.outputs[0])
    if name == "Switch":
        return not by_reward[0]
    if name == "Pow":
        return not by_reward[1] and (exponent(node) or -1.0) > 0.0
    return name in FINITE or (name == "TrueDiv" and not by_reward[1])


def impossible_reward(name: str, rows: Rows, i: int, allowed: Sequence[float]) -> ValueError:
    """Return the error that row i's reward has no likelihood. allowed: some rewards that have."""
    listed = ", ".join(f"{r:g}" for r in allowed)
    return ValueError(
        f"{name} gives a reward of {rows['reward'][i]:g} the likelihood 0, whatever values of its "
        f"variables were tried: row {i}, the context "
        f"{np.array2string(rows['x'][i], threshold=6)}"
        + (f"; it allows, for example, {listed}" if listed else "")
    )
