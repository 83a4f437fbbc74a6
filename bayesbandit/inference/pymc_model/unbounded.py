"""A model's free variables in the space without bounds, where a positive variable is its logarithm.

It is the space in which samplers move. Its points z (D,) are the values of all variables, one after
the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace

from bayesbandit.inference.base import COMPILE
from bayesbandit.inference.graph_analysis.density import lengths
from bayesbandit.inference.graph_analysis.rewrites import guarded, lowered
from bayesbandit.inference.pymc_model.of_draws import OfDraws, with_known_lengths

if TYPE_CHECKING:
    import pymc as pm


class Unbounded:
    """Functions of points z (S, D), compiled when first used.

    dim: D. shapes: of the declared variables, by name.
    """

    def __init__(self, model: pm.Model) -> None:
        self._model = model
        self.shapes = lengths(model)
        point = model.initial_point()
        values = (model.rvs_to_values[v] for v in model.free_RVs)
        self._parts = {v: np.shape(point[v.name]) for v in values}
        self.dim = sum(map(math.prod, self._parts.values()))

    def declared(self, z: np.ndarray) -> dict[str, np.ndarray]:
        """Return the declared variables at z (S, D): by name, (S, *shape)."""
        found = zip(self.shapes.items(), self._declared({"z": z}), strict=True)
        return {k: np.broadcast_to(v, (len(z), *shape)) for (k, shape), v in found}

    def log_jacobian(self, z: np.ndarray) -> np.ndarray:
        """Return the log determinant (S,) of the map to the declared variables at z (S, D).

        It is what a log density has to be raised by.
        """
        return np.zeros(len(z)) + sum(self._jacobian({"z": z}))

    def prepare(self) -> None:
        """Compile before the first points come."""
        _ = self._declared, self._jacobian

    @cached_property
    def _declared(self) -> OfDraws:
        with COMPILE:
            return self._compiled(self._model.replace_rvs_by_values(list(self._model.free_RVs)))

    @cached_property
    def _jacobian(self) -> OfDraws:
        model = self._model
        bounded = [v for v in model.free_RVs if model.rvs_to_transforms[v] is not None]
        with COMPILE:
            there, here = (model.logp(bounded, jacobian=by, sum=False) for by in (True, False))
            pairs = zip(lowered(there), lowered(here), strict=True)
            return self._compiled([pt.sum(a) - pt.sum(b) for a, b in pairs])

    def _compiled(self, graphs: Sequence[Variable]) -> OfDraws:
        """Return functions of the values of all variables as functions of z."""
        z = pt.vector("z")
        parts = {}
        stop = 0
        for v, shape in self._parts.items():
            begin = stop
            stop = stop + math.prod(shape)
            flat = z[begin:stop].reshape(shape)
            parts[v] = v.type.filter_variable(flat, allow_convert=True)
        graphs = clone_replace(list(graphs), parts, rebuild_strict=False)
        return OfDraws(guarded(with_known_lengths(graphs)), {"z": z})
