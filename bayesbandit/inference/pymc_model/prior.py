"""Draws of a model's free variables without data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayesbandit.inference.base import COMPILE
from bayesbandit.inference.graph_analysis.quadratic import PYTHON

if TYPE_CHECKING:
    import pymc as pm

PULLED = (0.01, 0.1, 0.3, 1.0)  # shares of the way from the initial point to a draw
SIZE = 20  # draws of the prior, and at most so many of the posterior


class PriorDraws:
    """A model's free variables as a function of a seed, compiled once."""

    def __init__(self, model: pm.Model) -> None:
        from pymc.pytensorf import collect_default_updates, compile

        self._names = [str(v.name) for v in model.free_RVs]
        with COMPILE:
            self._generators = list(collect_default_updates(outputs=model.free_RVs))
            self._function = compile([], model.free_RVs, mode=PYTHON)

    def __call__(self, size: int, seed: int) -> dict[str, np.ndarray]:
        """Return independent draws by name, (size, *shape). There are none if the prior is
        improper: Flat and HalfFlat cannot be drawn from."""
        from pymc.pytensorf import reseed_rngs

        try:
            with COMPILE:  # one thread at a time
                reseed_rngs(self._generators, seed)
                drawn = [self._function() for _ in range(size)]
        except NotImplementedError:
            return {}
        return {k: np.stack(v) for k, v in zip(self._names, zip(*drawn, strict=True), strict=True)}


def points(model: pm.Model) -> dict[str, np.ndarray]:
    """Return by name, (S, *shape), the initial point and, if the prior is proper, points between it
    and draws of the prior."""
    from pymc.initial_point import make_initial_point_fn

    with COMPILE:
        centre = make_initial_point_fn(model=model, return_transformed=False)(0)
    drawn, points = PriorDraws(model)(SIZE, 0), {}
    for name in (str(v.name) for v in model.free_RVs):
        middle = np.asarray(centre[name])[None]
        way = drawn.get(name, middle) - middle
        points[name] = np.concatenate([middle, *(middle + s * way for s in PULLED)])
    return points
