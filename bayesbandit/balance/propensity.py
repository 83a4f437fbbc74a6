"""Inverse-propensity weights (paper, section 2.3): known at the decision, pooled, or estimated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from bayesbandit.balance.reweighting import Estimated, Pooled, Reweighting
from bayesbandit.checks import integer, number, one_of
from bayesbandit.kernels.rounds import DECISION, GIVEN, UNWEIGHTED


@dataclass(frozen=True)
class Unweighted:
    """Every observation counts alike."""

    source = UNWEIGHTED
    clip = 1.0
    normalize = False

    def reweighting(self) -> None:
        """Weights of the past never change."""


@dataclass(frozen=True)
class InversePropensity:
    """Weight 1 / max(γ, p): each observation by the inverse of its arm's propensity.

    clip: γ in (0, 1].
    propensity: "decision", the exact probability at the moment of decision (what the theory
        needs); "pooled", the paper's Algorithm 1: the mean over past periods' policies,
        (1/t) Σ_s P_s(a best | x), uniform warm-up periods included; "estimated", the paper's
        Algorithm 2: a multinomial logistic regression of arm on context.
    normalize: scale each arm's weights to mean 1, so that they do not also weaken the penalty.
    refresh: for "pooled" and "estimated": when the pulled arm's past weights are settled anew, each
        time its rows have grown by a share (a float, .25 = 25 %; total cost near linear in the
        rounds) or every m of its rows (an int).
    snapshots: for "pooled": at most so many past posteriors are kept, evenly thinned.
    """

    clip: float = 0.1
    propensity: Literal["decision", "pooled", "estimated"] = "decision"
    normalize: bool = False
    refresh: float | int = 0.25
    snapshots: int = 32

    def __post_init__(self) -> None:
        number(self.clip, "clip", above=0, most=1)
        one_of(self.propensity, "propensity", ("decision", "pooled", "estimated"))
        one_of(self.normalize, "normalize", (True, False))
        if isinstance(self.refresh, float):
            number(self.refresh, "refresh, as a share of growth,", above=0)
        else:
            integer(self.refresh, "refresh, as a number of rows,", least=1)
        integer(self.snapshots, "snapshots", least=2)

    @cached_property
    def source(self) -> int:
        """Where the kernels find an observation's weight."""
        return DECISION if self.propensity == "decision" else GIVEN

    def next_due(self, n: int) -> int:
        """The number of an arm's rows at which its weights are next refreshed."""
        if isinstance(self.refresh, float):
            return max(n + 1, math.ceil(n * (1.0 + self.refresh)))
        return n + self.refresh

    def reweighting(self) -> Reweighting | None:
        """What settles past weights anew; None where they are known for good."""
        if self.propensity == "decision":
            return None
        estimator = Pooled(self.snapshots) if self.propensity == "pooled" else Estimated()
        return Reweighting(estimator, self.clip, self.next_due)
