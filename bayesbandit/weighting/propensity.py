"""Inverse-propensity weights (paper, section 2.3): known at the decision, pooled, or estimated."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from bayesbandit.beliefs.base import Belief
from bayesbandit.checks import LARGEST, integer, number, one_of
from bayesbandit.history import History
from bayesbandit.kernels.rounds import DECISION, GIVEN, UNWEIGHTED
from bayesbandit.runtime.savable import savable
from bayesbandit.schedule import Schedule
from bayesbandit.weighting.estimated import Estimated
from bayesbandit.weighting.pooled import Pooled
from bayesbandit.weighting.reweighting import Inverse


@savable
@dataclass(frozen=True)
class Unweighted:
    """Every observation counts alike."""

    compiled: ClassVar[bool] = True
    source: ClassVar[int] = UNWEIGHTED
    clip: ClassVar[float] = 1.0
    normalize: ClassVar[bool] = False
    schedule: ClassVar[Schedule] = Schedule(1)

    def weights(self, history: History, belief: Belief) -> np.ndarray:
        return np.ones(len(history))

    def weigher(self) -> None:
        """Weights of the past never change."""


@savable
@dataclass(frozen=True)
class InversePropensity:
    """Weight 1 / max(γ, p): each observation by the inverse of its arm's propensity.

    Rounds that were logged without propensities are weighted by the probabilities that the bandit
    itself would give at that moment. That is right for its own decisions alone, and for another
    system's log it is wrong: give `update` the propensities, or let them be "estimated".

    clip: γ in (0, 1].
    propensity: "decision", the exact probability at the moment of decision (what the theory
        needs); "pooled", the paper's Algorithm 1: the mean over past periods' policies,
        (1/t) Σ_s P_s(a best | x), uniform warm-up periods included; "estimated", the paper's
        Algorithm 2: a multinomial logistic regression of arm on context.
    normalize: scale each arm's weights to mean 1, so that they do not also weaken the penalty; all
        arms' together, where a declared model of all arms has an exact posterior.
    refit_every: for "pooled" and "estimated": when the pulled arm's past weights are settled anew,
        each time its rows have grown by a share (a float, .25 = 25 %; total cost near linear in
        the rounds) or every m of its rows (an int).
    snapshots: for "pooled": at most so many past posteriors are kept, evenly thinned.
    refresh: whose weights are settled anew then: the "pulled" arm's (the listing of Algorithm 2)
        or those of "all" arms (as section 3 may be read).
    """

    clip: float = 0.1
    propensity: Literal["decision", "pooled", "estimated"] = "decision"
    normalize: bool = False
    refit_every: float | int = 0.25
    snapshots: int = 32
    refresh: Literal["pulled", "all"] = "pulled"
    compiled: ClassVar[bool] = True

    def __post_init__(self) -> None:
        number(self.clip, "clip", above=0, most=1, smallest=1 / LARGEST)
        one_of(self.propensity, "propensity", ("decision", "pooled", "estimated"))
        one_of(self.normalize, "normalize", (True, False))
        Schedule(self.refit_every)
        one_of(self.refresh, "refresh", ("pulled", "all"))
        integer(self.snapshots, "snapshots", least=2)

    @cached_property
    def source(self) -> int:
        """Where the kernels find an observation's weight."""
        return DECISION if self.propensity == "decision" else GIVEN

    @property
    def schedule(self) -> Schedule:
        """When past weights are settled anew, where they change."""
        return Schedule(self.refit_every)

    def weights(self, history: History, belief: Belief) -> np.ndarray:
        """1 / max(γ, p) of all rounds (n,); of those without a propensity what they weigh now."""
        if self.propensity == "pooled":
            raise TypeError("pooled propensities are of a bandit's past beliefs, not the latest")
        p = history.propensity
        if self.propensity == "estimated":
            estimator, rows = Estimated(), history.ordered()
            estimator.learn(history)
            for arm in estimator.arms:
                mine = history.arm == arm
                p[mine] = estimator.of(arm, rows[mine], history.layout)
        return np.where(np.isnan(p), history.weight, 1.0 / np.maximum(self.clip, p))

    def weigher(self) -> Inverse | None:
        """The propensities of one bandit's past; None where they are known for good."""
        if self.propensity == "decision":
            return None
        estimator = Pooled(self.snapshots) if self.propensity == "pooled" else Estimated()
        return Inverse(estimator, self.clip)
