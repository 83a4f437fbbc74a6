"""The prediction of mean rewards that increase with a normal linear predictor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from bayesbandit.checks import Array
from bayesbandit.inference.glm.families import Family
from bayesbandit.kernels.prob_best import by_draws
from bayesbandit.kernels.prob_best.points import JOINT_DRAWS, cells
from bayesbandit.predictions import ByMoments, Draws, Joint, LocationScale


@dataclass(frozen=True, eq=False)
class Increasing(ByMoments):
    """The prediction of mean rewards g(η) of normal η: an increasing g keeps the order of draws.

    So with α = 1 the order of the arms is that of η. Another α multiplies distances of the mean
    rewards, and not of η: α = 0 is greedy.
    """

    eta: LocationScale | Joint
    family: Family

    @cached_property
    def moments(self) -> tuple[Array, Array]:
        return self.family.moments(self.eta.mean, self.eta.sd)

    def draw(self, size: int, rng: np.random.Generator) -> Array:
        return self.family.mean(self.eta.draw(size, rng))

    def exact(self) -> Array:
        return self.eta.best()

    def best_scaled(self, i: int, alpha: float) -> Array:
        eta = self.eta
        if isinstance(eta, Joint):  # dependent arms, by the points of `Joint`
            z = ndtri((cells(eta.root.shape[2]) + 0.5) / JOINT_DRAWS)
            draws = self.family.mean(eta.mean[i, :, None] + eta.root[i] @ z)
            return Draws(draws[None], joint=True).best(alpha)[0]
        values = self.family.mean(eta.mean[i] + eta.scale[i] * ndtri(by_draws.LEVELS))
        return by_draws.scaled(self.mean[i], alpha, values)

    def among(self, arms: Array) -> Increasing:
        return Increasing(self.eta.among(arms), self.family)

    def ranking(self) -> Joint | None:
        return self.eta.ranking()
