"""SuperLinUCB (Chu et al. 2011) and SuperBLUCB (paper, Appendix A)."""

from __future__ import annotations

from typing import Any

import bayesbandit as bb
from bayesbandit.checks import Arms, Seed
from bayesbandit.systems.super_ucb.belief import SuperUCB


@bb.preset()
def SuperLinUCB(
    arms: Arms, n_features: int | None = None, horizon: int = 10_000, alpha: float | None = None,
    ridge: float = 1.0, intercept: bool = True, seed: Seed = 0, **settings: Any,
) -> tuple[SuperUCB, bb.Policy, None]:  # fmt: skip
    """SuperLinUCB (Chu et al. 2011): √T regret, by levels whose rewards are independent.

    horizon, alpha, ridge, intercept: of `SuperUCB`. settings: of `Bandit` (history, encoder,
    min_probability). A reward that comes after later decisions is learned at the level where its
    arm is wide by then.
    """
    return SuperUCB(horizon, alpha, ridge, intercept), bb.Thompson(), None


@bb.preset()
def SuperBLUCB(
    arms: Arms, n_features: int | None = None, horizon: int = 10_000, alpha: float | None = None,
    ridge: float = 1.0, intercept: bool = True, clip: float = 0.1, seed: Seed = 0,
    **settings: Any,
) -> tuple[SuperUCB, bb.Policy, bb.Balance]:  # fmt: skip
    """SuperBLUCB (paper, Appendix A): SuperLinUCB under weights 1 / max(γ, estimated propensity).

    See `SuperLinUCB`. Rounds that are told together are weighed, and shared out among the levels,
    by one estimate of their propensities; one by one, by those of their time. Later decisions
    differ.
    """
    model, balance = (
        SuperUCB(horizon, alpha, ridge, intercept),
        bb.InversePropensity(clip, "estimated"),
    )
    return model, bb.Thompson(), balance
