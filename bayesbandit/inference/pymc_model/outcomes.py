"""What a model computes from its free variables: mean rewards, and deterministic quantities."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.replace import clone_replace, vectorize_graph
from pytensor.graph.traversal import ancestors

from bayesbandit.inference.base import COMPILE, Compiled
from bayesbandit.inference.graph_analysis.density import (
    containers,
    lengths,
    row_dimension,
    unviewed,
)
from bayesbandit.inference.graph_analysis.quadratic import PYTHON
from bayesbandit.inference.graph_analysis.rewrites import like, many, plain, rewritten
from bayesbandit.runtime.memory import AT_ONCE

if TYPE_CHECKING:
    import pymc as pm


class Outcomes:
    """Compiled functions of draws of the free variables (S, *shape), given by name.

    names: the free variables. deterministic: other quantities of the model that no row enters, such
    as the coefficients of a non-centred prior.
    """

    def __init__(self, model: pm.Model) -> None:
        shared, shapes, row = containers(model), lengths(model), row_dimension(model)
        self.names, self.roles = tuple(shapes), tuple(shared)
        self.n_arms = len(model.coords["arm"]) if "arm" in model.coords else None
        values: dict[str, Any] = {}
        for v in model.free_RVs:
            dims = model.named_vars_to_dims.get(v.name) or ()
            by_row = [row is not None and dim == row for dim in _padded(dims, v.ndim)]
            pairs = zip(shapes[v.name], by_row, strict=True)
            shape = tuple(None if along else k for k, along in pairs)
            values[v.name] = v.type.clone(shape=shape)(v.name)
        swap: dict[Any, Any] = {v: like(v, values[v.name]) for v in model.free_RVs}
        inputs: dict[str, Any] = {}
        for role, v in shared.items():
            arm = role == "arm"
            inputs[role] = (
                pt.tensor(role, shape=(None,), dtype=v.dtype)
                if arm
                else pt.tensor(role, shape=v.type.shape)
            )
            swap[v] = like(v, inputs[role])
        rows = set(shared.values())
        free = [v for v in model.deterministics if v.name != "mean_reward"]
        free = [v for v in free if rows.isdisjoint(ancestors([v]))]
        asked = map(unviewed, (model["mean_reward"], *free))  # a view would be taken draw by draw
        graphs = clone_replace(list(asked), swap, rebuild_strict=False)
        graphs = rewritten(plain(graphs), "lower_xtensor", "merge")
        self.deterministic = {
            str(v.name): tuple(int(k) for k in shape)
            for v, shape in zip(free, _shapes(free), strict=True)
        }
        draws, data = many(values.values()), [inputs[role] for role in self.roles]
        mean, *rest = vectorize_graph(graphs, draws)
        self._types = [v.dtype for v in values.values()]
        with COMPILE:
            self._mean = Compiled([*draws.values(), *data], [mean], PYTHON, trusted=True)
            self._rest = Compiled(list(draws.values()), rest, PYTHON) if rest else None
        self._width = sum(math.prod(shape) for shape in shapes.values())

    def mean_reward(
        self, draws: Mapping[str, np.ndarray], x: np.ndarray, arm: np.ndarray | None = None
    ) -> np.ndarray:
        """Return mean rewards (S, n) of contexts x (n, d); without `arm`, those of every arm (S, n,
        K)."""
        n, K = len(x), self.n_arms
        if K is not None and arm is None:
            means = self.mean_reward(draws, np.repeat(x, K, axis=0), np.tile(np.arange(K), n))
            return means.reshape(-1, n, K)
        data = {"x": x, "reward": np.zeros(n), "weight": np.ones(n)}
        if K is not None and arm is not None:
            data["arm"] = np.asarray(arm, dtype=np.int32)
        rows = [np.ascontiguousarray(data[role]) for role in self.roles]
        S = len(next(iter(draws.values())))
        step = max(1, AT_ONCE // max(1, n * self._width))
        out = np.empty((S, n))
        for s in range(0, S, step):
            [out[s : s + step]] = self._mean(*self._of(draws, slice(s, s + step)), *rows)
        return out

    def rest(self, draws: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the deterministic quantities by name, each (S, *shape)."""
        if self._rest is None:
            return {}
        values = self._rest(*self._of(draws, slice(None)))
        S = len(next(iter(draws.values())))
        shapes = self.deterministic
        return {k: np.broadcast_to(v, (S, *shapes[k])) for k, v in zip(shapes, values, strict=True)}

    def _of(self, draws: Mapping[str, np.ndarray], part: slice) -> list[np.ndarray]:
        return [np.asarray(draws[k][part], t) for k, t in zip(self.names, self._types, strict=True)]


def _padded(dims: Sequence[str | None], ndim: int) -> tuple[str | None, ...]:
    return tuple(dims) if len(dims) == ndim else (None,) * ndim


def _shapes(variables: list[Any]) -> list[tuple[int, ...]]:
    """Return the shapes of some quantities, from their types or else by computing them."""
    known = [v.type.shape for v in variables]
    if any(k is None for shape in known for k in shape):
        known = [tuple(v.shape.eval(mode=PYTHON)) for v in variables]
    return [tuple(int(k) for k in shape) for shape in known]
