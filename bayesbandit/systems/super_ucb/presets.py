"""SuperLinUCB (Chu et al. 2011) and SuperBLUCB (paper, Appendix A)."""

from __future__ import annotations

from typing import Any

import bayesbandit as bb
from bayesbandit.checks import Alpha, Arms, Seed
from bayesbandit.systems.super_ucb.belief import SuperUCB


@bb.extend.preset(SuperUCB)
def SuperLinUCB(
    arms: Arms, n_features: int | None = None, horizon: int = 10_000, alpha: float | None = None,
    ridge: float = 1.0, intercept: bool = True, seed: Seed = 0, *,
    min_probability: Alpha = 0.0, **settings: Any,
) -> bb.Bandit:  # fmt: skip
    """Return a bandit of SuperLinUCB (Chu et al. 2011), with √T regret: the rewards of a level are
    independent.

    A delayed reward goes to the level where its arm's width is large when it arrives.
    """
    model = SuperUCB(horizon, alpha, ridge, intercept)
    policy = bb.Thompson(min_probability=min_probability)
    return bb.Bandit(arms, model, policy, n_features=n_features, seed=seed, **settings)


@bb.extend.preset(SuperUCB)
def SuperBLUCB(
    arms: Arms, n_features: int | None = None, horizon: int = 10_000, alpha: float | None = None,
    ridge: float = 1.0, intercept: bool = True, clip: float = 0.1, seed: Seed = 0, *,
    min_probability: Alpha = 0.0, **settings: Any,
) -> bb.Bandit:  # fmt: skip
    """Return a bandit of SuperBLUCB: SuperLinUCB with weights 1 / max(γ, estimated propensity).

    See the paper's Appendix A and `SuperLinUCB`. Rounds observed as a batch get weights and levels
    from one estimate of the propensities. Rounds observed one by one get a new estimate each, so
    later decisions can differ.
    """
    model = SuperUCB(horizon, alpha, ridge, intercept)
    policy = bb.Thompson(min_probability=min_probability)
    balance = bb.InversePropensity(clip, "estimated")
    return bb.Bandit(arms, model, policy, balance, n_features=n_features, seed=seed, **settings)
