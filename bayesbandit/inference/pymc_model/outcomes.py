"""What a model computes from its free variables: mean rewards, and deterministic quantities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors

from bayesbandit.checks import Array
from bayesbandit.inference.draws import Draws
from bayesbandit.inference.graph_analysis.density import (
    containers,
    read,
    unviewed,
)
from bayesbandit.inference.graph_analysis.rewrites import like, lowered, merged
from bayesbandit.inference.pymc_model.of_draws import OfDraws
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
        density = read(model)
        data = set(containers(model).values())
        fixed = [v for v in model.deterministics if v.name != "mean_reward"]
        fixed = [v for v in fixed if data.isdisjoint(ancestors([v]))]
        self.names = tuple(density.values)
        self.n_arms = density.n_arms
        self.deterministic = {
            str(v.name): tuple(int(k) for k in shape)
            for v, shape in zip(fixed, _shapes(fixed), strict=True)
        }
        swap = {v: like(v, density.values[v.name]) for v in model.free_RVs}
        outputs = [unviewed(v) for v in fixed]  # a view would be taken draw by draw
        graphs = merged(lowered(clone_replace(outputs, swap, rebuild_strict=False)))
        self._mean = OfDraws(merged([unviewed(density.mean)]), density.values, density.inputs)
        self._rest = OfDraws(graphs, density.values)

    def mean_reward(self, draws: Draws, x: Array, arm: Array | None = None) -> Array:
        """Return mean rewards (S, n) of contexts x (n, d); without `arm`, those of every arm (S, n,
        K)."""
        n = len(x)
        K = self.n_arms
        if K is not None and arm is None:
            means = self.mean_reward(draws, np.repeat(x, K, axis=0), np.tile(np.arange(K), n))
            return means.reshape(-1, n, K)
        rows = {"x": x} if arm is None else {"x": x, "arm": arm}
        S = len(next(iter(draws.values())))
        width = sum(draws[k].size for k in self.names) // max(1, S)
        # draws at a time, so that intermediate arrays (S, n, D) stay in the cache
        step = max(1, AT_ONCE // max(1, n * width))
        out = np.empty((S, n))
        for s in range(0, S, step):
            piece = {k: draws[k][s : s + step] for k in self.names}
            [out[s : s + step]] = self._mean(piece, rows)
        return out

    def rest(self, draws: Draws) -> dict[str, Array]:
        """Return the deterministic quantities by name, each (S, *shape)."""
        S = len(next(iter(draws.values())))
        values = self._rest(draws)
        named = zip(self.deterministic.items(), values, strict=True)
        return {k: np.broadcast_to(v, (S, *shape)) for (k, shape), v in named}


def _shapes(variables: list[Any]) -> list[tuple[int, ...]]:
    """Return the shapes of some quantities, from their types or else by computing them."""
    shapes = [v.type.shape for v in variables]
    if any(k is None for shape in shapes for k in shape):
        shapes = [tuple(v.shape.eval(mode=UNCOMPILED_MODE)) for v in variables]
    return shapes
