"""Draws of a model's free variables without data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayesbandit.engines.base import COMPILE
from bayesbandit.engines.reading.quadratic import PYTHON

if TYPE_CHECKING:
    import pymc as pm

PULLED = (0.01, 0.1, 0.3, 1.0)  # shares of the way from the initial point to a draw
SIZE = 20  # draws of the prior, and at most so many of the posterior


def prior_draws(model: pm.Model, size: int, seed: int) -> dict[str, np.ndarray]:
    """Independent draws by name, (size, *shape); none where the prior is improper, since Flat and
    HalfFlat cannot be drawn from."""
    import pymc as pm

    try:
        with COMPILE:
            drawn = pm.draw(model.free_RVs, draws=size, random_seed=seed, mode=PYTHON)
    except NotImplementedError:
        return {}
    return {str(v.name): np.asarray(d) for v, d in zip(model.free_RVs, drawn, strict=True)}


def points(model: pm.Model) -> dict[str, np.ndarray]:
    """The initial point and, where the prior is proper, points from it to draws of the prior: by
    name, (S, *shape)."""
    from pymc.initial_point import make_initial_point_fn

    with COMPILE:
        centre = make_initial_point_fn(model=model, return_transformed=False)(0)
    drawn, found = prior_draws(model, SIZE, 0), {}
    for name in (str(v.name) for v in model.free_RVs):
        middle = np.asarray(centre[name])[None]
        way = drawn.get(name, middle) - middle
        found[name] = np.concatenate([middle, *(middle + s * way for s in PULLED)])
    return found
