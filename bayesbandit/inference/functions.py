"""What a built model computes beside its method, compiled when it is first asked for, and once for
all plans of the model."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from bayesbandit.inference.base import COMPILE
from bayesbandit.inference.glm.regression import Regression, regression
from bayesbandit.inference.pymc_model.likelihood import Likelihood
from bayesbandit.inference.pymc_model.outcomes import Outcomes
from bayesbandit.inference.pymc_model.prior import PriorDraws

if TYPE_CHECKING:
    import pymc as pm


class Functions:
    """Of a built model, and of the engine in whose name it is asked about."""

    def __init__(self, built: pm.Model, engine: str) -> None:
        self._built, self._engine = built, engine

    @cached_property
    def outcomes(self) -> Outcomes:
        """Mean rewards and deterministic quantities as functions of draws."""
        with COMPILE:
            return Outcomes(self._built)

    @cached_property
    def likelihood(self) -> Likelihood:
        """The terms of the log density as functions of draws, and which rewards are impossible."""
        with COMPILE:
            return Likelihood(self._built)

    @cached_property
    def prior(self) -> PriorDraws:
        """Draws without data."""
        return PriorDraws(self._built)

    @cached_property
    def regression(self) -> Regression:
        """The generalised linear model that the model is; or else the refusal."""
        return regression(self._built, self._engine)
