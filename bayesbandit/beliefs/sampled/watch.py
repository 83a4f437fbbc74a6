"""Warnings about a bandit's posterior draws."""

from __future__ import annotations

import warnings

from bayesbandit.checks import Array
from bayesbandit.forms import picked
from bayesbandit.inference.draws import PoorDiagnostics, SampledDraws, mixed_badly
from bayesbandit.inference.plan import Plan

MIN_ROUNDS_TO_CHECK = 16
CHECKED_CONTEXTS = 4  # the latest ones
MAX_DIVERGENT_SHARE = 0.01


class Watch:
    """A check of posterior draws each time that their rounds have doubled.

    It complains once of draws, and once of a refit in the background that failed. Refits may run in
    other threads, so `warn` gives the warning where the draws are used. Forks share it.
    """

    def __init__(self) -> None:
        self.complained = self.failed = False
        self.complaint = ""  # until the user has been warned
        self._order: dict[int, int] = {}  # by posterior: the bit length of its number of rounds

    def check(self, plan: Plan, sampled: SampledDraws, g: int, x: Array) -> None:
        """Check new draws of posterior g, whose rounds have contexts x (n, d)."""
        n = len(x)
        if self.complained or n < MIN_ROUNDS_TO_CHECK or self._order.get(g) == n.bit_length():
            return
        self._order[g] = n.bit_length()
        draws = picked(sampled.values, 0)
        means = plan.outcomes.mean_reward(draws, x[-CHECKED_CONTEXTS:])
        S = len(means)
        poor = mixed_badly(means.reshape(S, -1))
        if (sampled.divergences or 0) > MAX_DIVERGENT_SHARE * S:
            poor = f"{sampled.divergences} of {S} trajectories diverged"
        if not poor:
            return
        self.complained = True
        arm = "the arms together" if plan.n_arms is not None else f"arm number {g}"
        self.complaint = (
            f"{plan.model.name} by {plan.engine}, {arm}, {n} rounds: {poor}. Decisions are made "
            f"from these draws: give the bandit more of them (draws={4 * S}), or reparametrise the "
            "model. Said once a bandit."
        )

    def warn(self) -> None:
        """Warn of the draws, if there is a complaint."""
        if self.complaint:
            complaint = self.complaint
            self.complaint = ""
            warnings.warn(complaint, PoorDiagnostics, stacklevel=3)

    def warn_of_failure(self, plan: Plan, error: BaseException) -> None:
        """Warn once of a refit in the background that failed."""
        if not self.failed:
            self.failed = True
            warnings.warn(
                f"{plan.model.name}: a refit in the background failed: {error}. The old draws go "
                "on; it is tried again with more rounds. Said once a bandit.",
                RuntimeWarning,
                stacklevel=3,
            )
