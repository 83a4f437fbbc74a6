"""What a model computes from its free variables: mean rewards, and deterministic quantities."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors

from bayesbandit.inference.graph_analysis.density import (
    containers,
    lengths,
    row_axes,
    unviewed,
)
from bayesbandit.inference.graph_analysis.rewrites import like, plain, rewritten
from bayesbandit.inference.pymc_model.of_draws import Draws, OfDraws
from bayesbandit.inference.uncompiled import UNCOMPILED_MODE
from bayesbandit.runtime.memory import AT_ONCE

if TYPE_CHECKING:
    import pymc as pm


class Outcomes:
    """Compiled functions of draws of the free variables (S, *shape), given by name.

    names: the free variables. deterministic: other quantities of the model that no row enters, such
    as the coefficients of a non-centred prior.
    """

    def __init__(self, model: pm.Model) -> None:
        shapes = lengths(model)
        by_row = row_axes(model)
        data = containers(model)
        self.names = tuple(shapes)
        self.n_arms = len(model.coords["arm"]) if "arm" in model.coords else None
        values: dict[str, Any] = {}
        for v in model.free_RVs:
            axes = enumerate(shapes[v.name])
            shape = tuple(None if by_row.get(v.name) == axis else k for axis, k in axes)
            values[v.name] = v.type.clone(shape=shape)(v.name)
        inputs = {
            k: pt.tensor(k, dtype=v.dtype, shape=(None,) if k == "arm" else v.type.shape)
            for k, v in data.items()
        }
        swap: dict[Any, Any] = {v: like(v, values[v.name]) for v in model.free_RVs}
        swap |= {v: like(v, inputs[role]) for role, v in data.items()}
        fixed = [v for v in model.deterministics if v.name != "mean_reward"]
        fixed = [v for v in fixed if set(data.values()).isdisjoint(ancestors([v]))]
        asked = map(unviewed, (model["mean_reward"], *fixed))  # a view would be taken draw by draw
        graphs = clone_replace(list(asked), swap, rebuild_strict=False)
        mean, *rest = rewritten(plain(graphs), "lower_xtensor", "merge")
        self.deterministic = {
            str(v.name): tuple(int(k) for k in shape)
            for v, shape in zip(fixed, _shapes(fixed), strict=True)
        }
        self._mean = OfDraws([mean], values, inputs)
        self._rest = OfDraws(rest, values)
        self._width = sum(math.prod(shape) for shape in shapes.values())

    def mean_reward(self, draws: Draws, x: np.ndarray, arm: np.ndarray | None = None) -> np.ndarray:
        """Return mean rewards (S, n) of contexts x (n, d); without `arm`, those of every arm (S, n,
        K)."""
        n = len(x)
        K = self.n_arms
        if K is not None and arm is None:
            means = self.mean_reward(draws, np.repeat(x, K, axis=0), np.tile(np.arange(K), n))
            return means.reshape(-1, n, K)
        rows = {"x": x} if arm is None else {"x": x, "arm": arm}
        S = len(next(iter(draws.values())))
        step = max(1, AT_ONCE // max(1, n * self._width))
        out = np.empty((S, n))
        for s in range(0, S, step):
            some = {k: draws[k][s : s + step] for k in self.names}
            [out[s : s + step]] = self._mean(some, rows)
        return out

    def rest(self, draws: Draws) -> dict[str, np.ndarray]:
        """Return the deterministic quantities by name, each (S, *shape)."""
        S = len(next(iter(draws.values())))
        found = self._rest(draws)
        named = zip(self.deterministic.items(), found, strict=True)
        return {k: np.broadcast_to(v, (S, *shape)) for (k, shape), v in named}


def _shapes(variables: list[Any]) -> list[tuple[int, ...]]:
    """Return the shapes of some quantities, from their types or else by computing them."""
    known = [v.type.shape for v in variables]
    if any(k is None for shape in known for k in shape):
        known = [tuple(v.shape.eval(mode=UNCOMPILED_MODE)) for v in variables]
    return known
