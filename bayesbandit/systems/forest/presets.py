"""Honest forests (paper, sections 2.2 and 4.2)."""

from __future__ import annotations

from typing import Any

from bayesbandit.bandit.bandit import Bandit
from bayesbandit.bandit.presets.arguments import Arms, Seed, kept, made, takes
from bayesbandit.policies import UCB, Alpha, Policy, Thompson
from bayesbandit.systems.forest.belief import Forest
from bayesbandit.weighting.base import Balance


@takes(Forest)
def ForestTS(
    arms: Arms, n_features: int | None = None, alpha: Alpha = 1.0, seed: Seed = 0,
    balance: Balance | None = None, **settings: Any,
) -> Bandit:  # fmt: skip
    """Generalized random forest Thompson sampling (paper, sections 2.2 and 4.2): from N(mean, α²
    variance), the variance by little bags.

    settings: of `Forest` (trees, bag, share, min_leaf, tried, weights, floor, refit_every, least)
    and `Bandit` (history, encoder, min_probability).
    """
    return _forest(Thompson(alpha), arms, n_features, seed, balance, settings)


@takes(Forest)
def ForestUCB(
    arms: Arms, n_features: int | None = None, alpha: Alpha = 1.0, seed: Seed = 0,
    balance: Balance | None = None, **settings: Any,
) -> Bandit:  # fmt: skip
    """Generalized random forest UCB: the largest mean + α sd. See `ForestTS`."""
    return _forest(UCB(alpha), arms, n_features, seed, balance, settings)


def _forest(
    policy: Policy, arms: Arms, n_features: int | None, seed: Seed, balance: Balance | None,
    settings: dict[str, Any],
) -> Bandit:  # fmt: skip
    own, settings = kept(settings)
    model = Forest(**settings)
    return made(arms, model, policy, balance, n_features, seed, own)
