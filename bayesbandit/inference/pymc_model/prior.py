"""Values of a model's free variables without data: its initial point, and draws of the prior."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import Array
from bayesbandit.inference.base import COMPILE
from bayesbandit.inference.graph_analysis.transforms import transform_name
from bayesbandit.inference.uncompiled import UNCOMPILED_MODE

if TYPE_CHECKING:
    import pymc as pm

SHARES_TO_DRAW = (0.01, 0.1, 0.3, 1.0)  # shares of the way from the initial point to a draw
PRIOR_DRAWS = 20  # draws of the prior, and at most so many of the posterior


class PriorDraws:
    """A model's free variables as a function of a seed, compiled when first used."""

    def __init__(self, model: pm.Model) -> None:
        self._model = model
        self._names = [str(v.name) for v in model.free_RVs]
        names = (transform_name(model.rvs_to_transforms[v]) for v in model.free_RVs)
        self._ordered = [name == "ordered" for name in names]

    def __call__(self, size: int, seed: int) -> dict[str, Array]:
        """Return independent draws by name, (size, *shape).

        There are none if the prior is improper: Flat and HalfFlat cannot be drawn from. PyMC draws
        ordered variables without their order; sorted, they are draws where the prior of each number
        is the same.
        """
        from pymc.pytensorf import reseed_rngs

        try:
            with COMPILE:  # one thread at a time
                function, generators = self._compiled
                reseed_rngs(generators, seed)
                drawn = [function() for _ in range(size)]
        except NotImplementedError:
            return {}
        columns = [np.stack(v) for v in zip(*drawn, strict=True)]
        columns = [np.sort(v) if o else v for v, o in zip(columns, self._ordered, strict=True)]
        return dict(zip(self._names, columns, strict=True))

    @cached_property
    def start(self) -> dict[str, Array]:
        """The initial point, by name, (1, *shape)."""
        from pymc.initial_point import make_initial_point_fn

        with COMPILE:
            point = make_initial_point_fn(model=self._model, return_transformed=False)(0)
        return {name: np.asarray(point[name])[None] for name in self._names}

    def points(self) -> dict[str, Array]:
        """Return by name, (S, *shape), points between the initial one and draws of the prior; the
        initial one alone if the prior is improper."""
        drawn = self(PRIOR_DRAWS, 0)
        points = {}
        for name, middle in self.start.items():
            way = drawn.get(name, middle) - middle
            # start + s (draw − start): a tenth of the way where all of it would overflow
            points[name] = np.concatenate([middle, *(middle + s * way for s in SHARES_TO_DRAW)])
        return points

    @cached_property
    def _compiled(self) -> tuple[Any, list[Any]]:
        """A function of nothing, and its random generators, which `compile` seeds at random."""
        from pymc.pytensorf import collect_default_updates, compile

        variables = self._model.free_RVs
        return compile([], variables, mode=UNCOMPILED_MODE), list(
            collect_default_updates(outputs=variables)
        )
