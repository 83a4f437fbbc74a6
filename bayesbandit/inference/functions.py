"""What is known of a built model: which engines fit it, and what is compiled of it."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.inference.base import COMPILE, Engine, Method, Refusal
from bayesbandit.inference.glm.regression import Regression, regression
from bayesbandit.inference.graph_analysis.density import containers, read, rows_of
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
        """Return what an engine makes of the model. built: the same model, on the rows at hand."""
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
    def arms_are_alike(self) -> bool:
        """Whether a model over arms stays the same where these change their places.

        Then neither the log density nor the mean rewards change at random points, whose elements by
        arm, and the rows' arms, are moved on by one.
        """
        rows = rows_of(self.built)
        K = len(self.built.coords["arm"] or ())
        rng = np.random.default_rng(0)
        dims = self.built.named_vars_to_dims
        here = dict(self.prior.points())
        there = {}
        for v in self.built.free_RVs:
            if self.built.rvs_to_transforms[v] is None:  # a flat prior has no draws
                here[v.name] = here[v.name] + rng.normal(size=here[v.name].shape)
            there[v.name] = here[v.name]
            for axis, dim in enumerate(dims.get(v.name) or (), 1):
                if dim == "arm":
                    there[v.name] = np.roll(there[v.name], 1, axis)
        moved = rows | {"arm": (rows["arm"] + 1) % K}
        density = self.row_likelihood.joint
        mean = self.outcomes.mean_reward
        before = density(here, rows), mean(here, rows["x"], rows["arm"])
        after = density(there, moved), mean(there, rows["x"], moved["arm"])
        return all(map(partial(np.allclose, rtol=1e-8, equal_nan=True), before, after))

    @cached_property
    def regression(self) -> Regression:
        """The model as a generalised linear model; raise `NotThisEngine` if it is none."""
        return regression(self.built, "laplace")
