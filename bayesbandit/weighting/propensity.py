"""Inverse-propensity weights (paper, section 2.3; (6) of mathematics.md), with exact, pooled or
estimated propensities."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from bayesbandit.beliefs.base import Belief
from bayesbandit.checks import MAX_ABS_VALUE, Array, integer, number, one_of
from bayesbandit.history import History
from bayesbandit.kernels.rounds import DECISION, GIVEN, UNWEIGHTED
from bayesbandit.runtime.savable import savable
from bayesbandit.runtime.shown import settings_repr
from bayesbandit.schedule import Schedule
from bayesbandit.weighting.estimated import Estimated
from bayesbandit.weighting.pooled import Pooled
from bayesbandit.weighting.reweighting import Inverse


@savable
@dataclass(frozen=True)
class Unweighted:
    """The balance that gives every observation the weight 1."""

    compiled: ClassVar[bool] = True
    source: ClassVar[int] = UNWEIGHTED
    clip: ClassVar[float] = 1.0

    def weights(self, history: History, belief: Belief) -> Array:
        return np.ones(len(history))

    def reweighting(self) -> None:
        """Return None: weights of the past never change."""


@savable
@dataclass(frozen=True)
class InversePropensity:
    """The balance with weights 1 / max(γ, p), where p is the propensity of the chosen arm.

    A round logged without a propensity gets the bandit's current probability as p. That is wrong
    for another system's log: give `update` the propensities, or choose "estimated".

    clip: γ in (0, 1].
    propensity: "decision" is the exact probability at the moment of decision, as the theory needs.
        "pooled" (paper, Algorithm 1) is the mean over past periods' policies,
        (1/t) Σ_s P_s(a best | x). Uniform warm-up periods count too. "estimated" (paper, Algorithm
        2) is a multinomial logistic regression of arm on context.
    normalize: rescale each arm's weights to average 1, so that they do not weaken the penalty. The
        weights of all arms are rescaled together if one declared model with an exact posterior has
        all arms.
    refit_every: for "pooled" and "estimated": when an arm's past rounds are reweighted. A float is
        a share of growth of its rounds (0.25 = 25 %), so that the total cost is nearly linear. An
        int m is every m of its rounds.
    snapshots: for "pooled": the largest number of past posteriors that are kept, evenly thinned.
    refresh: the arms that are then reweighted: the "pulled" arm (the pseudocode of Algorithm 2) or
        "all" arms (a possible reading of section 3).
    """

    __repr__ = settings_repr

    clip: float = 0.1
    propensity: Literal["decision", "pooled", "estimated"] = "decision"
    normalize: bool = False
    refit_every: float | int = 0.25
    snapshots: int = 32
    refresh: Literal["pulled", "all"] = "pulled"
    compiled: ClassVar[bool] = True

    def __post_init__(self) -> None:
        number(self.clip, "clip", above=0, most=1, smallest=1 / MAX_ABS_VALUE)
        one_of(self.propensity, "propensity", ("decision", "pooled", "estimated"))
        one_of(self.normalize, "normalize", (True, False))
        Schedule(self.refit_every)
        one_of(self.refresh, "refresh", ("pulled", "all"))
        integer(self.snapshots, "snapshots", least=2)

    @cached_property
    def source(self) -> int:
        """The code by which the kernels know where to find an observation's weight."""
        return DECISION if self.propensity == "decision" else GIVEN

    @property
    def schedule(self) -> Schedule:
        """When past rounds are reweighted, if their weights change."""
        return Schedule(self.refit_every)

    def weights(self, history: History, belief: Belief) -> Array:
        """Return 1 / max(γ, p) of all rounds (n,).

        Rounds without a propensity keep their current weight. Raise TypeError if propensities are
        pooled, which needs the bandit's past beliefs.
        """
        if self.propensity == "pooled":
            raise TypeError("pooled propensities are of a bandit's past beliefs, not the latest")
        p = history.propensity
        if self.propensity == "estimated":
            estimator = Estimated(self)
            rows = history.ordered()
            estimator.learn(history, belief)
            for arm in estimator.arms:
                mine = history.arm == arm
                p[mine] = estimator.chance_of(arm, rows[mine], history.layout)
        return np.where(np.isnan(p), history.weight, 1.0 / np.maximum(self.clip, p))

    def reweighting(self) -> Inverse | None:
        """Return what estimates one bandit's weights; None where propensities never change."""
        if self.propensity == "pooled":
            return Pooled(self)
        return Estimated(self) if self.propensity == "estimated" else None
