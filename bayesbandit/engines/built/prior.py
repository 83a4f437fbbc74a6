"""Draws of a model's free variables without data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayesbandit.engines.base import COMPILE
from bayesbandit.engines.reading.quadratic import PYTHON

if TYPE_CHECKING:
    import pymc as pm


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
