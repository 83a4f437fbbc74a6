"""What is computed from a built model, each part compiled when it is first used."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from bayesbandit.inference.base import COMPILE
from bayesbandit.inference.glm.regression import Regression, regression
from bayesbandit.inference.pymc_model.log_density import LogDensity
from bayesbandit.inference.pymc_model.outcomes import Outcomes
from bayesbandit.inference.pymc_model.possible_rewards import PossibleRewards
from bayesbandit.inference.pymc_model.prior import PriorDraws
from bayesbandit.inference.pymc_model.unbounded import Unbounded

if TYPE_CHECKING:
    import pymc as pm


class Functions:
    """Functions of a built model, each compiled on first use, once for all plans of the model.

    engine: the engine that a refusal names.
    """

    def __init__(self, built: pm.Model, engine: str) -> None:
        self._built, self._engine = built, engine

    @cached_property
    def outcomes(self) -> Outcomes:
        """Mean rewards and deterministic quantities as functions of draws."""
        with COMPILE:
            return Outcomes(self._built)

    @cached_property
    def likelihood(self) -> PossibleRewards:
        """The rewards that the likelihood allows."""
        return PossibleRewards(self._built, self.row_likelihood, self.prior)

    @cached_property
    def row_likelihood(self) -> LogDensity:
        """The log likelihood of rows under draws, and the joint log density."""
        return LogDensity(self._built)

    @cached_property
    def unbounded(self) -> Unbounded:
        """The map to the variables from the space in which samplers move."""
        return Unbounded(self._built)

    @cached_property
    def prior(self) -> PriorDraws:
        """Draws from the prior."""
        return PriorDraws(self._built)

    @cached_property
    def regression(self) -> Regression:
        """The model as a generalised linear model; raise `NotThisEngine` if it is none."""
        return regression(self._built, self._engine)
