"""LASSO against ridge with one schedule for all, in the sparse design of section 4.1, σ = 0.1.

In the study `lasso_ridge` the bootstrap bandits refit after every 20 rounds of an arm and choose λ
by cross-validation; LinTS learns every round and has λ = 1. Here is LinTS that learns after every
20 rounds of an arm, LinTS with λ by cross-validation, and LinTS with both; and LASSO with its
default schedule (growth by 10 %).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np

import bayesbandit as bb
from bayesbandit import evaluation
from bayesbandit.checks import Arms, Name, Seed
from bayesbandit.environments import SparseLinear
from bayesbandit_studies.lasso_ridge import LASSO, RIDGE
from bayesbandit_studies.tables import above, medians, paired

EVERY = 20  # rounds of an arm between two refits
FIRST = 3  # rounds of an arm before its first fit: `Bootstrap.least`
GROWTH = f"{LASSO}, growth 10 %"
STEPS = f"LinTS, every {EVERY}"
CV = "LinTS, λ by CV"
MATCHED = f"{STEPS}, λ by CV"


class InSteps:
    """A bandit that learns an arm's rewards in one step after every so many of its rounds."""

    def __init__(self, bandit: bb.Bandit, every: int) -> None:
        self.bandit, self.schedule = bandit, bb.extend.Schedule(every)
        self.waiting: dict[Name, list[tuple[bb.Decision, float]]] = {arm: [] for arm in bandit.arms}
        self.due = dict.fromkeys(bandit.arms, FIRST)
        self.rounds = dict.fromkeys(bandit.arms, 0)

    def __repr__(self) -> str:
        return f"InSteps({self.bandit!r}, {self.schedule.every}, {FIRST})"

    @property
    def arms(self) -> tuple[Name, ...]:
        return self.bandit.arms

    @property
    def n_features(self) -> int:
        return self.bandit.n_features

    def choose(self, x: np.ndarray) -> bb.Decision:
        """Choose by what has been learned."""
        return self.bandit.choose(x)

    def observe(self, decision: bb.Decision, reward: float) -> None:
        """Keep a reward, and learn those of its arm where a step is due."""
        arm: Any = decision.arm
        self.waiting[arm].append((decision, reward))
        self.rounds[arm] += 1
        if self.rounds[arm] == self.due[arm]:
            for kept, its_reward in self.waiting[arm]:
                self.bandit.observe(kept, its_reward)
            self.waiting[arm].clear()
            self.due[arm] = self.schedule.next_due(self.rounds[arm])


def in_steps(
    arms: Arms, n_features: int, ridge: float | Literal["cv"] = 1.0, seed: Seed = 0
) -> InSteps:
    """Return LinTS that learns after every 20 rounds of an arm, and at first after three."""
    return InSteps(bb.LinTS(arms, n_features, ridge=ridge, seed=seed), EVERY)


PLAYERS: dict[str, Callable[..., Any]] = {
    LASSO: partial(bb.BootstrapLassoTS, refit_every=EVERY),
    RIDGE: partial(bb.BootstrapRidgeTS, refit_every=EVERY),
    GROWTH: bb.BootstrapLassoTS,
    STEPS: in_steps,
    CV: partial(bb.LinTS, ridge="cv"),
    MATCHED: partial(in_steps, ridge="cv"),
    "LinTS": bb.LinTS,
}
PAIRS = [
    (RIDGE, LASSO), (GROWTH, LASSO), (STEPS, "LinTS"), (CV, "LinTS"), (STEPS, LASSO),
    ("LinTS", GROWTH), (MATCHED, LASSO), (MATCHED, RIDGE),
]  # fmt: skip


STUDY = bb.extend.Study(
    title="Regret of LASSO and ridge with matched schedules and λ",
    environments=[SparseLinear(sigma=0.1)],
    players=PLAYERS,
    table=evaluation.regrets,
    printed=medians,
    details=paired(PAIRS),
    figures=above(LASSO),
    replications=6,
    horizon=1000,
    points=50,
    quick={"replications": 2, "horizon": 200},
)
