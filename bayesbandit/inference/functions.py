"""What is known of a built model: which engines fit it, and what is compiled of it."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.inference.base import COMPILE, Engine, Method, Refusal
from bayesbandit.inference.glm.regression import Regression, regression
from bayesbandit.inference.graph_analysis.density import containers, read
from bayesbandit.inference.pymc_model.log_density import LogDensity
from bayesbandit.inference.pymc_model.outcomes import Outcomes
from bayesbandit.inference.pymc_model.possible_rewards import PossibleRewards
from bayesbandit.inference.pymc_model.prior import PriorDraws

if TYPE_CHECKING:
    import pymc as pm


class Functions:
    """Functions of a built model, each compiled on first use, once for all plans of the model.

    made: the digest of `built`. plans: of the model, by what was asked for.
    """

    def __init__(self, built: pm.Model, made: str | None = None) -> None:
        self.built = built
        self.made = made
        self.plans: dict[Hashable, Any] = {}
        self._methods: dict[Engine, Method | Refusal] = {}

    def match(self, engine: Engine, built: pm.Model) -> Method | Refusal:
        """Return what an engine makes of the model. built: the same on rows that it may refuse."""
        method = self._methods.get(engine)
        if method is None:
            with np.errstate(all="ignore"):  # logarithms of rewards that mean nothing
                method = engine.match(built)
            if not (isinstance(method, Refusal) and method.of_rows):
                self._methods[engine] = method
        return method

    @property
    def nbytes(self) -> int:
        """The bytes of the model's rows."""
        return sum(v.get_value(borrow=True).nbytes for v in containers(self.built).values())

    @cached_property
    def outcomes(self) -> Outcomes:
        """Mean rewards and deterministic quantities as functions of draws."""
        with COMPILE:
            return Outcomes(self.built)

    @cached_property
    def likelihood(self) -> PossibleRewards:
        """The rewards that the likelihood allows."""
        return PossibleRewards(self.built, self.row_likelihood, self.prior)

    @cached_property
    def row_likelihood(self) -> LogDensity:
        """The log likelihood of rows under draws, and the joint log density."""
        return LogDensity(read(self.built))

    @cached_property
    def prior(self) -> PriorDraws:
        """Draws from the prior."""
        return PriorDraws(self.built)

    @cached_property
    def regression(self) -> Regression:
        """The model as a generalised linear model; raise `NotThisEngine` if it is none."""
        return regression(self.built, "laplace")
