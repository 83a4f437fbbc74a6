"""Diagnostics of a bandit's posterior draws: a warning if they are poor."""

from __future__ import annotations

import numpy as np

from bayesbandit.inference.draws import SampledDraws, mixed_badly
from bayesbandit.inference.plan import Plan

FROM, LATEST = 16, 4  # draws are checked from 16 rounds on, at the latest 4 contexts
FEW = 0.01  # the share of trajectories that may diverge


class Watch:
    """A check of a posterior's draws each time its rounds have doubled; it complains only once.

    failed: whether the user was warned that a refit in the background failed.
    """

    def __init__(self) -> None:
        self.warned = self.failed = False
        self._order: dict[int, int] = {}  # by posterior: the bit length of its number of rounds

    def __call__(self, plan: Plan, sampled: SampledDraws, g: int, x: np.ndarray) -> str:
        """Return what is wrong with new draws of one chain of posterior g, whose rounds have
        contexts x (n, d); "" if nothing is."""
        n = len(x)
        if self.warned or n < FROM or self._order.get(g) == n.bit_length():
            return ""
        self._order[g] = n.bit_length()
        means = plan.mean_reward({k: v[0] for k, v in sampled.values.items()}, x[-LATEST:])
        S = len(means)
        poor = mixed_badly(means.reshape(S, -1))
        if (sampled.divergences or 0) > FEW * S:
            poor = f"{sampled.divergences} of {S} trajectories diverged"
        if not poor:
            return ""
        self.warned = True
        arm = "the arms together" if plan.n_arms is not None else f"arm number {g}"
        return (
            f"{plan.model.name} by {plan.engine}, {arm}, {n} rounds: {poor}. Decisions are made "
            f"from these draws: give the bandit more of them (draws={4 * S}), or reparametrise the "
            "model. Said once a bandit."
        )
