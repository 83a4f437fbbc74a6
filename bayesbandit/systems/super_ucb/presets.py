"""SuperLinUCB (Chu et al. 2011) and SuperBLUCB (paper, Appendix A)."""

from __future__ import annotations

from typing import Any

from bayesbandit.bandit.bandit import Bandit
from bayesbandit.bandit.presets.arguments import Arms, Seed, made, takes
from bayesbandit.policies import Thompson
from bayesbandit.systems.super_ucb.belief import Levels
from bayesbandit.weighting.propensity import InversePropensity


@takes()
def SuperLinUCB(
    arms: Arms, n_features: int | None = None, horizon: int = 10_000, alpha: float | None = None,
    ridge: float = 1.0, intercept: bool = True, seed: Seed = 0, **settings: Any,
) -> Bandit:  # fmt: skip
    """SuperLinUCB (Chu et al. 2011): √T regret, by levels whose rewards are independent.

    horizon, alpha, ridge, intercept: of `Levels`. settings: of `Bandit` (history, encoder,
    min_probability). A reward that comes after later decisions is learned at the level where its
    arm is wide by then.
    """
    model = Levels(horizon, alpha, ridge, intercept)
    return made(arms, model, Thompson(), None, n_features, seed, settings)


@takes()
def SuperBLUCB(
    arms: Arms, n_features: int | None = None, horizon: int = 10_000, alpha: float | None = None,
    ridge: float = 1.0, intercept: bool = True, clip: float = 0.1, seed: Seed = 0,
    **settings: Any,
) -> Bandit:  # fmt: skip
    """SuperBLUCB (paper, Appendix A): SuperLinUCB under weights 1 / max(γ, estimated propensity).

    See `SuperLinUCB`. Rounds that are told together are weighed, and shared out among the levels,
    by one estimate of their propensities; one by one, by those of their time. Later decisions
    differ.
    """
    model, balance = Levels(horizon, alpha, ridge, intercept), InversePropensity(clip, "estimated")
    return made(arms, model, Thompson(), balance, n_features, seed, settings)
