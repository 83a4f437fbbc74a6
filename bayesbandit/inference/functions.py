"""What is computed from a built model, each part compiled when it is first used."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from bayesbandit.inference.base import COMPILE
from bayesbandit.inference.glm.regression import Regression, regression
from bayesbandit.inference.pymc_model.likelihood import Likelihood
from bayesbandit.inference.pymc_model.outcomes import Outcomes
from bayesbandit.inference.pymc_model.prior import PriorDraws
from bayesbandit.inference.pymc_model.row_likelihood import RowLikelihood
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
    def likelihood(self) -> Likelihood:
        """The log density of each term at draws and rows; it also finds impossible rewards."""
        with COMPILE:
            return Likelihood(self._built)

    @cached_property
    def row_likelihood(self) -> RowLikelihood:
        """The log likelihood of new rows under draws, where rows are independent."""
        return RowLikelihood(self._built)

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
