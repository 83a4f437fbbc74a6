"""Honest forests (paper, sections 2.2 and 4.2)."""

from __future__ import annotations

from typing import Any

import bayesbandit as bb
from bayesbandit.checks import Alpha, Arms, Seed
from bayesbandit.systems.forest.belief import Forest


@bb.extend.preset(Forest)
def ForestTS(
    arms: Arms, n_features: int | None = None, alpha: Alpha = 1.0, seed: Seed = 0,
    balance: bb.extend.Balance | None = None, *, min_probability: Alpha = 0.0, **settings: Any,
) -> bb.Bandit:  # fmt: skip
    """Return a bandit of generalized random forest Thompson sampling (paper, sections 2.2 and 4.2).

    It draws from N(mean, α² variance), with the variance by little bags.
    """
    model = Forest(**bb.extend.pop_fields(Forest, settings))
    policy = bb.Thompson(alpha, min_probability=min_probability)
    return bb.Bandit(arms, model, policy, balance, n_features=n_features, seed=seed, **settings)


@bb.extend.preset(Forest)
def ForestUCB(
    arms: Arms, n_features: int | None = None, alpha: Alpha = 1.0, seed: Seed = 0,
    balance: bb.extend.Balance | None = None, *, min_probability: Alpha = 0.0, **settings: Any,
) -> bb.Bandit:  # fmt: skip
    """Return a bandit of generalized random forest UCB, which chooses the largest mean + α sd."""
    model = Forest(**bb.extend.pop_fields(Forest, settings))
    policy = bb.UCB(alpha, min_probability=min_probability)
    return bb.Bandit(arms, model, policy, balance, n_features=n_features, seed=seed, **settings)
